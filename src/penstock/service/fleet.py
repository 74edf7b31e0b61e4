"""The fleet: workers, orchestrators and queues, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from penstock.orchestrator.meter import inboxes
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.reaper import dead_after
from penstock.service.timing import ServiceTiming
from penstock.service.waiting import Untaken, Waiting
from penstock.stores.base import Stores
from penstock.stores.fleet import ClaimedTask
from penstock.views.executions import time_text
from penstock.worker.runtime import Worker

TASKS_MAX = 100
"""Tasks that are shown of one worker, in a list of workers."""


class Fleet(Protocol):
    """Workers, orchestrators and queues, for the API."""

    async def workers(self) -> list[dict[str, Any]]: ...
    async def orchestrators(self) -> list[dict[str, Any]]: ...
    async def queues(self) -> list[dict[str, Any]]: ...

    async def inbox(self) -> int:
        """The events in all inboxes that aren't committed yet, counted."""


class EmbeddedFleet:
    """The fleet of an embedded engine: one worker and one orchestrator, in this process."""

    def __init__(self, stores: Stores, worker: Worker, orchestrator: Orchestrator) -> None:
        self._stores = stores
        self._worker = worker
        self._orchestrator = orchestrator

    async def workers(self) -> list[dict[str, Any]]:
        heartbeats: Mapping[str, int] = await self._stores.queue.workers()
        worker = self._worker
        view = {
            "worker_id": worker.worker_id,
            "queues": sorted(worker.queues),
            "running": worker.running,
            "handlers": sorted(worker.registry.names),
            "heartbeats": heartbeats.get(worker.worker_id, 0),
            "started_at": time_text(worker.started_at),
            "tasks": _task_views(_claimed_tasks(worker)),
        }
        return [view]

    async def orchestrators(self) -> list[dict[str, Any]]:
        view = {
            "name": self._orchestrator.name,
            "partitions": sorted(self._orchestrator.owned),
        }
        return [view]

    async def queues(self) -> list[dict[str, Any]]:
        return await _queue_views(self._stores, self._orchestrator.timing.worker_dead_seconds)

    async def inbox(self) -> int:
        lengths = await inboxes(self._stores, self._orchestrator.owned)
        return sum(lengths.values())


class ScaledFleet:
    """The fleet of a deployment: the workers and orchestrators that have announced themselves."""

    def __init__(self, stores: Stores, dead_seconds: float) -> None:
        """`stores` are open, and several processes share them."""
        if stores.fleet is None:
            raise ValueError("the stores of one process have no fleet")
        self._stores = stores
        self._fleet = stores.fleet
        self._dead_seconds = dead_seconds

    async def workers(self) -> list[dict[str, Any]]:
        """The live workers.

        A worker that has been silent for so long that the reaper takes its tasks is left out.
        """
        views: list[dict[str, Any]] = []
        for worker in await self._fleet.workers(TASKS_MAX):
            offer = worker.offer
            dead_seconds = dead_after(self._dead_seconds, offer.heartbeat_seconds)
            if offer.silent_seconds >= dead_seconds:
                continue

            view = {
                "worker_id": offer.worker_id,
                "queues": sorted(offer.queues),
                "handlers": None if offer.handlers is None else sorted(offer.handlers),
                "running": worker.running,
                "heartbeats": worker.heartbeats,
                "seconds_since_heartbeat": round(offer.silent_seconds, 3),
                "started_at": time_text(offer.started_at or None),
                "tasks": _task_views(worker.tasks),
            }
            views.append(view)
        return views

    async def orchestrators(self) -> list[dict[str, Any]]:
        orchestrators = await self._fleet.orchestrators()
        views: list[dict[str, Any]] = []
        for name, details in sorted(orchestrators.items()):
            view = {"name": name, "partitions": details.partitions, "pid": details.pid}
            views.append(view)
        return views

    async def queues(self) -> list[dict[str, Any]]:
        return await _queue_views(self._stores, self._dead_seconds)

    async def inbox(self) -> int:
        """The length of all inboxes, in entries of the streams.

        The entries are counted without being read, and one may hold several events.
        """
        return await self._fleet.inbox_length()


async def _queue_views(stores: Stores, dead_seconds: float) -> list[dict[str, Any]]:
    depths = await stores.queue.depths()
    waits = Waiting(stores, ServiceTiming(worker_dead_seconds=dead_seconds))
    offers = await waits.offers()

    untaken_by_queue: dict[str, Untaken] = {}
    """The first entry of each queue."""
    for untaken in await waits.untaken():
        untaken_by_queue.setdefault(untaken.queue, untaken)

    views: list[dict[str, Any]] = []
    for name, (waiting, running) in sorted(depths.items()):
        wait = untaken_by_queue.get(name)
        view = {
            "queue": name,
            "waiting": waiting,
            "running": running,
            "workers": sum(name in offer.queues for offer in offers),
            "reason": wait.reason if wait else None,
            "reason_text": wait.text if wait else None,
        }
        views.append(view)
    return views


def _claimed_tasks(worker: Worker) -> Iterator[ClaimedTask]:
    for task, seconds in worker.claimed():
        yield ClaimedTask.of(task, seconds)


def _task_views(claimed: Iterable[ClaimedTask]) -> list[dict[str, Any]]:
    """The views of claimed tasks, each with the seconds since it was claimed."""
    return [
        {
            "execution_id": task.execution_id,
            "node_id": task.node_id,
            "attempt": task.attempt,
            "handler": task.handler,
            "queue": task.queue,
            "workflow": task.workflow,
            "seconds": None if task.seconds is None else round(task.seconds, 3),
        }
        for task in islice(claimed, TASKS_MAX)
    ]
