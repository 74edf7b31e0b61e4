"""Why tasks wait: no live worker serves their queue, or none has their handler.

It is computed when somebody asks, so the answer is about now.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from penstock.definition.addresses import node_at
from penstock.definition.plan import Plan, PlanNode
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import StoreError
from penstock.orchestrator.routing import explain, live, missing, queues_of
from penstock.service.timing import ServiceTiming
from penstock.stores.base import Backlog, Offer, Stores, TasksAhead
from penstock.views.fleet import UntakenTasks

LOOKED_AT_MAX = 10_000
"""Tasks of a queue that are looked at to find the place of one."""


class Wait(NamedTuple):
    """Why a node's task waits."""

    reason: str
    """`no_worker` or `no_handler`."""
    text: str


class QueuePlace(NamedTuple):
    """Where a task waits."""

    queue: str
    ahead: TasksAhead | None
    """None: it doesn't wait there, so a worker has just taken it."""


class Waiting:
    """Finds out why tasks wait."""

    def __init__(self, stores: Stores, timing: ServiceTiming) -> None:
        self._stores = stores
        self._timing = timing
        self._offers: list[Offer] = []
        self._read_at = float("-inf")

    async def offers(self) -> list[Offer]:
        """The offers of live workers, at most a second old."""
        now = time.monotonic()
        if now - self._read_at > self._timing.offers_fresh_seconds:
            offers = await self._stores.queue.offers()
            self._offers = live(offers, self._timing.worker_dead_seconds)
            self._read_at = now
        return self._offers

    async def of_nodes(
        self, record: ExecutionRecord, runs: Mapping[str, NodeRun], plan: Plan
    ) -> dict[str, Wait]:
        """Why nodes wait, by node: of those that are QUEUED and that no live worker can take."""
        if record.state is not ExecutionState.RUNNING:
            return {}
        queued = [run.node_id for run in runs.values() if run.state is NodeState.QUEUED]
        if not queued:
            return {}
        try:
            offers = await self.offers()
        except StoreError:  # the view of the execution doesn't fail because of this
            return {}

        routes = queues_of(offers)
        wait_by_route: dict[tuple[str, str], Wait | None] = {}
        """Waits by queue and handler: thousands of nodes may have the same."""
        wait_by_node: dict[str, Wait] = {}
        for node_id in queued:
            node = node_at(plan, node_id)
            if node is None:
                continue
            queue = _queue_of(node, routes)
            route = (queue, node.handler)
            if route not in wait_by_route:
                wait_by_route[route] = _wait(offers, queue, node.handler)

            wait = wait_by_route[route]
            if wait is not None:
                wait_by_node[node_id] = wait
        return wait_by_node

    async def place(self, record: ExecutionRecord, run: NodeRun, node: PlanNode) -> QueuePlace:
        """Where the task of a QUEUED node waits, and behind how many others."""
        queue = _queue_of(node, queues_of(await self.offers()))
        key = (record.execution_id, run.node_id, record.generation, run.attempt)
        # one that was queued before the newest worker came may be in the plan's queue yet
        for candidate in dict.fromkeys((queue, node.queue)):
            ahead = await self._stores.queue.tasks_ahead(
                key, candidate, node.handler, record.priority, LOOKED_AT_MAX
            )
            if ahead is not None:
                return QueuePlace(candidate, ahead)
        return QueuePlace(queue, None)

    async def backlogs(self) -> list[Backlog]:
        """The backlogs of all queues, summed over all partitions."""
        partitions = range(self._stores.hot.partitions)
        backlogs_by_partition = await asyncio.gather(
            *(self._stores.queue.backlog(partition) for partition in partitions)
        )

        counts: Counter[tuple[str, str | None]] = Counter()
        for backlog in chain.from_iterable(backlogs_by_partition):
            counts[backlog.queue, backlog.handler] += backlog.waiting
        return [Backlog(queue, handler, waiting) for (queue, handler), waiting in counts.items()]

    async def untaken(self) -> list[UntakenTasks]:
        """Tasks that no live worker takes, by queue and handler."""
        offers = await self.offers()
        rows: list[UntakenTasks] = []
        for backlog in await self.backlogs():
            queue = backlog.queue
            handler = backlog.handler
            reason = missing(offers, queue, handler)
            if reason is not None:
                text = explain(reason, queue, handler or "")
                rows.append(
                    UntakenTasks(
                        queue=queue,
                        handler=handler,
                        waiting=backlog.waiting,
                        reason=reason,
                        text=text,
                    )
                )
        return sorted(rows, key=lambda row: (row.queue, row.handler or ""))


def _queue_of(node: PlanNode, routes: Mapping[str, str]) -> str:
    return node.queue if node.names_queue else routes.get(node.handler, node.queue)


def _wait(offers: list[Offer], queue: str, handler: str) -> Wait | None:
    reason = missing(offers, queue, handler)
    if reason is None:
        return None
    return Wait(reason, explain(reason, queue, handler))
