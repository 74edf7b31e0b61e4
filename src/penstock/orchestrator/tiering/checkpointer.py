"""The checkpointer copies running executions into the cold store, every few seconds.

A checkpoint has only what is new since the last one. A hot store that has lost its data is rebuilt
from these checkpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from penstock.orchestrator.tiering.cold_writer import ColdWriter
from penstock.orchestrator.tiering.hot_reader import HotReader
from penstock.orchestrator.tiering.portions import Portions
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.tiering import Copy, HotTier, Tail, summary_of_tail
from penstock.telemetry.metrics import Metrics


class Checkpointer:
    def __init__(
        self,
        hot: HotTier,
        cold_writer: ColdWriter,
        metrics: Metrics,
        *,
        timing: OrchestratorTiming,
        portions: Portions,
    ) -> None:
        self._seconds = timing.checkpoint_seconds
        self._executions_max = portions.checkpoint_executions_max
        self._reader = HotReader(hot, portions)
        self._cold_writer = cold_writer
        self._metrics = metrics
        self.dirty: set[str] = set()
        """Executions that run and that have changed since their last copy.

        A new owner begins with all.
        """

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            await self.copy()

    async def copy(self) -> None:
        execution_ids = sorted(self.dirty)
        self.dirty.clear()
        if not execution_ids:
            # nothing else would notice now that the cold store was put back to an older copy
            await self._cold_writer.check()

        while execution_ids:
            tails = await self._reader.read(execution_ids[: self._executions_max])
            execution_ids = execution_ids[len(tails) :]
            copies = _copies(tails)
            if copies:
                refused = await self._cold_writer.put(copies)
                self._metrics.checkpointed += len(copies) - len(refused)


def _copies(tails: Mapping[str, Tail]) -> list[Copy]:
    """Copies of executions that run; the archiver copies those that have ended.

    An empty tail is copied too: the cold store checks whether it has what comes before.
    """
    copies: list[Copy] = []
    for execution_id, tail in tails.items():
        summary = summary_of_tail(tail)
        if summary is not None and not summary.has_ended:
            copies.append(Copy(execution_id, summary, tail.changes, first=tail.first))
    return copies
