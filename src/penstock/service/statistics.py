"""Statistics of a store and of a workflow.

What is read for it is bounded, and shared by all who ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from penstock.errors import SchemaMismatch
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.view import time_text
from penstock.service import charts
from penstock.service.fleet import Fleet
from penstock.service.node_times import NodeTimes
from penstock.service.sharing import Shared
from penstock.service.workflows import Workflows
from penstock.stores.base import Stored
from penstock.stores.cold import ColdStore
from penstock.stores.records import Search

COUNTED_EXECUTIONS_MAX = 200_000
"""Executions of a window that are counted: the newest."""
COUNT_MAX = 10_000
"""Up to where active executions and open dead letters are counted."""
FRESH_SECONDS, WORKFLOW_FRESH_SECONDS = 2.0, 5.0
READS_AT_ONCE = 8
EXAMPLES, EXAMPLES_PER_BUCKET = 240, 3
HOP_RUNS, WORKFLOW_RUNS = 20_000, 100_000
"""How many node runs are read for one answer, about."""
REMEMBERED_HOPS = 2000


class Statistics:
    """Statistics of a store and its workflows."""

    def __init__(
        self, cold: ColdStore, now: Callable[[], float], workflows: Workflows, plans: Plans
    ) -> None:
        self._cold, self._now, self._workflows, self._plans = cold, now, workflows, plans
        self._hops: dict[str, tuple[float, ...]] = {}
        """Hops by execution that has ended, so that none is read twice; the one that was used last
        stands last.
        """
        self._overviews: Shared[dict[str, Any]] = Shared(FRESH_SECONDS)
        self._of_workflows: Shared[dict[str, Any]] = Shared(WORKFLOW_FRESH_SECONDS)

    async def overview(self, seconds: int, buckets: int, fleet: Fleet) -> dict[str, Any]:
        return await self._overviews.get(
            (seconds, buckets), lambda: self._overview(seconds, buckets, fleet)
        )

    async def _overview(self, seconds: int, buckets: int, fleet: Fleet) -> dict[str, Any]:
        now = self._now()
        window = charts.window_of(now, seconds, buckets)
        counts, active, dead_letters = await asyncio.gather(
            self._cold.count_created(window, COUNTED_EXECUTIONS_MAX),
            self._cold.count_active(COUNT_MAX),
            self._cold.count_dead_letters(COUNT_MAX),
        )
        examples = charts.examples(
            counts.rows, max(1, min(EXAMPLES_PER_BUCKET, EXAMPLES // buckets))
        )
        return {
            "now": time_text(now),
            "since": time_text(window.since),
            "bucket_seconds": window.bucket_seconds,
            "truncated": counts.truncated,
            "active": active,
            "totals": charts.totals(counts.rows),
            "series": charts.series(counts.rows, window),
            "workflows": charts.workflows(counts.rows),
            "hops": charts.hops_view(await self._sampled(examples), window),
            "dead_letters": dead_letters,
            **await _work(fleet),
        }

    async def _sampled(self, examples: Mapping[int, list[str]]) -> dict[int, list[float]]:
        """The hops of each bucket.

        The newest are read first: what isn't read this time is read the next.
        """
        wanted = [
            execution_id
            for bucket in sorted(examples, reverse=True)
            for execution_id in examples[bucket]
        ]
        known = {
            execution_id: self._hops.pop(execution_id)
            for execution_id in wanted
            if execution_id in self._hops
        }
        async for execution_id, stored in self._read(
            [execution_id for execution_id in wanted if execution_id not in known], HOP_RUNS
        ):
            known[execution_id] = charts.hops_of(stored.runs.values()) if stored is not None else ()
        self._hops.update(known)
        for execution_id in list(self._hops)[:-REMEMBERED_HOPS]:
            del self._hops[execution_id]
        return {
            bucket: [hop for execution_id in execution_ids for hop in known.get(execution_id, ())]
            for bucket, execution_ids in examples.items()
        }

    async def workflow(self, name: str, tag: str | None, sample: int) -> dict[str, Any]:
        """Statistics of a workflow's newest executions that have ended, of one version or of all.

        Raises `NotFound`.
        """
        return await self._of_workflows.get(
            (name, tag, sample), lambda: self._workflow(name, tag, sample)
        )

    async def _workflow(self, reference: str, tag: str | None, sample: int) -> dict[str, Any]:
        name, newest = await self._workflows.find(f"{reference}@{tag}" if tag else reference)
        version = newest if tag or name != reference else None
        search = Search(states=charts.ENDS, workflow=name, version=version, limit=sample)
        execution_ids = [row.execution_id for row in await self._cold.search(search)]
        times = NodeTimes()
        async for _, stored in self._read(execution_ids, WORKFLOW_RUNS):
            if stored is not None:
                times.add(stored)
        older = sorted(times.versions - {newest}, reverse=True)
        plans = [await self._plans.need(name, each) for each in (newest, *older)]
        return {"name": name, "version": version, **times.view(plans)}

    async def _read(
        self, execution_ids: list[str], runs_max: int
    ) -> AsyncIterator[tuple[str, Stored | None]]:
        """Read executions, a few at once, until they had so many node runs.

        Then there are a few too many at most.
        """
        runs = 0
        for first in range(0, len(execution_ids), READS_AT_ONCE):
            some = execution_ids[first : first + READS_AT_ONCE]
            found = await asyncio.gather(*map(self._execution, some))
            for pair in zip(some, found, strict=True):
                yield pair
            runs += sum(len(stored.runs) for stored in found if stored is not None)
            if runs >= runs_max:
                return

    async def _execution(self, execution_id: str) -> Stored | None:
        """An execution as it is stored, or None.

        None if it is gone meanwhile, or another version of Penstock has written it: the others
        count.
        """
        try:
            return await self._cold.execution(execution_id)
        except SchemaMismatch:
            return None

    def close(self) -> None:
        self._overviews.close()
        self._of_workflows.close()


async def _work(fleet: Fleet) -> dict[str, Any]:
    queues, workers, orchestrators, inbox = await asyncio.gather(
        fleet.queues(), fleet.workers(), fleet.orchestrators(), fleet.inbox()
    )
    return {
        "tasks": {"waiting": _sum(queues, "waiting"), "running": _sum(queues, "running")},
        "workers": len(workers),
        "orchestrators": len(orchestrators),
        "inbox": inbox,
    }


def _sum(queues: Iterable[Mapping[str, Any]], what: str) -> int:
    return sum(queue[what] for queue in queues)
