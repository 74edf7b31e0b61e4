"""The tiering of one partition, while it is owned: claim, rebuild, archiver, checkpointer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from penstock.engine.commands import ControlChild
from penstock.engine.events import SignalReceived
from penstock.engine.reasons import Reason
from penstock.errors import Fenced, StoreError, StoreUnavailable
from penstock.orchestrator.children import OUTPUT_BYTES_MAX, Relay, ends_of
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.tiering import rebuild
from penstock.orchestrator.tiering.archiver import Archiver
from penstock.orchestrator.tiering.checkpointer import Checkpointer
from penstock.orchestrator.tiering.cold_writer import ColdWriter
from penstock.orchestrator.tiering.portions import Portions
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.base import Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.plan_cache import PlanCache
from penstock.stores.tiering import Tiering
from penstock.telemetry.metrics import Metrics

FIRST_LOOK_SECONDS = 3600.0
"""How far back a new owner looks for children that have ended."""
LOOK_BACK_SECONDS = 60.0
"""How far every other look goes back behind the one before: for copies that take long."""


class PartitionTiering:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        tiering: Tiering,
        owner: PartitionOwner,
        plans: PlanCache,
        metrics: Metrics,
        *,
        timing: OrchestratorTiming,
    ) -> None:
        self._stores = stores
        self._tiering = tiering
        self._lease = owner.lease
        self._metrics = metrics
        self._timing = timing
        self._portions = portions = Portions()
        self._plans = plans
        self._owner = owner
        self._looked_at: float | None = None
        """When children were looked at last, on the loop's clock."""
        self._relay = Relay(stores, plans, OUTPUT_BYTES_MAX, timing)
        cold_writer = ColdWriter(tiering, owner, plans, metrics, timing=timing, portions=portions)
        self._archiver = Archiver(
            tiering.hot,
            cold_writer,
            owner.lease,
            metrics,
            stores.hot.now,
            timing=timing,
            portions=portions,
            relay=self._relay,
            deliver=self._deliver,
        )
        self._checkpointer = Checkpointer(
            tiering.hot, cold_writer, metrics, timing=timing, portions=portions
        )
        self._is_claimed = asyncio.Event()
        self._is_built = asyncio.Event()

    async def _deliver(self, signals: Sequence[SignalReceived]) -> None:
        """Put signals that are stored into the inbox; the reconciler finds those that aren't."""
        if not signals:
            return
        with contextlib.suppress(StoreError):
            await self._stores.hot.append(signals, own=True)

    async def build(self, known_number: int) -> None:
        """Claim the partition, and rebuild it if it has lost its data.

        Nothing is archived or checkpointed before this: what an unbuilt store holds isn't true.
        """
        claimed = await rebuild.claim(self._tiering, self._lease, self._timing)
        self._is_claimed.set()
        restored = await rebuild.build(
            self._stores,
            self._tiering,
            self._lease,
            claimed,
            known_number=known_number,
            metrics=self._metrics,
            timing=self._timing,
            portions=self._portions,
            relay=self._relay,
        )
        self._metrics.rebuilt += restored or 0  # not in one line: others count while this one waits
        self._is_built.set()

    async def look_at_children(self) -> None:
        """Tell parents of ends that they may have missed, and cancel children that were left.

        That is what a loss of the hot store may have taken from its outbox.
        """
        partition = self._lease.partition
        now = asyncio.get_running_loop().time()
        seconds = FIRST_LOOK_SECONDS
        if self._looked_at is not None:
            seconds = now - self._looked_at + LOOK_BACK_SECONDS
        ended = await self._tiering.cold.ended_children(partition, seconds)
        self._looked_at = now
        missed = [
            child.execution_id
            for child in ended
            if self._owner.may_await(child.parent, child.node_id, child.execution_id)
        ]
        told, _ = await ends_of(self._stores, self._plans, missed)
        if told:
            await self._relay.tell(told)
        left_behind = await self._tiering.cold.children_left_behind(partition)
        if left_behind:
            await self._relay.deliver(
                [ControlChild(child, "cancel", Reason.PARENT_ENDED) for child in left_behind]
            )

    async def watch_claim(self) -> None:
        """Renew the claim on the partition in the cold store, for ever.

        Raises `Fenced` when it was claimed by somebody else, on another server of the hot store. A
        cold store that is away gives it to nobody meanwhile.
        """
        await self._is_claimed.wait()
        partition = self._lease.partition
        term = self._lease.claim_term
        while True:
            await asyncio.sleep(self._timing.claim_renew_seconds)
            with contextlib.suppress(StoreUnavailable):
                # it may be another since: a replica took over
                server_id = await self._tiering.hot.server_id(partition)
                if not await self._tiering.cold.renew_claim(partition, term, server_id):
                    raise Fenced(f"partition {partition} was claimed on another Redis server")

    async def release_claim(self) -> None:
        """Release the claim, so that nobody waits for an owner that is gone.

        If the store doesn't answer, others wait for a few seconds.
        """
        if self._is_claimed.is_set():
            with contextlib.suppress(StoreError, TimeoutError):
                async with asyncio.timeout(self._timing.claim_release_seconds):
                    await self._tiering.cold.release_claim(
                        self._lease.partition, self._lease.claim_term
                    )

    def on_commit(self, plan: CommitPlan) -> None:
        """Called after each commit of the partition."""
        dirty = self._checkpointer.dirty
        dirty.update([execution_id for execution_id, _ in plan.changes])
        dirty.difference_update([ended.execution_id for ended in plan.ended])
        if plan.outbox:
            self._archiver.wake(at_once=bool(plan.sends))

    async def archive(self) -> None:
        await self._is_built.wait()
        await self._archiver.run()

    async def checkpoint(self) -> None:
        await self._is_built.wait()
        self._checkpointer.dirty.update(await self._stores.hot.active(self._lease.partition))
        await self._checkpointer.run()
