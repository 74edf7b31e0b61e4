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

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)
PAUSED = str(ExecutionState.PAUSED)
FIRST_STEP = 1000
SKEW_SECONDS = 60.0
"""How much clocks may differ: rows before one that is older than the window by this are older too.
"""
SELECT_AFTER = """
    WITH last AS (SELECT coalesce(max(n), 0) AS n FROM executions)
    SELECT last.n - coalesce((
      SELECT min(step) FROM unnest(%(steps)s::bigint[]) AS step WHERE %(before)s > coalesce(
        (
          SELECT created_at FROM executions WHERE executions.n <= last.n - step
          ORDER BY executions.n DESC LIMIT 1
        ),
        '-infinity')
    ), %(limit)s) FROM last
"""
# The time is compared in a way that keeps the planner from the index by_time: pages that it hasn't
# summarized yet would be read as a whole.
SELECT_CREATED = """
    SELECT workflow, state,
      least(floor((created_at - %(since)s) / %(width)s)::bigint, %(buckets)s - 1) AS bucket,
      count(*), max(id)
    FROM executions WHERE n > %(after)s AND created_at - %(since)s >= 0
    GROUP BY workflow, state, bucket
"""
SELECT_BEFORE = "SELECT created_at FROM executions WHERE n <= %s ORDER BY n DESC LIMIT 1"
SELECT_ACTIVE = """
    SELECT state, count(*) FROM (
      (
        SELECT state FROM executions WHERE phase = 'waiting' AND state = 'PENDING'
        ORDER BY n DESC LIMIT %(limit)s
      ) UNION ALL (
        SELECT state FROM executions WHERE phase = 'started' AND state = 'PENDING'
        ORDER BY n DESC LIMIT 2 * %(limit)s
      ) UNION ALL (
        SELECT state FROM executions WHERE phase = 'started' AND state = 'RUNNING'
        ORDER BY n DESC LIMIT %(limit)s
      ) UNION ALL (
        SELECT state FROM executions WHERE phase = 'started' AND state = 'PAUSED'
        ORDER BY n DESC LIMIT %(limit)s
      )
    ) AS active GROUP BY state
"""
SELECT_UNHEARD = """
    SELECT id, workflow, created_at FROM executions
    WHERE phase = 'started' AND state = 'PENDING' ORDER BY n DESC LIMIT %s
"""
COUNT_UNFINISHED = """
    SELECT workflow, count(*) FROM executions WHERE phase = 'started' GROUP BY workflow
"""
COUNT_DEAD_LETTERS = (
    "SELECT count(*) FROM (SELECT 1 FROM dead_letters WHERE closed IS NULL LIMIT %s) AS open"
)


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
        rows = await self._database.rows(SELECT_CREATED, values, seconds=SLOW_SECONDS)
        before = await self._database.rows(SELECT_BEFORE, (after,), seconds=SLOW_SECONDS)
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
        rows = await self._database.rows(SELECT_AFTER, values, seconds=SLOW_SECONDS)
        return int(rows[0][0])

    async def count_active(self, limit: int) -> dict[str, int]:
        counts = await self.heard_of(limit)
        return {state: min(count, limit) for state, count in counts.items()}

    async def heard_of(self, limit: int) -> dict[str, int]:
        """Active executions by state, as `count_active`, but up to three times the limit."""
        rows = await self._database.rows(SELECT_ACTIVE, {"limit": limit}, seconds=SLOW_SECONDS)
        counts: dict[str, int] = dict(rows)
        return {state: counts.get(state, 0) for state in (PENDING, RUNNING, PAUSED)}

    async def unheard(self, limit: int) -> list[Row]:
        """The newest executions that should run and have no copy: id, workflow, `created_at`."""
        return await self._database.rows(SELECT_UNHEARD, (limit,), seconds=SLOW_SECONDS)

    async def count_unfinished(self) -> dict[str, int]:
        return dict(await self._database.rows(COUNT_UNFINISHED))

    async def count_dead_letters(self, limit: int) -> int:
        rows = await self._database.rows(COUNT_DEAD_LETTERS, (limit,), seconds=SLOW_SECONDS)
        return int(rows[0][0])
