"""Counting executions and dead letters in PostgreSQL, and never more rows than the limit.

`n` counts up one by one, so the newest `limit` executions are those above `max(n) - limit`: a part
of the primary key, which is found without counting rows. Where numbers were left out, it is a few
less. Often a window has far fewer executions: reading single rows at growing distances tells where
it begins, give or take as many rows again.
"""

from __future__ import annotations

from penstock.engine.states import ExecutionState
from penstock.stores.postgres.database import SLOW_SECONDS, Database, Row
from penstock.stores.records import CountRow, Counts, Window
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)
PAUSED = str(ExecutionState.PAUSED)
FIRST_STEP = 1000
SKEW_SECONDS = 60.0
"""How much clocks may differ: rows before one that is older than the window by this are older too.
"""


class PostgresCounts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def count_created(self, window: Window, limit: int) -> Counts:
        after = await self._after(window.since, limit)
        values = {
            "since": window.since,
            "width": window.bucket_seconds,
            "buckets": window.buckets,
            "after": after,
        }
        rows = await self._database.rows(SQL.count_created, values, seconds=SLOW_SECONDS)
        before = await self._database.rows(SQL.select_before, (after,), seconds=SLOW_SECONDS)
        is_truncated = bool(before) and before[0][0] >= window.since
        return Counts([CountRow(*row) for row in rows], truncated=is_truncated)

    async def _after(self, since: float, limit: int) -> int:
        """A number behind which there are at most `limit` executions.

        They are all executions of the window, if it has no more than that.
        """
        steps: list[int] = []
        step = FIRST_STEP
        while step < limit:
            steps.append(step)
            step *= 2
        values = {"steps": steps, "before": since - SKEW_SECONDS, "limit": limit}
        rows = await self._database.rows(SQL.select_after, values, seconds=SLOW_SECONDS)
        return int(rows[0][0])

    async def count_active(self, limit: int) -> dict[str, int]:
        counts = await self.heard_of(limit)
        return {state: min(count, limit) for state, count in counts.items()}

    async def heard_of(self, limit: int) -> dict[str, int]:
        """Active executions by state, as `count_active`, but up to three times the limit."""
        rows = await self._database.rows(SQL.count_active, {"limit": limit}, seconds=SLOW_SECONDS)
        counts: dict[str, int] = dict(rows)
        return {state: counts.get(state, 0) for state in (PENDING, RUNNING, PAUSED)}

    async def unheard(self, limit: int) -> list[Row]:
        """The newest executions that should run and have no copy: id, workflow, `created_at`."""
        return await self._database.rows(SQL.select_unheard, (limit,), seconds=SLOW_SECONDS)

    async def count_unfinished(self) -> dict[str, int]:
        return dict(await self._database.rows(SQL.count_unfinished))

    async def count_dead_letters(self, limit: int) -> int:
        rows = await self._database.rows(SQL.count_dead_letters, (limit,), seconds=SLOW_SECONDS)
        return int(rows[0][0])
