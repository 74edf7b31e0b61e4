"""The fleet: workers, orchestrators and queues, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Protocol, cast

from penstock.orchestrator.meter import inboxes
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.reaper import DEAD_SECONDS, dead_after
from penstock.orchestrator.view import time_text
from penstock.service.waiting import Waiting
from penstock.stores.base import Stores
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
        self._stores, self._worker, self._orchestrator = stores, worker, orchestrator

    async def workers(self) -> list[dict[str, Any]]:
        beats: Mapping[str, int] = await self._stores.queue.workers()
        me = self._worker
        about: dict[str, Any] = {
            "worker_id": me.worker_id,
            "queues": sorted(me.queues),
            "running": me.running,
        }
        about["handlers"] = sorted(me.registry.names)
        about["heartbeats"] = beats.get(me.worker_id, 0)
        return [{**about, "started_at": time_text(me.started_at), "tasks": _tasks(me.claimed())}]

    async def orchestrators(self) -> list[dict[str, Any]]:
        return [{"name": self._orchestrator.name, "partitions": sorted(self._orchestrator.owned)}]

    async def queues(self) -> list[dict[str, Any]]:
        return await _queues(self._stores)

    async def inbox(self) -> int:
        return sum((await inboxes(self._stores, self._orchestrator.owned)).values())


class FleetQueue(Protocol):
    """The task queue of a fleet.

    What one of a store that several processes share has beside `TaskQueue`, for the API's lists.
    """

    async def worker_details(self, tasks_max: int) -> list[dict[str, Any]]:
        """The live workers.

        `started_at` is a number, or None; `tasks` has pairs of a task and for how many seconds the
        worker has it.
        """


class FleetHotStore(Protocol):
    """The hot store of a fleet: what it has beside `HotStore`."""

    async def orchestrator_details(self) -> list[dict[str, Any]]:
        """The live orchestrators.

        `name`, and what it last announced as `about`, of each orchestrator that lives.
        """

    async def inbox_length(self) -> int:
        """The events in all inboxes that aren't committed yet, counted."""


class ScaledFleet:
    """The fleet of a deployment.

    Workers and orchestrators wherever they run, as they say of themselves in the store.
    """

    def __init__(self, stores: Stores, dead_seconds: float = DEAD_SECONDS) -> None:
        self._stores, self._dead_seconds = stores, dead_seconds

    async def workers(self) -> list[dict[str, Any]]:
        """The live workers.

        Without those that have been silent for so long that the reaper takes their tasks.
        """
        found = await cast("FleetQueue", self._stores.queue).worker_details(TASKS_MAX)
        return [
            {
                **each,
                "handlers": _sorted(each.get("handlers")),
                "started_at": time_text(each["started_at"]),
                "tasks": _tasks(each["tasks"]),
            }
            for each in found
            if each["seconds_since_heartbeat"]
            < dead_after(self._dead_seconds, each.pop("heartbeat_seconds", None) or 0.0)
        ]

    async def orchestrators(self) -> list[dict[str, Any]]:
        return await cast("FleetHotStore", self._stores.hot).orchestrator_details()

    async def queues(self) -> list[dict[str, Any]]:
        return await _queues(self._stores, self._dead_seconds)

    async def inbox(self) -> int:
        """The length of all inboxes, in entries of the streams.

        They are counted without being read.

        One may hold several events.
        """
        return await cast("FleetHotStore", self._stores.hot).inbox_length()


async def _queues(stores: Stores, dead_seconds: float = DEAD_SECONDS) -> list[dict[str, Any]]:
    depths, waits = await stores.queue.depths(), Waiting(stores, dead_seconds)
    offers = await waits.offers()
    untaken = {each.queue: each for each in reversed(await waits.untaken())}
    queues: list[dict[str, Any]] = []
    for name, (waiting, running) in sorted(depths.items()):
        wait = untaken.get(name)
        queues.append(
            {
                "queue": name,
                "waiting": waiting,
                "running": running,
                "workers": sum(name in offer.queues for offer in offers),
                "reason": wait.reason if wait else None,
                "reason_text": wait.text if wait else None,
            }
        )
    return queues


def _sorted(handlers: Iterable[str] | None) -> list[str] | None:
    return None if handlers is None else sorted(handlers)


def _tasks(claimed: Iterable[tuple[Any, float | None]]) -> list[dict[str, Any]]:
    """The views of tasks, or of what a store has read of them."""
    return [
        {
            "execution_id": task.execution_id,
            "node_id": task.node_id,
            "attempt": task.attempt,
            "handler": task.handler,
            "queue": task.queue,
            "workflow": task.workflow,
            "seconds": None if seconds is None else round(seconds, 3),
        }
        for task, seconds in islice(claimed, TASKS_MAX)
    ]
