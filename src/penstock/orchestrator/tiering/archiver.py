"""Copies executions that have ended into the cold store, and lets them leave the hot one only then.

What the cold store has to hear of stands in the partition's outbox, written by the commits themselves. A call whose
outcome isn't known (`acknowledge_outbox`) ends the owner with it: done twice, it would take off what was never archived.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from penstock.config import Timing
from penstock.engine.commands import DeadLetter
from penstock.orchestrator.tiering.cold_writer import ColdWriter
from penstock.orchestrator.tiering.hot_reader import HotReader
from penstock.stores.base import Lease
from penstock.stores.tiering import Copy, HotTier, Outgoing, Summary, summary_from
from penstock.telemetry.metrics import Metrics

ENTRIES_MAX = 500
LOOK_SECONDS = Timing().archive_seconds
COLLECT_SECONDS = 0.1
"""Seconds to wait for more that ends: a transaction costs more than a wait that nobody sees."""


class Archiver:
    """Archives the executions of one partition.

    `now` is the store's clock; `look_seconds` pass at most between two looks into the outbox.
    """

    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        hot: HotTier,
        cold_writer: ColdWriter,
        lease: Lease,
        metrics: Metrics,
        now: Callable[[], float],
        *,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._look_seconds = look_seconds
        self._hot, self._cold_writer, self._lease, self._metrics, self._now = (
            hot,
            cold_writer,
            lease,
            metrics,
            now,
        )
        self._reader = HotReader(hot)
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wake the archiver: something was put in the outbox."""
        self._woken.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            await self.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_seconds):
                    await self._woken.wait()
                    await asyncio.sleep(COLLECT_SECONDS)

    async def drain(self) -> None:
        """Archive until the outbox is empty."""
        while entries := await self._hot.outbox(self._lease.partition, ENTRIES_MAX):
            await self._move(entries)
            if len(entries) < ENTRIES_MAX:
                await asyncio.sleep(COLLECT_SECONDS)

    async def _move(self, entries: Sequence[Outgoing]) -> None:
        dead_letters, summaries = _told(entries)
        reports = {entry.execution_id: entry.report for entry in entries if entry.report}
        refused = await self._put(
            [
                Copy(execution_id, None, [], those)
                for execution_id, those in dead_letters.items()
                if execution_id not in summaries
            ]
        )
        execution_ids = list(summaries)
        while execution_ids:
            changes = await self._reader.read(execution_ids)
            execution_ids = execution_ids[len(changes) :]
            copies = _copies(changes, summaries, dead_letters)
            for copy in copies:
                copy.report = reports.get(copy.execution_id, b"")
            refused |= await self._put(copies)
        ended = {
            entry.execution_id: entry.summary
            for entry in entries
            if entry.summary is not None
            and entry.summary.has_ended
            and entry.execution_id not in refused
        }
        await self._hot.acknowledge_outbox(self._lease, len(entries), list(ended))
        self._count(list(ended.values()))

    async def _put(self, copies: Sequence[Copy]) -> set[str]:
        if not copies:
            return set()
        # takes nothing, but is refused to a former owner: a store that lost its data between the
        # two readings would have had an end to tell, and nothing of how it came to that
        await self._hot.acknowledge_outbox(self._lease, 0, ())
        return await self._cold_writer.put(copies)

    def _count(self, ended: Sequence[Summary]) -> None:
        now = self._now()
        self._metrics.archived += len(ended)
        self._metrics.archive_seconds.observe(
            *[now - each.finished_at for each in ended if each.finished_at]
        )


def _told(entries: Sequence[Outgoing]) -> tuple[dict[str, list[DeadLetter]], dict[str, Summary]]:
    """Dead letters and last summaries in these entries, by execution."""
    dead_letters: dict[str, list[DeadLetter]] = {}
    summaries: dict[str, Summary] = {}
    for entry in entries:
        dead_letters.setdefault(entry.execution_id, []).extend(entry.dead_letters)
        if entry.summary is not None:
            summaries[entry.execution_id] = entry.summary
    return dead_letters, summaries


def _copies(
    changes: Mapping[str, list[bytes]],
    summaries: Mapping[str, Summary],
    dead_letters: Mapping[str, list[DeadLetter]],
) -> list[Copy]:
    copies: list[Copy] = []
    for execution_id, data in changes.items():
        summary = summaries[execution_id]
        if not summary.has_ended and data:
            summary = (
                summary_from(data) or summary
            )  # it may have gone on since: the copy says what is in it
        copies.append(Copy(execution_id, summary, data, dead_letters[execution_id]))
    return copies
