"""Takes tasks back from dead workers.

Dead means: its heartbeat counter hasn't moved for `DEAD_SECONDS` of the reaper's own uninterrupted time. Time in which
the reaper itself couldn't look (a pause, an outage of the store) counts for nobody, so an outage declares nobody dead.
"""

from __future__ import annotations

import asyncio
import logging

from penstock.stores.base import Lease, TaskQueue
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.orchestrator")

LOOK_SECONDS = 2.5
DEAD_SECONDS = 15.0


class Reaper:
    def __init__(self, queue: TaskQueue, lease: Lease, metrics: Metrics | None = None) -> None:
        self._queue, self._lease, self._metrics = queue, lease, metrics or Metrics()
        self._beats: dict[str, int] = {}
        self._silent_seconds: dict[str, float] = {}
        self.reaped = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = loop.time()
            await self.look(min(now - last, 2 * LOOK_SECONDS))
            last = loop.time()

    async def look(self, seconds: float) -> None:
        """`seconds` have passed since the last look."""
        workers = await self._queue.workers()
        for worker_id, beats in workers.items():
            if self._beats.get(worker_id) != beats:
                self._beats[worker_id], self._silent_seconds[worker_id] = beats, 0.0
                continue
            self._silent_seconds[worker_id] += seconds
            if self._silent_seconds[worker_id] >= DEAD_SECONDS:
                await self._reap(worker_id)
        for gone in self._beats.keys() - workers.keys():
            del self._beats[gone], self._silent_seconds[gone]

    async def _reap(self, worker_id: str) -> None:
        lost = await self._queue.reap(self._lease.partition, self._lease.token, worker_id)
        self.reaped += lost
        self._metrics.tasks_lost += lost
        self._silent_seconds[worker_id] = 0.0
        if lost:
            log.warning("worker %s is dead; %d of its tasks are taken back", worker_id, lost)
