"""The fleet: workers, orchestrators and queues, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from penstock.orchestrator.meter import inboxes
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.reaper import dead_after
from penstock.service.timing import ServiceTiming
from penstock.service.waiting import Waiting
from penstock.stores.base import Stores
from penstock.stores.fleet import ClaimedTask
from penstock.views import fleet as views
from penstock.views.times import time_text
from penstock.worker.runtime import Worker


class Fleet(Protocol):
    """Workers, orchestrators and queues, for the API."""

    async def workers(self) -> list[views.Worker]: ...
    async def orchestrators(self) -> list[views.Orchestrator]: ...
    async def queues(self) -> list[views.Queue]: ...

    async def inbox(self) -> int:
        """The events in all inboxes that aren't committed yet, counted."""


class EmbeddedFleet:
    """The fleet of an embedded engine: one worker and one orchestrator, in this process."""

    def __init__(self, stores: Stores, worker: Worker, orchestrator: Orchestrator) -> None:
        self._stores = stores
        self._worker = worker
        self._orchestrator = orchestrator

    async def workers(self) -> list[views.Worker]:
        heartbeats: Mapping[str, int] = await self._stores.queue.workers()
        worker = self._worker
        view = views.Worker(
            worker_id=worker.worker_id,
            queues=sorted(worker.queues),
            handlers=sorted(worker.registry.names),
            running=worker.running,
            heartbeats=heartbeats.get(worker.worker_id, 0),
            started_at=time_text(worker.started_at),
            tasks=views.tasks_view(_claimed_tasks(worker)),
        )
        return [view]

    async def orchestrators(self) -> list[views.Orchestrator]:
        view = views.Orchestrator(
            name=self._orchestrator.name, partitions=sorted(self._orchestrator.owned)
        )
        return [view]

    async def queues(self) -> list[views.Queue]:
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

    async def workers(self) -> list[views.Worker]:
        """The live workers.

        A worker that has been silent for so long that the reaper takes its tasks is left out.
        """
        workers: list[views.Worker] = []
        for details in await self._fleet.workers(views.TASKS_MAX):
            offer = details.offer
            dead_seconds = dead_after(self._dead_seconds, offer.heartbeat_seconds)
            if offer.silent_seconds >= dead_seconds:
                continue

            worker = views.Worker(
                worker_id=offer.worker_id,
                queues=sorted(offer.queues),
                handlers=None if offer.handlers is None else sorted(offer.handlers),
                running=details.running,
                heartbeats=details.heartbeats,
                seconds_since_heartbeat=round(offer.silent_seconds, 3),
                started_at=time_text(offer.started_at or None),
                tasks=views.tasks_view(details.tasks),
            )
            workers.append(worker)
        return workers

    async def orchestrators(self) -> list[views.Orchestrator]:
        orchestrators = await self._fleet.orchestrators()
        return [
            views.Orchestrator(name=name, partitions=details.partitions, pid=details.pid)
            for name, details in sorted(orchestrators.items())
        ]

    async def queues(self) -> list[views.Queue]:
        return await _queue_views(self._stores, self._dead_seconds)

    async def inbox(self) -> int:
        """The length of all inboxes, in entries of the streams.

        The entries are counted without being read, and one may hold several events.
        """
        return await self._fleet.inbox_length()


async def _queue_views(stores: Stores, dead_seconds: float) -> list[views.Queue]:
    depths = await stores.queue.depths()
    waits = Waiting(stores, ServiceTiming(worker_dead_seconds=dead_seconds))
    offers = await waits.offers()

    untaken_by_queue: dict[str, views.UntakenTasks] = {}
    """The first entry of each queue."""
    for untaken in await waits.untaken():
        untaken_by_queue.setdefault(untaken.queue, untaken)

    queues: list[views.Queue] = []
    for name, (waiting, running) in sorted(depths.items()):
        wait = untaken_by_queue.get(name)
        queue = views.Queue(
            queue=name,
            waiting=waiting,
            running=running,
            workers=sum(name in offer.queues for offer in offers),
            reason=wait.reason if wait else None,
            reason_text=wait.text if wait else None,
        )
        queues.append(queue)
    return queues


def _claimed_tasks(worker: Worker) -> Iterator[ClaimedTask]:
    for task, seconds in worker.claimed():
        yield ClaimedTask.of(task, seconds)
