"""Brings what has finished from the hot store into the cold one, and lets it leave the hot one only then.

What the cold store has to hear of stands in the partition's outbox, written by the commits themselves. A call whose
outcome isn't known (`taken`) ends the owner with it: done twice, it would take off what was never archived.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from penstock.config import Timing
from penstock.engine.commands import DeadLetter
from penstock.orchestrator.transfer import Carrier, Reader
from penstock.stores.base import Lease
from penstock.stores.split import Copy, HotSide, Outgoing, Summary, summary_from
from penstock.telemetry.metrics import Metrics

MOST_ENTRIES = 500
LOOK_SECONDS = Timing().archive_seconds
COLLECT_SECONDS = 0.1
"""What finishes together is archived together: a transaction costs more than a wait that nobody
sees.
"""


class Archiver:
    """`now` is the store's clock; `look_seconds` pass at most between two looks into the outbox."""

    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        hot: HotSide,
        carrier: Carrier,
        lease: Lease,
        metrics: Metrics,
        now: Callable[[], float],
        *,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._look_seconds = look_seconds
        self._hot, self._carrier, self._lease, self._metrics, self._now = (
            hot,
            carrier,
            lease,
            metrics,
            now,
        )
        self._reader = Reader(hot)
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something was put in the outbox."""
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
        """Until the outbox is empty."""
        while entries := await self._hot.outbox(self._lease.partition, MOST_ENTRIES):
            await self._move(entries)
            if len(entries) < MOST_ENTRIES:
                await asyncio.sleep(COLLECT_SECONDS)

    async def _move(self, entries: Sequence[Outgoing]) -> None:
        dead_letters, summaries = _told(entries)
        reports = {entry.execution_id: entry.report for entry in entries if entry.report}
        refused = await self._put(
            [
                Copy(name, None, [], those)
                for name, those in dead_letters.items()
                if name not in summaries
            ]
        )
        names = list(summaries)
        while names:
            changes = await self._reader.read(names)
            names = names[len(changes) :]
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
        await self._hot.taken(self._lease, len(entries), list(ended))
        self._count(list(ended.values()))

    async def _put(self, copies: Sequence[Copy]) -> set[str]:
        if not copies:
            return set()
        # takes nothing, but is refused to a former owner: a store that lost its data between the
        # two readings would have had an end to tell, and nothing of how it came to that
        await self._hot.taken(self._lease, 0, ())
        return await self._carrier.put(copies)

    def _count(self, ended: Sequence[Summary]) -> None:
        now = self._now()
        self._metrics.archived += len(ended)
        self._metrics.archive_seconds.observe(
            *[now - each.finished_at for each in ended if each.finished_at]
        )


def _told(entries: Sequence[Outgoing]) -> tuple[dict[str, list[DeadLetter]], dict[str, Summary]]:
    """By execution, whatever was said of it: its dead letters, and the last that was said of its state."""
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
    for name, data in changes.items():
        summary = summaries[name]
        if not summary.has_ended and data:
            summary = (
                summary_from(data) or summary
            )  # it may have gone on since: the copy says what is in it
        copies.append(Copy(name, summary, data, dead_letters[name]))
    return copies
