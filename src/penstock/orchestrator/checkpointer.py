"""Copies what runs into the cold store now and then: what a hot store that has lost its data is built again from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from penstock.config import Timing
from penstock.orchestrator.transfer import Carrier, Reader
from penstock.stores.split import Copy, HotSide, summary_from
from penstock.telemetry.metrics import Metrics

CHECKPOINT_SECONDS = Timing().checkpoint_seconds
PORTION = 200


class Checkpointer:
    def __init__(
        self, hot: HotSide, carrier: Carrier, metrics: Metrics, seconds: float | None = None
    ) -> None:
        """`seconds`: between two copies."""
        self._seconds = seconds
        self._reader, self._carrier, self._metrics = Reader(hot), carrier, metrics
        self.dirty: set[str] = set()
        """Executions that run and that have changed since their last copy.

        A new owner begins with all.
        """

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_SECONDS if self._seconds is None else self._seconds)
            await self.copy()

    async def copy(self) -> None:
        execution_ids = sorted(self.dirty)
        self.dirty.clear()
        if (
            not execution_ids
        ):  # then nothing else would notice that the cold store was put back to an older copy
            await self._carrier.check()
        while execution_ids:
            changes = await self._reader.read(execution_ids[:PORTION])
            execution_ids = execution_ids[len(changes) :]
            copies = _copies(changes)
            if copies:
                refused = await self._carrier.put(copies)
                self._metrics.checkpointed += len(copies) - len(refused)


def _copies(found: Mapping[str, list[bytes]]) -> list[Copy]:
    """Without those that have ended: the archiver brings them."""
    copies: list[Copy] = []
    for execution_id, changes in found.items():
        summary = summary_from(changes)
        if summary is not None and not summary.has_ended:
            copies.append(Copy(execution_id, summary, changes))
    return copies
