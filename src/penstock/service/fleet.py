"""Who does the work: workers, orchestrators, queues, as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from penstock.orchestrator.service import Orchestrator
from penstock.stores.base import Stores
from penstock.worker.runtime import Worker


class Fleet(Protocol):
    async def workers(self) -> list[dict[str, Any]]: ...
    async def orchestrators(self) -> list[dict[str, Any]]: ...
    async def queues(self) -> list[dict[str, Any]]: ...


class EmbeddedFleet:
    """One worker and one orchestrator, in this process."""

    def __init__(self, stores: Stores, worker: Worker, orchestrator: Orchestrator) -> None:
        self._stores, self._worker, self._orchestrator = stores, worker, orchestrator

    async def workers(self) -> list[dict[str, Any]]:
        beats: Mapping[str, int] = await self._stores.queue.workers()
        me = self._worker
        running, heartbeats = me.running, beats.get(me.worker_id, 0)
        return [{"worker_id": me.worker_id, "queues": sorted(me.queues), "running": running, "heartbeats": heartbeats}]

    async def orchestrators(self) -> list[dict[str, Any]]:
        return [{"name": self._orchestrator.name, "partitions": sorted(self._orchestrator.owned)}]

    async def queues(self) -> list[dict[str, Any]]:
        depths = await self._stores.queue.depths()
        return [
            {"queue": name, "waiting": waiting, "running": running}
            for name, (waiting, running) in sorted(depths.items())
        ]
