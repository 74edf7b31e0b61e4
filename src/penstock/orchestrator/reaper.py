"""The reaper takes tasks back from dead workers.

A worker is dead if its heartbeat counter hasn't moved for `worker_dead_seconds` of the watch's own
uninterrupted time. Time in which the watch couldn't look (a pause, an outage of the store) doesn't
count, so an outage declares nobody dead. A worker may have other settings than the orchestrator:
one that announces slower heartbeats than that allows gets longer.

An orchestrator has one watch, for all workers and for as long as it lives; each partition that it
owns has a reaper. So a partition that moves to another orchestrator doesn't begin to count the
silence of its workers from nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

from penstock.errors import StoreError
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.base import Lease, TaskQueue
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.orchestrator")

BEATS_MISSED = 3
"""Heartbeats of a worker that must be missing, whatever an orchestrator's settings say."""
Announced: TypeAlias = Callable[[], Mapping[str, float]]
"""Answers the seconds between heartbeats that each worker announces, by its id."""


def dead_after(dead_seconds: float, heartbeat_seconds: float) -> float:
    """Seconds of silence after which a worker that announced this period (0: none) is dead."""
    return max(dead_seconds, BEATS_MISSED * heartbeat_seconds)


class WorkerWatch:
    """Watches for how long each worker has been silent."""

    def __init__(self, queue: TaskQueue, timing: OrchestratorTiming) -> None:
        self._queue = queue
        self._look_seconds = timing.reaper_seconds
        self._beats: dict[str, int] = {}
        self._silent_seconds: dict[str, float] = {}
        self._looked = asyncio.Event()

    @property
    def silent_seconds(self) -> Mapping[str, float]:
        return self._silent_seconds

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while True:
            now = loop.time()
            try:
                await self.look(min(now - last, 2 * self._look_seconds))
            except StoreError:
                self._forget()  # the owners complain of it
            except Exception:
                log.exception("the workers' heartbeats can't be read; trying again")
                self._forget()
            last = now
            await asyncio.sleep(self._look_seconds)

    def _forget(self) -> None:
        """Forget all silence: nobody could send heartbeats meanwhile."""
        self._beats.clear()
        self._silent_seconds.clear()

    async def look(self, seconds: float) -> None:
        """Look at the heartbeats; `seconds` have passed since the last look."""
        workers = await self._queue.workers()
        for worker_id, beats in workers.items():
            if self._beats.get(worker_id) != beats:
                self._beats[worker_id] = beats
                self._silent_seconds[worker_id] = 0.0
            else:
                self._silent_seconds[worker_id] += seconds
        for worker_id in self._beats.keys() - workers.keys():
            del self._beats[worker_id]
            del self._silent_seconds[worker_id]

        looked = self._looked
        self._looked = asyncio.Event()
        looked.set()

    async def next_look(self) -> None:
        """Wait for the next look."""
        await self._looked.wait()


class Reaper:
    """Takes the tasks of dead workers back in one partition, for as long as its lease holds."""

    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        queue: TaskQueue,
        lease: Lease,
        metrics: Metrics | None = None,
        watch: WorkerWatch | None = None,
        *,
        timing: OrchestratorTiming,
        announced: Announced = dict,
    ) -> None:
        self._queue = queue
        self._lease = lease
        self._metrics = metrics or Metrics()
        self._dead_seconds = timing.worker_dead_seconds
        self._announced = announced
        self._watch = watch or WorkerWatch(queue, timing)
        self._reaped_at: dict[str, float] = {}
        """Seconds for which workers had been silent when their tasks were taken back."""
        self.reaped = 0

    async def run(self) -> None:
        while True:
            await self._watch.next_look()
            await self.reap_dead()

    async def reap_dead(self) -> None:
        """Take the tasks of dead workers back.

        Raises `Fenced` if the partition has another owner by now.
        """
        silent = dict(self._watch.silent_seconds)
        announced = self._announced()
        for worker_id, seconds in silent.items():
            limit = dead_after(self._dead_seconds, announced.get(worker_id, 0.0))
            # again after as long a time: a call of the dead may have landed late, and claimed a
            # task for it
            if seconds - self._reaped_at.get(worker_id, 0.0) >= limit:
                await self._reap(worker_id)
                self._reaped_at[worker_id] = seconds
        self._reaped_at = {
            worker_id: at
            for worker_id, at in self._reaped_at.items()
            if silent.get(worker_id, 0.0) >= at
        }

    async def _reap(self, worker_id: str) -> None:
        lost = await self._queue.reap(self._lease.partition, self._lease.token, worker_id)
        self.reaped += lost
        self._metrics.tasks_lost += lost
        if lost:
            log.warning("worker %s is dead; %d of its tasks are taken back", worker_id, lost)
