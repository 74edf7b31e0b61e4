"""Live events, from the history: stored lines first, then new ones as they are committed; no gap and no repeat.

A reader is put on the list first and reads the store second, so whatever is committed in between is in the store, in
its buffer, or in both; what it has already is left out by its number. A reader that is too slow loses its buffer and
reads the store again from the last line that it has: it costs the engine nothing, however slow it is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager

from penstock.engine.commands import Commands, Transition
from penstock.errors import NotFound, PenstockError, StoreUnavailable
from penstock.service.readers import BATCH_LINES, Batch, Buffer, of_execution, of_parts
from penstock.service.tail import PAGE_PARTS, Tail
from penstock.stores.cold import ColdStore

ENTRY_ID = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?")
"""`position.index`, or a position to go on behind the whole of it."""
SILENCE = (Batch([]),)


class TooManyStreams(PenstockError):
    """As many streams are open as are allowed; some of them have to end first."""


class NoSuchEvent(PenstockError):
    """The event to go on after isn't in this history."""


class Feed:
    def __init__(self, cold: ColdStore, *, most_waiting: int = 2_000, most_streams: int = 500) -> None:
        self._cold = cold
        self._most_waiting, self._most_streams = most_waiting, most_streams
        self._streams: set[Buffer] = set()
        self._followers: dict[str, list[Buffer]] = {}
        """Of single executions."""
        self._tail = Tail(cold)
        self._closed = False

    @property
    def streams(self) -> int:
        return len(self._streams)

    @property
    def waiting(self) -> int:
        """Lines that are kept for readers who haven't taken them."""
        return sum(buffer.size for buffer in self._streams)

    def publish(self, changes: Sequence[Commands]) -> None:
        """Told after each commit, on the event loop."""
        followers = self._followers
        if followers:
            for commands in changes:
                if commands.history and (buffers := followers.get(commands.execution_id)):
                    for batch in of_execution(commands.execution_id, commands.history):
                        for buffer in buffers:
                            buffer.put(batch)
        if self._tail.buffers:
            self._tail.wake()

    def look_again(self) -> None:
        """Something may have been committed that nobody told of: everybody reads the store."""
        for buffers in self._followers.values():
            for buffer in buffers:
                buffer.fall_behind()
        self._tail.wake()

    def close(self) -> None:
        """End all streams; no new ones."""
        self._closed = True
        for buffer in self._streams:
            buffer.end()

    async def execution(self, execution_id: str, after: int = 0) -> AsyncGenerator[list[Transition], None]:
        """An execution's lines until it has ended. Raises `NotFound`, `NoSuchEvent`, `TooManyStreams`."""
        async with aclosing(self.follow(execution_id, after)) as batches:
            async for batch in batches:
                if batch.entries:
                    yield batch.lines

    async def follow(
        self, execution_id: str, after: int = 0, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[Batch, None]:
        """As `execution`, in batches: the first at once, and an empty one after each `idle_seconds` of silence."""
        with self._stream() as buffer, self._following(execution_id, buffer):
            last = after
            while not buffer.ended:
                stored = await self._stored(execution_id, last, buffer) if buffer.behind else None
                for whole in stored or await buffer.take(idle_seconds) or SILENCE:
                    batch = whole.after(last)
                    if batch.entries and batch.entries[0].place > last + 1:  # a commit that nobody told of
                        buffer.fall_behind()
                        break
                    yield batch
                    if batch.ends:
                        return
                    last = batch.entries[-1].place if batch.entries else last
                    await _let_others_go_first(batch)

    async def everything(
        self, after: str | None = None, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[Batch, None]:
        """The lines of all executions, from now on or behind the entry with this id, until the feed is closed.

        The first batch comes at once, as with `follow`. Raises `NoSuchEvent`, `TooManyStreams`.
        """
        with self._stream() as buffer:
            try:
                await self._tail.join(buffer)
                place, seen = await self._beginning(after)
                yield Batch([])
                while not buffer.ended:
                    if buffer.behind:
                        buffer.collect()
                        # whatever is behind it will be in the buffer, where a part that was seen halfway is whole again
                        goal = max(self._tail.position, seen[0])
                        while place < goal and (parts := await self._cold.feed(place, PAGE_PARTS)):
                            for batch in of_parts(parts, seen):
                                yield batch
                                if buffer.closed:
                                    return
                                await _let_others_go_first(batch)
                            place = parts[-1].position
                    for whole in await buffer.take(idle_seconds) or SILENCE:
                        yield (batch := whole.after(place))
                        place = batch.entries[-1].place if batch.entries else place
            finally:
                self._tail.leave(buffer)

    async def _stored(self, execution_id: str, last: int, buffer: Buffer) -> Iterator[Batch]:
        """What the store has after `last`, at least one batch; from now on the buffer collects what it hasn't."""
        buffer.collect()
        # with the last known line: if that is the end, nothing else will come
        lines = await self._cold.history(execution_id, max(last - 1, 0))
        if lines is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        if last and not (lines and lines[0].seq == last):
            raise NoSuchEvent(f"execution {execution_id} has no event {last}")
        return of_execution(execution_id, lines)

    async def _beginning(self, after: str | None) -> tuple[int, tuple[int, int]]:
        """The position to read on from, and how many lines of which part have been seen."""
        if after is None:
            return self._tail.position, (0, 0)
        given = ENTRY_ID.fullmatch(after)
        if given is None:
            raise NoSuchEvent(f"{after!r} isn't the id of an event of all executions, such as 17.0")
        position = int(given[1])
        if position > await self._cold.feed_end():
            raise NoSuchEvent(f"this store has no event {after} yet; is it another one?")
        return (position, (0, 0)) if given[2] is None else (position - 1, (position, int(given[2]) + 1))

    @contextmanager
    def _stream(self) -> Iterator[Buffer]:
        if self._closed:
            raise StoreUnavailable("the service is stopping")
        if len(self._streams) >= self._most_streams:
            raise TooManyStreams(f"{self._most_streams} event streams are open, which is the limit; try again later")
        buffer = Buffer(self._most_waiting)
        self._streams.add(buffer)
        try:
            yield buffer
        finally:
            self._streams.discard(buffer)

    @contextmanager
    def _following(self, execution_id: str, buffer: Buffer) -> Iterator[None]:
        followers = self._followers.setdefault(execution_id, [])
        followers.append(buffer)
        try:
            yield
        finally:
            followers.remove(buffer)
            if not followers:
                del self._followers[execution_id]


async def _let_others_go_first(batch: Batch) -> None:
    """After a large one: sending needn't wait for anything, and a long history would have the loop to itself."""
    if len(batch.entries) >= BATCH_LINES:
        await asyncio.sleep(0)
