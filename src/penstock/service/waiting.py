"""Tasks that wait because nobody takes them, and why.

Asked when somebody looks, so that the answer is about now.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import NamedTuple

from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.state import Execution
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import StoreError
from penstock.orchestrator.reaper import DEAD_SECONDS
from penstock.orchestrator.routing import explain, live, missing, queues_of
from penstock.stores.base import Backlog, Offer, Stores

FRESH_SECONDS = 1.0


class Wait(NamedTuple):
    """Why a node's task waits."""

    reason: str
    """`no_worker` or `no_handler`."""
    text: str


class Untaken(NamedTuple):
    """Tasks of a queue that no live worker takes."""

    queue: str
    handler: str | None
    waiting: int
    reason: str
    text: str


class Waiting:
    """Finds out why tasks wait."""

    def __init__(self, stores: Stores, dead_seconds: float = DEAD_SECONDS) -> None:
        self._stores, self._dead_seconds = stores, dead_seconds
        self._read: tuple[float, list[Offer]] | None = None

    async def offers(self) -> list[Offer]:
        """The offers of live workers; as they were a second ago at most."""
        now = time.monotonic()
        if self._read is None or now - self._read[0] > FRESH_SECONDS:
            self._read = now, live(await self._stores.queue.offers(), self._dead_seconds)
        return self._read[1]

    async def of_nodes(
        self, record: ExecutionRecord, runs: Mapping[str, NodeRun], plan: Plan
    ) -> dict[str, Wait]:
        """Why nodes wait, by node.

        Those that are QUEUED and that nobody will take as things are.
        """
        queued = [run.node_id for run in runs.values() if run.state is NodeState.QUEUED]
        if not queued or record.state is not ExecutionState.RUNNING:
            return {}
        try:
            offers = await self.offers()
        except StoreError:  # the rest is shown all the same
            return {}
        nodes, numbers = plan.nodes, plan.numbers
        if record.added:
            grown = Execution(plan, record)
            nodes, numbers = grown.nodes, grown.numbers
        waits: dict[tuple[str, str], Wait | None] = {}
        """Waits by queue and handler: thousands of nodes may have the same."""
        routes = queues_of(offers)
        found: dict[str, Wait] = {}
        for node_id in queued:
            node = nodes[numbers[node_id]]
            where = (
                node.queue if node.names_queue else routes.get(node.handler, node.queue),
                node.handler,
            )
            if where not in waits:
                waits[where] = _wait(offers, *where)
            wait = waits[where]
            if wait is not None:
                found[node_id] = wait
        return found

    async def backlogs(self) -> list[Backlog]:
        """The backlogs of all queues, of all partitions together."""
        partitions = range(self._stores.hot.partitions)
        found = await asyncio.gather(
            *(self._stores.queue.backlog(partition) for partition in partitions)
        )
        counts: dict[tuple[str, str | None], int] = {}
        for backlog in [each for backlogs in found for each in backlogs]:
            where = (backlog.queue, backlog.handler)
            counts[where] = counts.get(where, 0) + backlog.waiting
        return [Backlog(queue, handler, waiting) for (queue, handler), waiting in counts.items()]

    async def untaken(self) -> list[Untaken]:
        offers, found = await self.offers(), []
        for backlog in await self.backlogs():
            reason = missing(offers, backlog.queue, backlog.handler)
            if reason is not None:
                text = explain(reason, backlog.queue, backlog.handler or "")
                found.append(Untaken(backlog.queue, backlog.handler, backlog.waiting, reason, text))
        return sorted(found, key=lambda each: (each.queue, each.handler or ""))


def _wait(offers: list[Offer], queue: str, handler: str) -> Wait | None:
    reason = missing(offers, queue, handler)
    return None if reason is None else Wait(reason, explain(reason, queue, handler))
