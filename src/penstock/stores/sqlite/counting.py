"""Counting executions and dead letters in the file, and never more rows than the limit."""

from __future__ import annotations

import sqlite3

from penstock.engine.states import ExecutionState
from penstock.stores.phases import PHASES
from penstock.stores.records import CountRow, Counts, Window
from penstock.stores.sqlite.numbers import first_since
from penstock.stores.sqlite.reader import Reader

ACTIVE = (
    str(ExecutionState.PENDING),
    str(ExecutionState.RUNNING),
    str(ExecutionState.PAUSED),
)
# `id` is that of the row with the greatest `n` of its group: SQLite promises this where the only
# aggregate of that kind is one max(). The end of the window is open: executions that were created
# while the clock was ahead count in the last bucket.
SELECT_CREATED = """
    SELECT
      workflow,
      state,
      min(CAST((created_at - :since) / :width AS INTEGER), :buckets - 1) AS bucket,
      count(*), id, max(n)
    FROM (
      SELECT n, id, workflow, state, created_at FROM executions
      WHERE n >= :first AND created_at >= :since ORDER BY n DESC LIMIT :limit
    ) AS executions GROUP BY workflow, state, bucket
"""
HAS_MORE = """
    SELECT 1 FROM executions WHERE n >= :first AND created_at >= :since
    ORDER BY n DESC LIMIT 1 OFFSET :limit
"""
COUNT_STATE = """
    SELECT count(*) FROM (
      SELECT 1 FROM executions INDEXED BY by_state WHERE phase = ? AND state = ? LIMIT ?
    )
"""
COUNT_UNFINISHED = """
    SELECT workflow, count(*) FROM executions INDEXED BY by_state
    WHERE phase = 'started' GROUP BY workflow
"""
COUNT_DEAD_LETTERS = """
    SELECT count(*) FROM (
      SELECT 1 FROM dead_letters INDEXED BY open_dead_letters WHERE closed IS NULL LIMIT ?
    )
"""


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
        return dict(await self._searcher.rows(COUNT_UNFINISHED))

    async def count_dead_letters(self, limit: int) -> int:
        rows = await self._searcher.rows(COUNT_DEAD_LETTERS, (limit,))
        return int(rows[0][0])


def _count_created(connection: sqlite3.Connection, window: Window, limit: int) -> Counts:
    values = {
        "since": window.since,
        "width": window.bucket_seconds,
        "buckets": window.buckets,
        "first": first_since(window.since),
        "limit": limit,
    }
    rows = [CountRow(*row[:5]) for row in connection.execute(SELECT_CREATED, values)]
    truncated = False
    if sum(row.count for row in rows) == limit:
        truncated = connection.execute(HAS_MORE, values).fetchone() is not None
    return Counts(rows, truncated=truncated)


def _count_active(connection: sqlite3.Connection, limit: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in ACTIVE:
        count = 0
        for phase in PHASES[state]:
            values = (str(phase), state, limit)
            count += connection.execute(COUNT_STATE, values).fetchone()[0]
        counts[state] = min(count, limit)
    return counts
