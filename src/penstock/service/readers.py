"""Buffers of readers of live events, and the batches that all readers share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.engine.commands import Transition
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import StoreUnavailable
from penstock.stores.records import FeedCursor, FeedEntry
from penstock.views.nodes import ItemCounts

BATCH_LINES = 250
"""Lines of a batch, about: a long history is encoded and sent in parts, so others get a turn."""


class FeedLine(NamedTuple):
    """A history line with the id that a reader goes on from."""

    seq: int
    id: str
    """The id to continue after: `seq`, or in the commit feed a cursor with the line's index, such
    as `17.0`.
    """
    execution_id: str
    line: Transition


class Ending(NamedTuple):
    """The end of an execution."""

    execution_id: str
    state: str


class Counts(NamedTuple):
    """How the items of a map, or the rounds of a loop, stand."""

    execution_id: str
    node_id: str
    items: ItemCounts


class Batch:
    """A batch of history lines, in order.

    All readers share the object, and with it what the first one has encoded.
    """

    __slots__ = (
        "bare",
        "counts",
        "cursor",
        "encoded",
        "ends",
        "feed_entries",
        "feed_lines",
        "next_cursor",
        "skipped_id",
    )

    def __init__(self, feed_lines: Sequence[FeedLine], ends: Ending | None = None) -> None:
        self.feed_lines = feed_lines
        self.ends = ends
        """The execution's end, in the last batch of one that has ended."""
        self.encoded: bytes | None = None
        """The bytes that the first reader has encoded."""
        self.bare: bytes | None = None
        """As `encoded`, without the lines of nodes."""
        self.cursor: FeedCursor = ()
        """In the commit feed: the cursor before this batch."""
        self.next_cursor: FeedCursor = ()
        """In the commit feed: the cursor after this batch."""
        self.feed_entries: Sequence[FeedEntry] = ()
        """In the commit feed: the entries between the two cursors."""
        self.counts: Sequence[Counts] = ()
        """Counts in place of lines that were left out. They come before the lines, so that the
        counts of a map are complete when it ends."""
        self.skipped_id = ""
        """The id of a line that was left out after the others: a reader goes on from it."""

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
        """This batch for a reader of all executions that is at another cursor.

        It lacks what that reader already has, and its ids begin from that cursor.
        """
        if cursor == self.cursor:
            return self
        unseen = [
            feed_entry
            for feed_entry in self.feed_entries
            if feed_entry.position > cursor[feed_entry.partition]
        ]
        return batch_of(unseen, cursor)


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
    first = 0
    size = 0
    for number, feed_entry in enumerate(feed_entries, start=1):
        size += len(feed_entry.lines)
        if size >= BATCH_LINES or number == len(feed_entries):
            batch = batch_of(feed_entries[first:number], cursor)
            yield batch
            cursor = batch.next_cursor
            first = number
            size = 0


def batch_of(feed_entries: Sequence[FeedEntry], cursor: FeedCursor, seen: int = 0) -> Batch:
    """Entries as one batch, without the first `seen` lines of each."""
    positions = list(cursor)
    feed_lines: list[FeedLine] = []
    for feed_entry in feed_entries:
        position = feed_entry.position
        partition = feed_entry.partition
        execution_id = feed_entry.execution_id
        positions[partition] = position

        # An id has the positions of all partitions, so that one id is enough to continue in all of
        # them. The line's index follows the position of its own partition.
        prefix = suffix = ""
        if len(positions) > 1:
            prefix, suffix = _other_positions(positions, partition)
        for index, line in enumerate(feed_entry.lines[seen:], seen):
            event_id = f"{prefix}{position}.{index}{suffix}"
            feed_lines.append(FeedLine(line.seq, event_id, execution_id, line))

    batch = Batch(feed_lines)
    batch.cursor = cursor
    batch.next_cursor = tuple(positions)
    batch.feed_entries = feed_entries
    return batch


def _other_positions(positions: list[int], partition: int) -> tuple[str, str]:
    """The positions before and after that of a partition, as parts of an id."""
    prefix = "".join([f"{position}-" for position in positions[:partition]])
    suffix = "".join([f"-{position}" for position in positions[partition + 1 :]])
    return prefix, suffix


class Buffer:
    """A buffer: the batches that wait for one reader.

    When it is full it is emptied, and the reader reads the store again.
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
        """Begin to collect. Called before the store is read, so that no commit is missed."""
        self.behind = False

    def put(self, batch: Batch) -> None:
        if self.behind or self.closed:
            return
        size = len(batch.feed_lines)
        # one batch always fits, however large
        if self._batches and self.size + size > self._size_max:
            self.fall_behind()
            return
        self._batches.append(batch)
        self.size += size
        self._wake()

    def fall_behind(self) -> None:
        self._batches = []
        self.size = 0
        self.behind = True
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        self.closed = True
        self._error = error
        self._wake()

    async def take(self, idle_seconds: float | None) -> list[Batch]:
        """Take the batches that have come.

        An empty list after `idle_seconds` without one, or if the reader is behind or at the end.
        """
        if not (self._batches or self.behind or self.closed):
            await self._wait(idle_seconds)
        batches = self._batches
        self._batches = []
        self.size = 0
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
