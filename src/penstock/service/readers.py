"""Buffers of readers of live events, and the batches that all readers share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.engine.commands import Transition
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import StoreUnavailable
from penstock.stores.records import FeedCursor, FeedEntry

BATCH_LINES = 250
"""Lines of a batch, about.

So encoding and sending a long history lets others have their turn.
"""


class FeedLine(NamedTuple):
    """A history line with the id that a reader goes on from."""

    seq: int
    id: str
    """Where to go on after it: `seq`, or in the commit feed a cursor with the line's index,
    such as `17.0`.
    """
    execution_id: str
    line: Transition


class Ending(NamedTuple):
    """The end of an execution."""

    execution_id: str
    state: str


class Batch:
    """A batch of history lines, in order.

    Every reader gets the same object, so what one makes of it serves the others.
    """

    __slots__ = ("bare", "cursor", "encoded", "ends", "feed_entries", "feed_lines", "next_cursor")

    def __init__(self, feed_lines: Sequence[FeedLine], ends: Ending | None = None) -> None:
        self.feed_lines = feed_lines
        self.ends = ends
        """The execution's end, in the last batch of one that has ended."""
        self.encoded: bytes | None = None
        """The bytes that the first reader has encoded.

        `bare` is the same without the lines of nodes.
        """
        self.bare: bytes | None = None
        self.cursor: FeedCursor = ()
        """In the commit feed: where a reader is before it; `next_cursor` is behind it, and the entries
        are in between.
        """
        self.next_cursor: FeedCursor = ()
        self.feed_entries: Sequence[FeedEntry] = ()

    @property
    def lines(self) -> list[Transition]:
        return [feed_line.line for feed_line in self.feed_lines]

    def after(self, seq: int) -> Batch:
        """This batch without what a reader of an execution already has."""
        feed_lines = self.feed_lines
        if not feed_lines or feed_lines[0].seq > seq:
            return self
        return Batch([feed_line for feed_line in feed_lines if feed_line.seq > seq], self.ends)

    def seen_from(self, cursor: FeedCursor) -> Batch:
        """This batch for a reader of all executions that isn't where most are.

        Without what it has, and with ids of its own.
        """
        if cursor == self.cursor:
            return self
        return batch_of(
            [
                feed_entry
                for feed_entry in self.feed_entries
                if feed_entry.position > cursor[feed_entry.partition]
            ],
            cursor,
        )


def of_execution(execution_id: str, lines: Sequence[Transition]) -> Iterator[Batch]:
    """The lines of an execution as batches, at least one."""
    for start in range(0, max(len(lines), 1), BATCH_LINES):
        piece = lines[start : start + BATCH_LINES]
        feed_lines = [FeedLine(line.seq, str(line.seq), execution_id, line) for line in piece]
        yield Batch(feed_lines, ending_of(execution_id, piece))


def ending_of(execution_id: str, lines: Sequence[Transition]) -> Ending | None:
    if lines and not lines[-1].node_id and lines[-1].after in EXECUTION_ENDS:
        return Ending(execution_id, str(lines[-1].after))
    return None


def of_feed_entries(feed_entries: Sequence[FeedEntry], cursor: FeedCursor) -> Iterator[Batch]:
    """Entries of the commit feed as batches, behind `cursor`.

    An entry isn't divided between batches.
    """
    first = size = 0
    for number, feed_entry in enumerate(feed_entries, start=1):
        size += len(feed_entry.lines)
        if size >= BATCH_LINES or number == len(feed_entries):
            yield (batch := batch_of(feed_entries[first:number], cursor))
            cursor, first, size = batch.next_cursor, number, 0


def batch_of(feed_entries: Sequence[FeedEntry], cursor: FeedCursor, seen: int = 0) -> Batch:
    """Entries as one batch, without the first lines of each that were `seen`."""
    here, feed_lines = list(cursor), []
    for feed_entry in feed_entries:
        position, partition, execution_id = (
            feed_entry.position,
            feed_entry.partition,
            feed_entry.execution_id,
        )
        here[partition] = position
        # the whole cursor, so that one id is enough to go on in all partitions; the index stands with
        # its partition
        before, later = _around(here, partition) if len(here) > 1 else ("", "")
        for index, line in enumerate(feed_entry.lines[seen:], seen):
            feed_lines.append(
                FeedLine(line.seq, f"{before}{position}.{index}{later}", execution_id, line)
            )
    batch = Batch(feed_lines)
    batch.cursor, batch.next_cursor, batch.feed_entries = cursor, tuple(here), feed_entries
    return batch


def _around(here: list[int], partition: int) -> tuple[str, str]:
    return "".join([f"{each}-" for each in here[:partition]]), "".join(
        [f"-{each}" for each in here[partition + 1 :]]
    )


class Buffer:
    """A buffer: the batches that wait for one reader.

    When it is full it is dropped, and the reader goes back to the store.
    """

    __slots__ = ("_batches", "_error", "_size_max", "_waiter", "behind", "closed", "size")

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._batches: list[Batch] = []
        self.size = 0
        """Lines in the buffer."""
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self.closed = False
        self.behind = True
        """The reader has to read the store: nothing is collected for it until it begins to."""

    @property
    def ended(self) -> bool:
        """The stream is over, and everything that was collected has been taken."""
        if not self.closed or self._batches:
            return False
        if self._error is not None:
            raise StoreUnavailable(f"the history can't be read: {self._error}") from self._error
        return True

    def collect(self) -> None:
        """Begin to collect, before reading the store.

        What is committed after that reading isn't in it.
        """
        self.behind = False

    def put(self, batch: Batch) -> None:
        if self.behind or self.closed:
            return
        size = len(batch.feed_lines)
        if (
            self._batches and self.size + size > self._size_max
        ):  # one batch always fits, however large
            self.fall_behind()
            return
        self._batches.append(batch)
        self.size += size
        self._wake()

    def fall_behind(self) -> None:
        self._batches, self.size = [], 0
        self.behind = True
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        self.closed, self._error = True, error
        self._wake()

    async def take(self, idle_seconds: float | None) -> list[Batch]:
        """Take the batches that have come.

        None after a while of silence, or if the reader is behind or at the end.
        """
        if not (self._batches or self.behind or self.closed):
            await self._wait(idle_seconds)
        batches, self._batches, self.size = self._batches, [], 0
        return batches

    async def _wait(self, idle_seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = None if idle_seconds is None else loop.call_later(idle_seconds, self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
