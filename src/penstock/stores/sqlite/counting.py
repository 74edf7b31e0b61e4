"""Counting executions and dead letters in the file, and never more rows than the limit."""

from __future__ import annotations

import sqlite3

from penstock.engine.states import ExecutionState
from penstock.stores.records import CountRow, Counts, Window
from penstock.stores.sqlite.numbers import first_since
from penstock.stores.sqlite.reader import HAS_CHANGES, Reader

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)
PAUSED = str(ExecutionState.PAUSED)
# `id` is that of the row with the greatest `n` of its group: SQLite promises this where the only
# aggregate of that kind is one max(). The end of the window is open: executions that were created
# while the clock was ahead count in the last bucket.
SELECT_CREATED = f"""
    SELECT
      workflow,
      CASE WHEN state = 'RUNNING' AND NOT {HAS_CHANGES} THEN 'PENDING' ELSE state END AS shown,
      min(CAST((created_at - :since) / :width AS INTEGER), :buckets - 1) AS bucket,
      count(*), id, max(n)
    FROM (
      SELECT n, id, workflow, state, created_at FROM executions
      WHERE n >= :first AND created_at >= :since ORDER BY n DESC LIMIT :limit
    ) AS executions GROUP BY workflow, shown, bucket
"""  # noqa: S608 -- our own words
HAS_MORE = """
    SELECT 1 FROM executions WHERE n >= :first AND created_at >= :since
    ORDER BY n DESC LIMIT 1 OFFSET :limit
"""
COUNT_STATE = """
    SELECT count(*) FROM (
      SELECT 1 FROM executions INDEXED BY by_state WHERE state = ? ORDER BY n DESC LIMIT ?
    )
"""
COUNT_BEGUN = f"""
    SELECT count(*), coalesce(sum(begun), 0) FROM (
      SELECT {HAS_CHANGES} AS begun FROM executions INDEXED BY by_state
      WHERE state = ? ORDER BY n DESC LIMIT ?
    )
"""  # noqa: S608 -- our own words
COUNT_UNFINISHED = """
    SELECT workflow, count(*) FROM executions INDEXED BY by_state
    WHERE state IN ('RUNNING', 'PAUSED') GROUP BY workflow
"""
COUNT_DEAD_LETTERS = """
    SELECT count(*) FROM (
      SELECT 1 FROM letters INDEXED BY open_letters WHERE closed IS NULL LIMIT ?
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
    """Active executions by state.

    A row is RUNNING once the execution should run. Without changes it counts as PENDING.
    """
    (waiting,) = connection.execute(COUNT_STATE, (PENDING, limit)).fetchone()
    (paused,) = connection.execute(COUNT_STATE, (PAUSED, limit)).fetchone()
    all_running, begun = connection.execute(COUNT_BEGUN, (RUNNING, 2 * limit)).fetchone()
    return {
        PENDING: min(waiting + all_running - begun, limit),
        RUNNING: min(begun, limit),
        PAUSED: paused,
    }
