"""Counting executions and dead letters in the file, and never more rows than the limit."""

from __future__ import annotations

import sqlite3

from penstock.engine.states import ExecutionState
from penstock.stores.phases import PHASES
from penstock.stores.records import CountRow, Counts, Window
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.numbers import first_since
from penstock.stores.sqlite.reader import Reader

SQL = statements_beside(__file__)

ACTIVE = (
    str(ExecutionState.PENDING),
    str(ExecutionState.RUNNING),
    str(ExecutionState.PAUSED),
)


class SqliteCounts:
    def __init__(self, searcher: Reader) -> None:
        self._searcher = searcher

    async def count_created(self, window: Window, limit: int) -> Counts:
        return await self._searcher.run(
            lambda connection: _count_created(connection, window, limit)
        )

    async def count_active(self, limit: int) -> dict[str, int]:
        return await self._searcher.run(lambda connection: _count_active(connection, limit))

    async def count_unfinished(self) -> dict[str, int]:
        return dict(await self._searcher.rows(SQL.count_unfinished))

    async def count_dead_letters(self, limit: int) -> int:
        rows = await self._searcher.rows(SQL.count_dead_letters, (limit,))
        return int(rows[0][0])


def _count_created(connection: sqlite3.Connection, window: Window, limit: int) -> Counts:
    values = {
        "since": window.since,
        "width": window.bucket_seconds,
        "buckets": window.buckets,
        "first": first_since(window.since),
        "limit": limit,
    }
    rows = [CountRow(*row[:5]) for row in connection.execute(SQL.count_created, values)]
    truncated = False
    if sum(row.count for row in rows) == limit:
        truncated = connection.execute(SQL.has_more, values).fetchone() is not None
    return Counts(rows, truncated=truncated)


def _count_active(connection: sqlite3.Connection, limit: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in ACTIVE:
        count = 0
        for phase in PHASES[state]:
            values = (str(phase), state, limit)
            count += connection.execute(SQL.count_state, values).fetchone()[0]
        counts[state] = min(count, limit)
    return counts
