"""All that moves between a hot and a cold store that are two, for as long as a partition is owned."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from penstock.config import Timing
from penstock.engine.commands import Commands
from penstock.orchestrator import rebuild
from penstock.orchestrator.archiver import LOOK_SECONDS, Archiver
from penstock.orchestrator.checkpointer import Checkpointer
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.transfer import Carrier
from penstock.stores.base import Stores
from penstock.stores.split import Split
from penstock.telemetry.metrics import Metrics


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
        self._archiver = Archiver(split.hot, carrier, owner.lease, metrics, stores.hot.now, look_seconds=look_seconds)
        self._checkpointer = Checkpointer(
            split.hot, carrier, metrics, timing.checkpoint_seconds if timing is not None else None
        )
        self._is_built = asyncio.Event()

    async def build(self, known_number: int) -> None:
        """Nothing moves before this: what an unbuilt store holds isn't true."""
        restored = await rebuild.build(self._stores, self._split, self._lease, known_number, self._metrics)
        self._metrics.rebuilt += restored or 0  # not in one line: others count while this one waits
        self._is_built.set()

    def committed(self, changes: Sequence[Commands]) -> None:
        dirty, tells = self._checkpointer.dirty, False
        for commands in changes:
            if commands.finished:
                dirty.discard(commands.execution_id)
                tells = True
            else:
                dirty.add(commands.execution_id)
                tells = tells or commands.held is not None or bool(commands.dead_letters)
        if tells:
            self._archiver.tell()

    async def archive(self) -> None:
        await self._is_built.wait()
        await self._archiver.run()

    async def checkpoint(self) -> None:
        await self._is_built.wait()
        self._checkpointer.dirty.update(await self._stores.hot.active(self._lease.partition))
        await self._checkpointer.run()
