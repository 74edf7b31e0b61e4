"""The orchestrator: keeps leases on its share of the partitions and runs an owner for each.

Leases are renewed apart from the owners' loops, so a long decision doesn't lose one. An owner whose
lease has moved on finds out at its next commit at the latest: the store refuses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Sequence

from penstock.config import Settings
from penstock.engine.commands import Commands
from penstock.errors import Fenced, StoreError
from penstock.orchestrator import balance
from penstock.orchestrator.lease_term import LeaseTerm
from penstock.orchestrator.meter import Meter, levels
from penstock.orchestrator.outcomes import log_outcomes
from penstock.orchestrator.owner import Ended, Observer, PartitionOwner
from penstock.orchestrator.reaper import WorkerWatch
from penstock.orchestrator.routing import Routing
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import Sandbox, sandbox_of
from penstock.stores.base import Lease, Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.fleet import OrchestratorDetails
from penstock.stores.plan_cache import PlanCache
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.outcomes import OutcomeLog

log = logging.getLogger("penstock.orchestrator")

WARN_SECONDS = 30.0
DRAIN_STEP_SECONDS = 0.002
# Times in leases. A dead orchestrator is noticed before its leases end, so that its partitions are
# asked for at the moment when they are free.
ANNOUNCE_LEASES = 0.2
"""How often an orchestrator announces itself."""
MEMBERSHIP_LEASES = 0.8
"""For how long it is a member after that."""
POLL_LEASES = 0.05
"""How often one below its share looks for partitions."""


class Orchestrator:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        plans: PlanCache,
        *,
        inline_max_bytes: int,
        sandbox: Sandbox | None = None,
        observer: Observer | None = None,
        on_new_owner: Callable[[], None] | None = None,
        name: str = "",
        metrics: Metrics | None = None,
        outcome_log: OutcomeLog | None = None,
        timing: OrchestratorTiming | None = None,
    ) -> None:
        timing = timing or OrchestratorTiming()
        self.timing = timing
        self._stores = stores
        self._plans = plans
        self._observer = observer
        self._on_new_owner = on_new_owner
        self._inline_max_bytes = inline_max_bytes
        self._sandbox: Sandbox = sandbox or sandbox_of(Settings())
        self.routing = Routing(stores.queue, timing)
        self._large_turn = asyncio.Lock()
        self._metrics = metrics or Metrics()
        self._meter = Meter(metrics, stores.hot.now) if metrics is not None else None
        self._outcome_log = outcome_log
        self.name = name or f"orchestrator-{os.getpid()}-{secrets.token_hex(3)}"
        self.owned: dict[int, PartitionOwner] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._tended: dict[int, asyncio.Task[None]] = {}
        """Tasks that own partitions, also one that is about to be owned again after a failure."""
        self._lease_terms: dict[int, LeaseTerm] = {}
        self._leaving: set[int] = set()
        self._numbers: dict[int, int] = {}
        """The last commit number that was seen to land, by partition.

        A store below it has gone back in time.
        """
        self._members: list[str] = [self.name]
        """Names of the orchestrators that live, sorted."""
        self._announce_at = 0.0
        self._warned: dict[int | None, tuple[str, float]] = {}
        self._stopping = False
        self._watch = WorkerWatch(stores.queue, timing)
        self.recovered = asyncio.Event()
        """Set when the first partition's owner has looked at everything that was unfinished."""

    def start(self) -> None:
        self._metrics.levels = lambda: levels(self._stores, self.owned)
        self._plans.live = self.routing.defaults
        services = (self._run_balancing(), self._watch.run(), self.routing.run())
        self._tasks = [asyncio.create_task(service) for service in services]

    async def stop(self) -> None:
        """Hand all partitions over.

        What has been reported is recorded first, so that it costs nobody an attempt.
        """
        self._stopping = True
        await self._deregister()
        if not self._stores.topology.is_tiered:  # else the inbox is still there for the next owner
            await self._drain()

        for partition in self._tended:
            self._give_up(partition)
        if self._tended:
            await asyncio.wait(self._tended.values(), timeout=self.timing.drain_seconds)

        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._deregister()  # again: it may just have announced itself
        if self._outcome_log is not None:
            self._outcome_log.close()
        await self._sandbox.close()  # whoever shares it gets new processes

    async def _deregister(self) -> None:
        with contextlib.suppress(StoreError):
            await self._stores.hot.deregister(self.name)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.timing.drain_seconds
        for owner in list(self.owned.values()):
            with contextlib.suppress(StoreError):
                while not await owner.is_idle() and loop.time() < end:  # noqa: ASYNC110
                    await asyncio.sleep(DRAIN_STEP_SECONDS)

    async def _run_balancing(self) -> None:
        try:
            while True:  # noqa: ASYNC110 -- what others do can't wake it
                await asyncio.sleep(await self._look())
        finally:
            for tending in self._tended.values():
                tending.cancel()
            await asyncio.gather(*self._tended.values(), return_exceptions=True)

    async def _look(self) -> float:
        """Announce itself, and take or give up partitions.

        Returns the seconds after which to look again.
        """
        try:
            if not self._stopping:
                await self._announce()
                return await self._rebalance()
        except StoreError as error:
            self._warn(None, error)
        except Exception:
            log.exception("%s could not balance its partitions; trying again", self.name)
        return self.timing.retry_seconds

    async def _announce(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._announce_at:
            lease_seconds = self.timing.lease_seconds
            about = OrchestratorDetails(sorted(self.owned), os.getpid())
            self._members = await self._stores.hot.announce(
                self.name, MEMBERSHIP_LEASES * lease_seconds, about
            )
            self._announce_at = now + ANNOUNCE_LEASES * lease_seconds

    async def _rebalance(self) -> float:
        share = balance.share(self._stores.hot.partitions, self._members, self.name)
        remaining = self._in_order(self._tended.keys() - self._leaving)
        for partition in remaining[share:]:
            self._give_up(partition)
        if len(remaining) < share:
            await self._take(share - len(remaining))

        seconds = max(0.0, self._announce_at - asyncio.get_running_loop().time())
        is_short = len(self._tended.keys() - self._leaving) < share
        if is_short:
            return min(seconds, POLL_LEASES * self.timing.lease_seconds)
        return seconds

    async def _take(self, wanted: int) -> None:
        partitions = set(range(self._stores.hot.partitions))
        for partition in self._in_order(partitions - self._tended.keys()):
            lease = await self._acquire(partition)
            if lease is not None:
                self._tended[partition] = asyncio.create_task(self._tend(lease))
                wanted -= 1
            if not wanted:
                return

    async def _acquire(self, partition: int) -> Lease | None:
        return await self._stores.hot.acquire(partition, self.name, self.timing.lease_seconds)

    def _in_order(self, partitions: Iterable[int]) -> list[int]:
        return balance.by_preference(partitions, self._members, self.name)

    def _give_up(self, partition: int) -> None:
        self._leaving.add(partition)
        if partition in self._lease_terms:
            self._lease_terms[partition].leave()

    async def _tend(self, first: Lease) -> None:
        """Own the partition, again and again, until somebody else has it or it is given up."""
        partition = first.partition
        lease: Lease | None = first
        try:
            while lease is not None:
                await self._own(lease)
                lease = await self._acquire_again(partition)
        finally:
            del self._tended[partition]
            self._leaving.discard(partition)

    async def _acquire_again(self, partition: int) -> Lease | None:
        while partition not in self._leaving:
            try:
                return await self._acquire(partition)
            except StoreError as error:
                self._warn(partition, error)
                await asyncio.sleep(self.timing.retry_seconds)
        return None

    async def _own(self, lease: Lease) -> None:
        """Own a partition for as long as the lease holds and nothing goes wrong."""
        partition = lease.partition
        if partition in self._leaving:
            with contextlib.suppress(StoreError):
                await self._stores.hot.release(lease)
            return

        lease_term = self._new_lease_term(lease)
        self._lease_terms[partition] = lease_term
        self.owned[partition] = lease_term.owner
        try:
            await lease_term.run()
        except Fenced as error:
            self._metrics.fenced += 1
            log.info("%s: %s", self.name, error)
        except StoreError as error:
            self._warn(partition, error)
            await asyncio.sleep(self.timing.retry_seconds)
        except Exception:
            log.exception(
                "%s: the owner of partition %d broke; starting it again", self.name, partition
            )
            await asyncio.sleep(self.timing.retry_seconds)
        finally:
            del self.owned[partition]
            del self._lease_terms[partition]
            self._numbers[partition] = max(lease.commit_number, self._numbers.get(partition, 0))

    def _warn(self, partition: int | None, error: StoreError) -> None:
        """Log a store's error: once for a store that stays away, and again now and then."""
        now = asyncio.get_running_loop().time()
        text = str(error)
        before, at = self._warned.get(partition, ("", 0.0))
        if text != before or now - at >= WARN_SECONDS:
            self._warned[partition] = (text, now)
            log.warning(
                "%s, partition %s: %s", self.name, "-" if partition is None else partition, text
            )

    def _new_lease_term(self, lease: Lease) -> LeaseTerm:
        return LeaseTerm(
            self._stores,
            lease,
            self._plans,
            inline_max_bytes=self._inline_max_bytes,
            sandbox=self._sandbox,
            metrics=self._metrics,
            observer=self._on_commit,
            on_begun=self._begun,
            known_number=self._numbers.get(lease.partition, 0),
            timing=self.timing,
            watch=self._watch,
            routing=self.routing,
            large_turn=self._large_turn,
        )

    def _begun(self) -> None:
        self.recovered.set()
        if self._on_new_owner is not None:
            self._on_new_owner()

    def _on_commit(
        self, plan: CommitPlan, changes: Sequence[Commands], ended: Sequence[Ended]
    ) -> None:
        if self._observer is not None:
            self._observer(plan, changes, ended)
        if self._meter is not None:
            self._meter.on_commit(changes)
        if self._outcome_log is not None:
            log_outcomes(self._outcome_log, changes)
