"""The archiver copies executions that have ended into the cold store.

Only then they leave the hot store. What must be written to the cold store is in the partition's
outbox, which the commits fill. If the outcome of `acknowledge_outbox` isn't known, the owner ends:
done twice, it would remove entries that were never archived.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain

from penstock.engine.commands import DeadLetter
from penstock.engine.events import ChildEnded, SignalReceived
from penstock.orchestrator.children import Relay
from penstock.orchestrator.tiering.cold_writer import ColdWriter
from penstock.orchestrator.tiering.hot_reader import HotReader
from penstock.orchestrator.tiering.portions import Portions
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.base import Lease
from penstock.stores.tiering import Copy, HotTier, Outgoing, Summary, Tail, summary_of_tail
from penstock.stores.waits import newest
from penstock.telemetry.metrics import Metrics


async def _deliver_later(_signals: Sequence[SignalReceived]) -> None:
    """Leave it to the reconciler."""


class Archiver:
    """Archives the executions of one partition. `now` is the store's clock."""

    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        hot: HotTier,
        cold_writer: ColdWriter,
        lease: Lease,
        metrics: Metrics,
        now: Callable[[], float],
        *,
        timing: OrchestratorTiming,
        portions: Portions,
        relay: Relay,
        deliver: Callable[[Sequence[SignalReceived]], Awaitable[None]] = _deliver_later,
    ) -> None:
        """`deliver` puts signals into the inbox."""
        self._timing = timing
        self._deliver = deliver
        self._relay = relay
        self._entries_max = portions.outbox_entries_max
        self._hot = hot
        self._cold_writer = cold_writer
        self._lease = lease
        self._metrics = metrics
        self._now = now
        self._reader = HotReader(hot, portions)
        self._woken = asyncio.Event()
        self._is_urgent = asyncio.Event()

    def wake(self, *, at_once: bool = False) -> None:
        """Wake the archiver: something was put in the outbox.

        `at_once`: another execution waits for it.
        """
        self._woken.set()
        if at_once:
            self._is_urgent.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            self._is_urgent.clear()
            await self.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timing.archive_seconds):
                    await self._woken.wait()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._timing.collect_seconds):
                            await self._is_urgent.wait()

    async def drain(self) -> None:
        """Archive until the outbox is empty."""
        while entries := await self._hot.outbox(self._lease.partition, self._entries_max):
            await self._move(entries)
            if len(entries) < self._entries_max:
                await asyncio.sleep(self._timing.collect_seconds)

    async def _move(self, entries: Sequence[Outgoing]) -> None:
        dead_letters, summaries = _by_execution(entries)
        waits = newest(chain.from_iterable(entry.waits for entry in entries))
        if waits:
            await self._hot.acknowledge_outbox(self._lease, 0, ())
            signals = await self._cold_writer.put_waits(waits)
            # one whose reply is lost is found by the reconciler
            await self._deliver(signals)
        sends = [send for entry in entries for send in entry.sends]
        downwards = [send for send in sends if not isinstance(send, ChildEnded)]
        if downwards:
            await self._hot.acknowledge_outbox(self._lease, 0, ())
            await self._relay.deliver(downwards)
        reports = {entry.execution_id: entry.report for entry in entries if entry.report}

        only_dead_letters = [
            Copy(execution_id, None, [], dead_letters[execution_id])
            for execution_id in dead_letters
            if execution_id not in summaries and dead_letters[execution_id]
        ]
        refused = await self._put(only_dead_letters)

        execution_ids = list(summaries)
        while execution_ids:
            tails = await self._reader.read(execution_ids)
            execution_ids = execution_ids[len(tails) :]
            copies = _copies(tails, summaries, dead_letters)
            for copy in copies:
                copy.report = reports.get(copy.execution_id, b"")
            refused |= await self._put(copies)

        ended: dict[str, Summary] = {}
        for entry in entries:
            if entry.summary is None or not entry.summary.has_ended:
                continue
            if entry.execution_id not in refused:
                ended[entry.execution_id] = entry.summary
        # durable before heard: the cold store has these ends, so no loss of the hot one undoes them
        told = [
            send for send in sends if isinstance(send, ChildEnded) and send.child not in refused
        ]
        if told:
            await self._relay.tell(told)
        await self._hot.acknowledge_outbox(self._lease, len(entries), list(ended))
        self._count(list(ended.values()))

    async def _put(self, copies: Sequence[Copy]) -> set[str]:
        if not copies:
            return set()
        # Acknowledges nothing, but is refused to a former owner: if the store lost its data between
        # the two reads, there would be an end to archive without the changes that led to it.
        await self._hot.acknowledge_outbox(self._lease, 0, ())
        return await self._cold_writer.put(copies)

    def _count(self, ended: Sequence[Summary]) -> None:
        now = self._now()
        self._metrics.archived += len(ended)
        self._metrics.archive_seconds.observe(
            *[now - summary.finished_at for summary in ended if summary.finished_at]
        )


def _by_execution(
    entries: Sequence[Outgoing],
) -> tuple[dict[str, list[DeadLetter]], dict[str, Summary]]:
    """Dead letters and last summaries in these entries, by execution."""
    dead_letters: dict[str, list[DeadLetter]] = {}
    summaries: dict[str, Summary] = {}
    for entry in entries:
        dead_letters.setdefault(entry.execution_id, []).extend(entry.dead_letters)
        if entry.summary is not None:
            summaries[entry.execution_id] = entry.summary
    return dead_letters, summaries


def _copies(
    tails: Mapping[str, Tail],
    summaries: Mapping[str, Summary],
    dead_letters: Mapping[str, list[DeadLetter]],
) -> list[Copy]:
    copies: list[Copy] = []
    for execution_id, tail in tails.items():
        summary = summaries[execution_id]
        if not summary.has_ended and (tail.changes or tail.copied):
            # the execution may have gone on since: the copy's summary must be that of its changes
            summary = summary_of_tail(tail) or summary
        copies.append(
            Copy(
                execution_id,
                summary,
                tail.changes,
                dead_letters[execution_id],
                first=tail.first,
            )
        )
    return copies
