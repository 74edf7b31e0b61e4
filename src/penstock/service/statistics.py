"""Statistics of a store and of a workflow.

The number of records that are read is bounded, and callers share the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from penstock.errors import SchemaMismatch
from penstock.service import charts
from penstock.service.fleet import Fleet
from penstock.service.node_times import NodeTimes
from penstock.service.sharing import Shared
from penstock.service.workflows import Workflows
from penstock.stores.base import Stored
from penstock.stores.cold import ColdStore
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import Search
from penstock.views.statistics import Active, Stats, Tasks, WorkflowStats
from penstock.views.times import time_text

COUNTED_EXECUTIONS_MAX = 200_000
"""Executions of a window that are counted: the newest."""
COUNT_MAX = 10_000
"""Up to where active executions and open dead letters are counted."""
FRESH_SECONDS = 2.0
WORKFLOW_FRESH_SECONDS = 5.0
READS_AT_ONCE = 8
EXAMPLES = 240
EXAMPLES_PER_BUCKET = 3
HOP_RUNS = 20_000
"""How many node runs are read for the hops of an overview, about."""
WORKFLOW_RUNS = 100_000
"""How many node runs are read for the statistics of a workflow, about."""
REMEMBERED_HOPS = 2000


class Statistics:
    """Statistics of a store and its workflows."""

    def __init__(
        self, cold: ColdStore, now: Callable[[], float], workflows: Workflows, plans: PlanCache
    ) -> None:
        self._cold = cold
        self._now = now
        self._workflows = workflows
        self._plans = plans
        self._hops: dict[str, tuple[float, ...]] = {}
        """Hops by finished execution, so that none is read twice; the last used stands last."""
        self._overviews: Shared[Stats] = Shared(FRESH_SECONDS)
        self._of_workflows: Shared[WorkflowStats] = Shared(WORKFLOW_FRESH_SECONDS)

    async def overview(self, seconds: int, buckets: int, fleet: Fleet) -> Stats:
        return await self._overviews.get(
            (seconds, buckets), lambda: self._overview(seconds, buckets, fleet)
        )

    async def _overview(self, seconds: int, buckets: int, fleet: Fleet) -> Stats:
        now = self._now()
        window = charts.window_of(now, seconds, buckets)
        counts, active, dead_letters = await asyncio.gather(
            self._cold.counts.count_created(window, COUNTED_EXECUTIONS_MAX),
            self._cold.counts.count_active(COUNT_MAX),
            self._cold.counts.count_dead_letters(COUNT_MAX),
        )
        per_bucket = max(1, min(EXAMPLES_PER_BUCKET, EXAMPLES // buckets))
        examples = charts.examples(counts.rows, per_bucket)
        hops = await self._sample_hops(examples)

        queues, workers, orchestrators, inbox = await asyncio.gather(
            fleet.queues(), fleet.workers(), fleet.orchestrators(), fleet.inbox()
        )
        tasks = Tasks(
            waiting=sum(queue.waiting for queue in queues),
            running=sum(queue.running for queue in queues),
        )
        return Stats(
            now=time_text(now),
            since=time_text(window.since),
            bucket_seconds=window.bucket_seconds,
            truncated=counts.truncated,
            active=Active(**active),
            totals=charts.totals(counts.rows),
            series=charts.series(counts.rows, window),
            workflows=charts.workflows(counts.rows),
            hops=charts.hops_view(hops, window),
            dead_letters=dead_letters,
            tasks=tasks,
            workers=len(workers),
            orchestrators=len(orchestrators),
            inbox=inbox,
        )

    async def _sample_hops(self, examples: Mapping[int, list[str]]) -> dict[int, list[float]]:
        """The hops of each bucket.

        The newest executions are read first; what isn't read this time is read the next time.
        """
        hops: dict[str, tuple[float, ...]] = {}
        unread: list[str] = []
        for bucket in sorted(examples, reverse=True):
            for execution_id in examples[bucket]:
                if execution_id in self._hops:
                    hops[execution_id] = self._hops.pop(execution_id)
                else:
                    unread.append(execution_id)

        async for execution_id, stored in self._read(unread, HOP_RUNS):
            hops[execution_id] = charts.hops_of(stored.runs.values()) if stored is not None else ()

        self._hops.update(hops)
        for execution_id in list(self._hops)[:-REMEMBERED_HOPS]:
            del self._hops[execution_id]

        by_bucket: dict[int, list[float]] = {}
        for bucket, execution_ids in examples.items():
            by_bucket[bucket] = []
            for execution_id in execution_ids:
                by_bucket[bucket].extend(hops.get(execution_id, ()))
        return by_bucket

    async def workflow(self, name: str, tag: str | None, sample: int) -> WorkflowStats:
        """Statistics of a workflow's newest executions that have ended, of one version or of all.

        Raises `NotFound`.
        """
        return await self._of_workflows.get(
            (name, tag, sample), lambda: self._workflow(name, tag, sample)
        )

    async def _workflow(self, reference: str, tag: str | None, sample: int) -> WorkflowStats:
        name, newest = await self._workflows.find(f"{reference}@{tag}" if tag else reference)
        version = newest if tag or name != reference else None
        search = Search(states=charts.ENDS, workflow=name, version=version, limit=sample)
        execution_ids = [row.execution_id for row in await self._cold.executions.search(search)]

        times = NodeTimes()
        async for _, stored in self._read(execution_ids, WORKFLOW_RUNS):
            if stored is not None:
                times.add(stored)

        older = sorted(times.versions - {newest}, reverse=True)
        plans = [await self._plans.need(name, number) for number in (newest, *older)]
        return times.view(name, version, plans)

    async def _read(
        self, execution_ids: list[str], runs_max: int
    ) -> AsyncIterator[tuple[str, Stored | None]]:
        """Read executions, a few at once, until they have had about `runs_max` node runs."""
        runs = 0
        for first in range(0, len(execution_ids), READS_AT_ONCE):
            batch = execution_ids[first : first + READS_AT_ONCE]
            executions = await asyncio.gather(*map(self._read_one, batch))
            for execution_id, stored in zip(batch, executions, strict=True):
                yield execution_id, stored
                runs += len(stored.runs) if stored is not None else 0

            if runs >= runs_max:
                return

    async def _read_one(self, execution_id: str) -> Stored | None:
        """An execution as it is stored.

        None if it was deleted meanwhile, or another version of Penstock has written it: it is left
        out of the statistics.
        """
        try:
            return await self._cold.executions.execution(execution_id)
        except SchemaMismatch:
            return None

    def close(self) -> None:
        self._overviews.close()
        self._of_workflows.close()
