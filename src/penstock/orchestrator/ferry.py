"""All that moves between a hot and a cold store that are two, for as long as a partition is owned."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from penstock.config import Timing
from penstock.engine.commands import Commands
from penstock.errors import Fenced, StoreError, StoreUnavailable
from penstock.orchestrator import rebuild
from penstock.orchestrator.archiver import LOOK_SECONDS, Archiver
from penstock.orchestrator.checkpointer import Checkpointer
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.transfer import Carrier
from penstock.stores.base import Stores
from penstock.stores.split import CLAIM_SECONDS, Split
from penstock.telemetry.metrics import Metrics

RENEW_SECONDS = CLAIM_SECONDS / 3
RELEASE_SECONDS = 1.0


class Ferry:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        split: Split,
        owner: PartitionOwner,
        plans: Plans,
        metrics: Metrics,
        *,
        timing: Timing | None = None,
    ) -> None:
        self._stores, self._split, self._lease, self._metrics = stores, split, owner.lease, metrics
        carrier = Carrier(split, owner, plans, metrics)
        look_seconds = timing.archive_seconds if timing is not None else LOOK_SECONDS
        self._archiver = Archiver(
            split.hot, carrier, owner.lease, metrics, stores.hot.now, look_seconds=look_seconds
        )
        checkpoint_seconds = timing.checkpoint_seconds if timing is not None else None
        self._checkpointer = Checkpointer(split.hot, carrier, metrics, checkpoint_seconds)
        self._is_claimed, self._is_built = asyncio.Event(), asyncio.Event()

    async def build(self, known_number: int) -> None:
        """Nothing moves before this: what an unbuilt store holds isn't true."""
        claimed = await rebuild.claim(self._split, self._lease)
        self._is_claimed.set()
        restored = await rebuild.build(
            self._stores,
            self._split,
            self._lease,
            claimed,
            known_number=known_number,
            metrics=self._metrics,
        )
        self._metrics.rebuilt += restored or 0  # not in one line: others count while this one waits
        self._is_built.set()

    async def keep_claim(self) -> None:
        """Raises `Fenced` when the partition was claimed by somebody else, on another server of the hot store.

        A cold store that is away gives it to nobody meanwhile.
        """
        await self._is_claimed.wait()
        partition, term = self._lease.partition, self._lease.term
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with contextlib.suppress(StoreUnavailable):
                server_id = await self._split.hot.server_id(
                    partition
                )  # it may be another since: a replica took over
                if not await self._split.cold.renew_claim(partition, term, server_id):
                    raise Fenced(f"partition {partition} was claimed on another Redis server")

    async def release_claim(self) -> None:
        """So that nobody waits for one that is gone.

        If it isn't heard, they wait for a few seconds.
        """
        if self._is_claimed.is_set():
            with contextlib.suppress(StoreError, TimeoutError):
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self._split.cold.release_claim(self._lease.partition, self._lease.term)

    def on_commit(self, changes: Sequence[Commands]) -> None:
        dirty, tells = self._checkpointer.dirty, False
        for commands in changes:
            if commands.finished:
                dirty.discard(commands.execution_id)
                tells = True
            else:
                dirty.add(commands.execution_id)
                tells = tells or commands.held is not None or bool(commands.dead_letters)
        if tells:
            self._archiver.wake()

    async def archive(self) -> None:
        await self._is_built.wait()
        await self._archiver.run()

    async def checkpoint(self) -> None:
        await self._is_built.wait()
        self._checkpointer.dirty.update(await self._stores.hot.active(self._lease.partition))
        await self._checkpointer.run()
