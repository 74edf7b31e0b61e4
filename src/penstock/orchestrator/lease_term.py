"""A lease term: the time for which an orchestrator owns a partition, and all that runs in it.

All of it ends together, with the lease. Not to be confused with the `claim_term` of a lease, which
is the number of a claim on the partition in the cold store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.engine.commands import Commands
from penstock.errors import StoreError, StoreUnavailable
from penstock.orchestrator.backlog import BacklogWatch
from penstock.orchestrator.owner import Ended, Observer, PartitionOwner
from penstock.orchestrator.reaper import Reaper, WorkerWatch
from penstock.orchestrator.recovery import recover, sweep
from penstock.orchestrator.routing import Routing
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import Sandbox
from penstock.stores.base import Lease, Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.plan_cache import PlanCache
from penstock.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from penstock.orchestrator.tiering.partition import PartitionTiering

log = logging.getLogger("penstock.orchestrator")

REST_STEP_SECONDS = 0.002


class LeaseTerm:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        lease: Lease,
        plans: PlanCache,
        *,
        inline_max_bytes: int,
        sandbox: Sandbox,
        metrics: Metrics,
        observer: Observer,
        on_begun: Callable[[], None],
        known_number: int = 0,
        timing: OrchestratorTiming,
        watch: WorkerWatch,
        routing: Routing,
        large_turn: asyncio.Lock | None = None,
    ) -> None:
        self._stores = stores
        self._plans = plans
        self.lease = lease
        self._metrics = metrics
        self._observer = observer
        self._on_begun = on_begun
        self._known_number = known_number
        self._timing = timing
        self._watch = watch
        self._routing = routing
        self.owner = PartitionOwner(
            stores,
            lease,
            plans,
            inline_max_bytes=inline_max_bytes,
            sandbox=sandbox,
            timing=timing,
            observer=self._on_commit,
            routing=routing,
            large_turn=large_turn,
        )
        self._topology = stores.topology
        self._backlog = BacklogWatch(stores.queue, lease, routing, timing)
        self._leaving = asyncio.Event()
        self._tiering: PartitionTiering | None = None
        if stores.tiering is not None:
            # an embedded engine has no use for it
            from penstock.orchestrator.tiering.partition import PartitionTiering  # noqa: PLC0415

            self._tiering = PartitionTiering(
                stores, stores.tiering, self.owner, plans, metrics, timing=timing
            )

    async def run(self) -> None:
        """Run the lease term until one of its parts ends or fails; raises what that raised.

        The lease is released in any case.
        """
        works = [self._work(), self._renew(), self._reap(), self._backlog.run(), self._retire()]
        if self._topology.tasks_are_durable:
            works.append(self._reconcile())
        if self._tiering is not None:
            works += [
                self._tiering.archive(),
                self._tiering.checkpoint(),
                self._tiering.watch_claim(),
            ]

        services = [asyncio.create_task(work) for work in works]
        try:
            await asyncio.wait(services, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # what is on its way to the store lands first: whoever comes next must find it
            await _ended(services, self._timing.lease_seconds)
            with contextlib.suppress(StoreError):
                await self._stores.hot.release(self.lease)
            if self._tiering is not None:
                await self._tiering.release_claim()

        for service in services:
            error = None if service.cancelled() else service.exception()
            if error is not None:
                raise error

    def leave(self) -> None:
        """Give the partition up, as soon as what was decided has landed."""
        self._leaving.set()

    def _on_commit(
        self, plan: CommitPlan, changes: Sequence[Commands], ended: Sequence[Ended]
    ) -> None:
        self._observer(plan, changes, ended)
        if self._tiering is not None:
            self._tiering.on_commit(plan)

    async def _work(self) -> None:
        if self._tiering is not None:
            await self._tiering.build(self._known_number)
        looked_at = await self._recover()
        self._metrics.recovered += looked_at  # not in one line: others count while this one waits
        self._on_begun()
        await self.owner.run()

    async def _recover(self) -> int:
        try:
            return await recover(
                self._stores, self._plans, self.lease.partition, self.lease.position
            )
        except StoreUnavailable as error:
            if not self._topology.tasks_are_durable:
                raise
            # what runs goes on; the reconciler looks for the rest again, and a hot store that is
            # gone ends the owner
            log.warning(
                "partition %d: the search for lost starts is put off: %s",
                self.lease.partition,
                error,
            )
            return 0

    async def _retire(self) -> None:
        await self._leaving.wait()
        self.owner.retire()
        while not self.owner.is_at_rest:  # noqa: ASYNC110 -- for a few milliseconds, and rarely
            await asyncio.sleep(REST_STEP_SECONDS)

    async def _renew(self) -> None:
        """Renew the lease; ends when it is lost, or may be.

        A store that can't be reached may have given it to another.
        """
        loop = asyncio.get_running_loop()
        lease_seconds = self._timing.lease_seconds
        last = loop.time()
        while loop.time() - last < lease_seconds:
            await asyncio.sleep(lease_seconds / 4)
            asked_at = loop.time()
            with contextlib.suppress(StoreError, TimeoutError):
                async with asyncio.timeout_at(last + lease_seconds):
                    if not await self._stores.hot.renew(self.lease, lease_seconds):
                        return
                last = asked_at

    async def _reap(self) -> None:
        reaper = Reaper(
            self._stores.queue,
            self.lease,
            self._metrics,
            self._watch,
            timing=self._timing,
            announced=lambda: self._routing.announced,
        )
        await reaper.run()

    async def _reconcile(self) -> None:
        """Start executions that were accepted and whose start never reached the inbox.

        Only possible where others write to the store too.
        """
        while True:
            await asyncio.sleep(self._timing.reconcile_seconds)
            # a cold store that is away must not end the owner; a hot one does so by itself
            with contextlib.suppress(StoreUnavailable):
                lease = self.lease
                lost = await sweep(
                    self._stores, lease.partition, self._timing.stale_seconds, lease.position
                )
                self._metrics.swept += lost
                if self._tiering is not None:
                    await self._tiering.look_at_children()


async def _ended(services: Sequence[asyncio.Task[None]], patience: float) -> None:
    """Cancel the services, and again those that go on.

    A library may take a cancellation for a failure of its own, and try again; a partition whose
    owner never ends is nobody's.
    """
    left = set(services)
    while left:
        for service in left:
            service.cancel()
        _, left = await asyncio.wait(left, timeout=patience)
