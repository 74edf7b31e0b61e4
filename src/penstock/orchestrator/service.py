"""The orchestrator: keeps leases on partitions and runs an owner for each.

Leases are renewed apart from the owners' loops, so a long decision doesn't lose one. An owner whose lease has moved on
finds out at its next commit at the latest: the store refuses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.commands import Commands
from penstock.errors import Fenced, StoreError
from penstock.orchestrator.meter import Meter, levels
from penstock.orchestrator.owner import Ended, Observer, PartitionOwner
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.reaper import Reaper
from penstock.orchestrator.recovery import recover, sweep
from penstock.stores.base import Lease, Stores
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.orchestrator")

LEASE_SECONDS = 5.0
RETRY_SECONDS = 0.2
RECONCILE_SECONDS = 10.0
DRAIN_SECONDS = 3.0
DRAIN_STEP_SECONDS = 0.002


class Orchestrator:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        plans: Plans,
        *,
        inline_max_bytes: int,
        observer: Observer | None = None,
        on_new_owner: Callable[[], None] | None = None,
        name: str = "",
        metrics: Metrics | None = None,
    ) -> None:
        self._stores, self._plans, self._observer, self._on_new_owner = stores, plans, observer, on_new_owner
        self._inline_max_bytes = inline_max_bytes
        self._metrics = metrics or Metrics()
        self._meter = Meter(metrics, stores.hot.now) if metrics is not None else None
        self.name = name or f"orchestrator-{os.getpid()}-{secrets.token_hex(3)}"
        self.owned: dict[int, PartitionOwner] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.recovered = asyncio.Event()
        """Set when the first partition's owner has looked at everything that was unfinished."""

    def start(self) -> None:
        self._metrics.levels = lambda: levels(self._stores, self.owned)
        self._tasks = [asyncio.create_task(self._tend(p)) for p in range(self._stores.hot.partitions)]

    async def stop(self) -> None:
        """What has been reported is recorded first, so that a clean stop costs nobody an attempt."""
        end = asyncio.get_running_loop().time() + DRAIN_SECONDS
        for owner in list(self.owned.values()):
            with contextlib.suppress(StoreError):
                while not await owner.is_idle() and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
                    await asyncio.sleep(DRAIN_STEP_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tend(self, partition: int) -> None:
        """Try to get the partition; own it while the lease holds; again."""
        while True:
            try:
                lease = await self._stores.hot.acquire(partition, self.name, LEASE_SECONDS)
                if lease is not None:
                    await self._own(lease)
                else:
                    await asyncio.sleep(LEASE_SECONDS / 4)
            except Fenced as error:
                log.info("%s: %s", self.name, error)
            except StoreError as error:
                log.warning("%s, partition %d: %s", self.name, partition, error)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("%s: the owner of partition %d broke; starting it again", self.name, partition)
                await asyncio.sleep(RETRY_SECONDS)

    async def _own(self, lease: Lease) -> None:
        owner = PartitionOwner(
            self._stores, lease, self._plans, inline_max_bytes=self._inline_max_bytes, observer=self._committed
        )
        self.owned[lease.partition] = owner
        works = (self._work(owner), self._renew(lease), self._reap(lease), self._reconcile(lease))
        services = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.wait(services, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._leave(lease, services)
        for service in services:
            if not service.cancelled() and (error := service.exception()) is not None:
                raise error

    def _committed(self, changes: Sequence[Commands], ended: Sequence[Ended]) -> None:
        if self._observer is not None:
            self._observer(changes, ended)
        if self._meter is not None:
            self._meter.committed(changes)

    async def _leave(self, lease: Lease, services: list[asyncio.Task[Any]]) -> None:
        self.owned.pop(lease.partition, None)
        for service in services:
            service.cancel()
        await asyncio.gather(*services, return_exceptions=True)
        with contextlib.suppress(StoreError):
            await self._stores.hot.release(lease)

    async def _work(self, owner: PartitionOwner) -> None:
        looked_at = await recover(self._stores, owner.lease.partition)
        self._metrics.recovered += looked_at
        self.recovered.set()
        if self._on_new_owner is not None:
            self._on_new_owner()
        await owner.run()

    async def _renew(self, lease: Lease) -> None:
        """Ends when the lease is lost."""
        last = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() - last < LEASE_SECONDS:
            await asyncio.sleep(LEASE_SECONDS / 4)
            with contextlib.suppress(StoreError):
                if not await self._stores.hot.renew(lease, LEASE_SECONDS):
                    return
                last = asyncio.get_running_loop().time()

    async def _reap(self, lease: Lease) -> None:
        await Reaper(self._stores.queue, lease, self._metrics).run()

    async def _reconcile(self, lease: Lease) -> None:
        """Accepted, but its start never reached the inbox: only possible where others write to the store too."""
        while True:
            await asyncio.sleep(RECONCILE_SECONDS)
            if self._stores.hot.keeps_tasks:
                found = await sweep(self._stores, lease.partition, RECONCILE_SECONDS)
                self._metrics.swept += found
