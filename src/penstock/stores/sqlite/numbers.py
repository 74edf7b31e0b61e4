"""The numbers of executions: in order of creation, and made of the time.

`n` is the time of creation in ten-thousandths of a second, or the last number plus one if that is
greater. So it is never smaller than the execution's `created_at`, and a search by time knows where
to begin without an index of its own. How far `n` has ever been ahead (many starts at once, a clock
that was set back) is stored: from it follows where a search may end.
"""

from __future__ import annotations

import sqlite3
from math import ceil, floor

from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import Reader

SQL = statements_beside(__file__)

PER_SECOND = 10_000
LEAD_SECONDS = 60.0
"""Assumed from the start, so that a longer lead is seldom written."""
SECONDS_MAX = 1e14


class Numbers:
    def __init__(self, reader: Reader) -> None:
        self._last: int = reader.rows_now(SQL.select_last)[0][0]
        rows = reader.rows_now(SQL.select_lead)
        self._stored = self._lead = float(rows[0][0]) if rows else LEAD_SECONDS

    def next(self, created_at: float) -> int:
        n = self._last = max(self._last + 1, ceil(created_at * PER_SECOND))
        lead = n / PER_SECOND - created_at
        if lead > self._lead:
            self._lead = 2 * lead
        return n

    def new_lead(self) -> float | None:
        """The new lead of numbers, to be written with the rows that have them."""
        return self._lead if self._lead > self._stored else None

    def lead_written(self, lead: float) -> None:
        self._stored = max(self._stored, lead)

    def between(self, since: float | None, until: float | None) -> list[tuple[str, int]]:
        """Conditions on `n` that all executions created in this period meet.

        Few executions of other times meet them too.
        """
        conditions: list[tuple[str, int]] = []
        if since is not None:
            conditions.append(("n >= ?", first_since(since)))
        if until is not None:
            last = ceil((_clamp(until) + self._lead) * PER_SECOND) + 1
            conditions.append(("n <= ?", last))
        return conditions


def first_since(since: float) -> int:
    """The smallest number that an execution created since then may have."""
    return floor(_clamp(since) * PER_SECOND) - 1


def write_lead(connection: sqlite3.Connection, lead: float) -> None:
    connection.execute(SQL.put_lead, (repr(lead),))


def _clamp(seconds: float) -> float:
    return max(min(seconds, SECONDS_MAX), -SECONDS_MAX)
