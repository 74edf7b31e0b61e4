"""The fleet: workers, orchestrators and queues, as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import msgspec

from penstock.orchestrator.meter import inboxes
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.reaper import DEAD_SECONDS, dead_after
from penstock.service.waiting import Waiting
from penstock.stores.base import Stores
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
            tasks=views.tasks_view(worker.claimed()),
        )
        return [view]

    async def orchestrators(self) -> list[views.Orchestrator]:
        view = views.Orchestrator(
            name=self._orchestrator.name, partitions=sorted(self._orchestrator.owned)
        )
        return [view]

    async def queues(self) -> list[views.Queue]:
        return await _queue_views(self._stores)

    async def inbox(self) -> int:
        lengths = await inboxes(self._stores, self._orchestrator.owned)
        return sum(lengths.values())


class FleetQueue(Protocol):
    """The task queue of a store that several processes share: what it has beside `TaskQueue`."""

    async def worker_details(self, tasks_max: int) -> list[dict[str, Any]]:
        """The live workers.

        `started_at` is a number, or None; `tasks` has pairs of a task and the seconds since the
        worker claimed it.
        """


class FleetHotStore(Protocol):
    """The hot store of a fleet: what it has beside `HotStore`."""

    async def orchestrator_details(self) -> list[dict[str, Any]]:
        """The live orchestrators: of each its `name`, and what it last announced as `about`."""

    async def inbox_length(self) -> int:
        """The events in all inboxes that aren't committed yet, counted."""


class ScaledFleet:
    """The fleet of a deployment: the workers and orchestrators that have announced themselves."""

    def __init__(self, stores: Stores, dead_seconds: float = DEAD_SECONDS) -> None:
        self._stores = stores
        self._dead_seconds = dead_seconds

    async def workers(self) -> list[views.Worker]:
        """The live workers.

        A worker that has been silent for so long that the reaper takes its tasks is left out.
        """
        queue = cast("FleetQueue", self._stores.queue)
        workers: list[views.Worker] = []
        for details in await queue.worker_details(views.TASKS_MAX):
            heartbeat_seconds = details.get("heartbeat_seconds") or 0.0
            dead_seconds = dead_after(self._dead_seconds, heartbeat_seconds)
            if details["seconds_since_heartbeat"] >= dead_seconds:
                continue

            handlers = details.get("handlers")
            worker = views.Worker(
                worker_id=details["worker_id"],
                queues=details["queues"],
                handlers=None if handlers is None else sorted(handlers),
                running=details["running"],
                heartbeats=details["heartbeats"],
                seconds_since_heartbeat=details["seconds_since_heartbeat"],
                started_at=time_text(details["started_at"]),
                tasks=views.tasks_view(details["tasks"]),
            )
            workers.append(worker)
        return workers

    async def orchestrators(self) -> list[views.Orchestrator]:
        hot = cast("FleetHotStore", self._stores.hot)
        return msgspec.convert(await hot.orchestrator_details(), list[views.Orchestrator])

    async def queues(self) -> list[views.Queue]:
        return await _queue_views(self._stores, self._dead_seconds)

    async def inbox(self) -> int:
        """The length of all inboxes, in entries of the streams.

        The entries are counted without being read, and one may hold several events.
        """
        return await cast("FleetHotStore", self._stores.hot).inbox_length()


async def _queue_views(stores: Stores, dead_seconds: float = DEAD_SECONDS) -> list[views.Queue]:
    depths = await stores.queue.depths()
    waits = Waiting(stores, dead_seconds)
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
