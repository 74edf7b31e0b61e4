"""What waits for one reader of live events, and the batches that all readers share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.engine.commands import Transition
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import StoreUnavailable
from penstock.stores.records import FeedPart, Place

BATCH_LINES = 250
"""About, so that encoding and sending a long history lets others have their turn."""


class Entry(NamedTuple):
    seq: int
    id: str
    """Where to go on after it: `seq`, or in the feed of all executions a place in it, such as
    `17.0`.
    """
    execution_id: str
    line: Transition


class Ending(NamedTuple):
    execution_id: str
    state: str


class Batch:
    """Some lines in order.

    Every reader gets the same object, so what one makes of it serves the others.
    """

    __slots__ = ("bare", "behind", "encoded", "ends", "entries", "parts", "start")

    def __init__(self, entries: Sequence[Entry], ends: Ending | None = None) -> None:
        self.entries = entries
        self.ends = ends
        """Of the last batch of an execution that has ended."""
        self.encoded: bytes | None = None
        """What the first reader has encoded; `bare` is the same without the lines of nodes."""
        self.bare: bytes | None = None
        self.start: Place = ()
        """In the feed of all executions: where a reader is before it and `behind` it, and the parts
        in between.
        """
        self.behind: Place = ()
        self.parts: Sequence[FeedPart] = ()

    @property
    def lines(self) -> list[Transition]:
        return [entry.line for entry in self.entries]

    def after(self, seq: int) -> Batch:
        """Without what a reader of an execution already has."""
        entries = self.entries
        if not entries or entries[0].seq > seq:
            return self
        return Batch([entry for entry in entries if entry.seq > seq], self.ends)

    def seen_from(self, place: Place) -> Batch:
        """For a reader of all executions that isn't where most are: without what it has, and with ids of its own."""
        if place == self.start:
            return self
        return batch_of([part for part in self.parts if part.position > place[part.lane]], place)


def of_execution(execution_id: str, lines: Sequence[Transition]) -> Iterator[Batch]:
    """At least one batch."""
    for start in range(0, max(len(lines), 1), BATCH_LINES):
        piece = lines[start : start + BATCH_LINES]
        entries = [Entry(line.seq, str(line.seq), execution_id, line) for line in piece]
        yield Batch(entries, ending_of(execution_id, piece))


def ending_of(execution_id: str, lines: Sequence[Transition]) -> Ending | None:
    if lines and not lines[-1].node_id and lines[-1].after in EXECUTION_ENDS:
        return Ending(execution_id, str(lines[-1].after))
    return None


def of_parts(parts: Sequence[FeedPart], place: Place) -> Iterator[Batch]:
    """What comes after `place`. A part isn't divided between batches."""
    first = size = 0
    for number, part in enumerate(parts, start=1):
        size += len(part.lines)
        if size >= BATCH_LINES or number == len(parts):
            yield (batch := batch_of(parts[first:number], place))
            place, first, size = batch.behind, number, 0


def batch_of(parts: Sequence[FeedPart], place: Place, seen: int = 0) -> Batch:
    """Without the first lines of each part that were `seen`."""
    here, entries = list(place), []
    for part in parts:
        position, lane, execution_id = part.position, part.lane, part.execution_id
        here[lane] = position
        # the whole place, so that one id is enough to go on in all lanes; the index stands with its
        # lane
        before, later = _around(here, lane) if len(here) > 1 else ("", "")
        for index, line in enumerate(part.lines[seen:], seen):
            entries.append(
                Entry(line.seq, f"{before}{position}.{index}{later}", execution_id, line)
            )
    batch = Batch(entries)
    batch.start, batch.behind, batch.parts = place, tuple(here), parts
    return batch


def _around(here: list[int], lane: int) -> tuple[str, str]:
    return "".join([f"{each}-" for each in here[:lane]]), "".join(
        [f"-{each}" for each in here[lane + 1 :]]
    )


class Buffer:
    """What waits for one reader.

    When it is full it is dropped, and the reader goes back to the store.
    """

    __slots__ = ("_batches", "_error", "_size_max", "_waiter", "behind", "closed", "size")

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._batches: list[Batch] = []
        self.size = 0
        """Lines in it."""
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
        """Before reading the store: what is committed after that reading isn't in it."""
        self.behind = False

    def put(self, batch: Batch) -> None:
        if self.behind or self.closed:
            return
        size = len(batch.entries)
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
        """Everything that has come; nothing after a while without news, or if the reader is behind or at the end."""
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
