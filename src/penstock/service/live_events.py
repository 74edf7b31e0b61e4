"""Live events, from the history: stored lines first, then new ones as they are committed; no gap and no repeat.

A reader is put on the list first and reads the store second, so whatever is committed in between is in the store, in
its buffer, or in both; what it has already is left out by its number. A reader that is too slow loses its buffer and
reads the store again from the last line that it has: it costs the engine nothing, however slow it is.
"""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext

from penstock.engine.commands import Transition
from penstock.errors import NotFound, PenstockError, StoreUnavailable
from penstock.service.readers import (
    BATCH_LINES,
    Batch,
    Buffer,
    batch_of,
    of_execution,
    of_feed_entries,
)
from penstock.service.tail import PAGE_ENTRIES, Tail
from penstock.stores.cold import ColdStore
from penstock.stores.records import FeedCursor, FeedEntry, FeedGap

POSITION_ID = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?")
"""A position; in the entry's own partition with the line's index, unless all of it has been seen.
"""
PARTITIONS_MAX = 256
EVENT_ID_CHARACTERS_MAX = 80
"""Characters of an id, in a message about it."""
FAR_AHEAD = 2**62
START = "0"
"""The id before the first event: everything that there is, however many partitions it is in."""
SILENCE = (Batch([]),)


class TooManyStreams(PenstockError):
    """As many streams are open as are allowed; some of them have to end first."""


class NoSuchEvent(PenstockError):
    """The event to go on after isn't in this history."""


class LiveEvents:
    """Streams of history lines, for readers of one execution or of all."""

    def __init__(
        self,
        cold: ColdStore,
        *,
        waiting_max: int = 2_000,
        streams_max: int = 500,
        subscribed: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Commits are told of while a `subscribed` is entered; by default always."""
        self._cold, self._subscribed = cold, subscribed
        self._waiting_max, self._streams_max = waiting_max, streams_max
        self._streams: set[Buffer] = set()
        self._followers: dict[str, list[Buffer]] = {}
        """Buffers of readers of single executions."""
        self._tail = Tail(cold)
        self._closed = False

    @property
    def streams(self) -> int:
        return len(self._streams)

    @property
    def waiting(self) -> int:
        """Lines that are kept for readers who haven't taken them."""
        return sum(buffer.size for buffer in self._streams)

    def on_commit(self, committed: Sequence[tuple[str, Sequence[Transition]]]) -> None:
        """Called after each commit, on the event loop, with its history lines by execution id."""
        if self._followers:
            for execution_id, lines in committed:
                self._pass_on(execution_id, lines)
        if self._tail.buffers:
            self._tail.wake()

    def on_remote_commit(self, feed_entries: Sequence[FeedEntry]) -> None:
        """As `on_commit`, for commits of other processes."""
        if self._followers:
            for feed_entry in feed_entries:
                self._pass_on(feed_entry.execution_id, feed_entry.lines)
        if self._tail.buffers:
            self._tail.wake()

    def _pass_on(self, execution_id: str, lines: Sequence[Transition]) -> None:
        buffers = self._followers.get(execution_id)
        if buffers:
            for batch in of_execution(execution_id, lines):
                for buffer in buffers:
                    buffer.put(batch)

    def look_again(self) -> None:
        """Have all readers read the store.

        Something may have been committed that nobody told of.
        """
        for buffers in self._followers.values():
            for buffer in buffers:
                buffer.fall_behind()
        self._tail.wake()

    def close(self) -> None:
        """End all streams; no new ones."""
        self._closed = True
        for buffer in self._streams:
            buffer.end()

    async def execution(
        self, execution_id: str, after: int = 0
    ) -> AsyncGenerator[list[Transition], None]:
        """An execution's lines until it has ended.

        Raises `NotFound`, `NoSuchEvent`, `TooManyStreams`.
        """
        async with aclosing(self.follow(execution_id, after)) as batches:
            async for batch in batches:
                if batch.feed_lines:
                    yield batch.lines

    async def follow(
        self, execution_id: str, after: int = 0, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[Batch, None]:
        """An execution's lines in batches.

        The first at once, and an empty one after each `idle_seconds` of silence.
        """
        with self._stream() as buffer, self._following(execution_id, buffer):
            last = after
            while not buffer.ended:
                stored = await self._stored(execution_id, last, buffer) if buffer.behind else None
                for whole in stored or await buffer.take(idle_seconds) or SILENCE:
                    batch = whole.after(last)
                    if (
                        batch.feed_lines and batch.feed_lines[0].seq > last + 1
                    ):  # a commit that nobody told of
                        buffer.fall_behind()
                        break
                    yield batch
                    if batch.ends:
                        return
                    last = batch.feed_lines[-1].seq if batch.feed_lines else last
                    await _let_others_go_first(batch)

    async def everything(
        self, after: str | None = None, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[Batch, None]:
        """The lines of all executions, from now on or behind the entry with this id, until this is closed.

        The first batch comes at once, as with `follow`. Raises `NoSuchEvent`, `TooManyStreams`.
        """
        with self._stream() as buffer:
            try:
                await self._tail.join(buffer)
                if buffer.ended:  # raises what is wrong, before the stream begins
                    return
                yield (batch := await self._beginning(after))
                cursor = batch.next_cursor
                while not buffer.ended:
                    if buffer.behind:
                        buffer.collect()
                        goal = self._tail.cursor  # whatever is behind it will be in the buffer
                        while any(map(operator.lt, cursor, goal)) and (
                            feed_entries := await self._cold.read_commits(cursor, PAGE_ENTRIES)
                        ):
                            for batch in of_feed_entries(feed_entries, cursor):
                                yield batch
                                if buffer.closed:
                                    return
                                await _let_others_go_first(batch)
                                cursor = batch.next_cursor
                        cursor = tuple(map(max, cursor, goal))
                    for whole in await buffer.take(idle_seconds) or SILENCE:
                        yield (batch := whole.seen_from(cursor))
                        cursor = batch.next_cursor
            finally:
                self._tail.leave(buffer)

    async def _stored(self, execution_id: str, last: int, buffer: Buffer) -> Iterator[Batch]:
        """The stored lines after `last`, at least one batch.

        From now on the buffer collects what it hasn't.
        """
        buffer.collect()
        # with the last known line: if that is the end, nothing else will come
        lines = await self._cold.history(execution_id, max(last - 1, 0))
        if lines is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        if last and not (lines and lines[0].seq == last):
            raise NoSuchEvent(f"execution {execution_id} has no event {last}")
        return of_execution(execution_id, lines)

    async def _beginning(self, after: str | None) -> Batch:
        """The first batch.

        What is left of an entry that was seen halfway, mostly nothing; its cursor is to read on
        from.
        """
        if after is None:
            return batch_of([], self._tail.cursor)
        end = await self._cold.commits_end()
        cursor, partition, seen = _read_id(after, len(end))
        shown = after[:EVENT_ID_CHARACTERS_MAX]
        if any(map(operator.gt, cursor, end)):
            raise NoSuchEvent(f"this store has no event {shown} yet; is it another one?")
        try:
            feed_entries = await self._entry_at(cursor, partition) if seen else []
            await self._cold.read_commits(cursor, 1)
        except FeedGap as error:
            raise NoSuchEvent(
                f"what came after the event {shown} isn't kept any more: {error}"
            ) from None
        if seen and not feed_entries:
            raise NoSuchEvent(
                f"this store has no event {shown}; is it another one, or is it long ago?"
            )
        return batch_of(feed_entries, cursor, seen)

    async def _entry_at(self, cursor: FeedCursor, partition: int) -> list[FeedEntry]:
        """The entry at this position of this partition.

        Before anything else: no id could say that it was seen halfway.
        """
        only = tuple(
            position - 1 if each == partition else FAR_AHEAD for each, position in enumerate(cursor)
        )
        return [
            feed_entry
            for feed_entry in await self._cold.read_commits(only, 1)
            if feed_entry.position == cursor[partition]
        ]

    @contextmanager
    def _stream(self) -> Iterator[Buffer]:
        if self._closed:
            raise StoreUnavailable("the service is stopping")
        if len(self._streams) >= self._streams_max:
            raise TooManyStreams(
                f"{self._streams_max} event streams are open, which is the limit; try again later"
            )
        buffer = Buffer(self._waiting_max)
        self._streams.add(buffer)
        try:
            with self._subscribed():
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


def _read_id(text: str, partitions: int) -> tuple[FeedCursor, int, int]:
    """The cursor, a partition, and how many lines of the entry there have been seen; 0 is all.

    An id is a position for each partition, with `-` in between; the entry's own partition has the
    index: `17-33.0-5`.
    """
    if text == START:
        return (0,) * partitions, 0, 0
    found = [POSITION_ID.fullmatch(each) for each in text.split("-", PARTITIONS_MAX)]
    pairs = [(int(each[1]), each[2]) for each in found if each]
    halves = [(partition, int(index) + 1) for partition, (_, index) in enumerate(pairs) if index]
    if len(pairs) < len(found) or len(halves) > 1:
        raise NoSuchEvent(
            f"{text[:EVENT_ID_CHARACTERS_MAX]!r} isn't the id of an event of all executions, such as 17.0"
        )
    if len(pairs) != partitions:
        raise NoSuchEvent(
            f"the id {text[:EVENT_ID_CHARACTERS_MAX]} has {len(pairs)} positions where this store has {partitions}"
        )
    return tuple(position for position, _ in pairs), *(halves[0] if halves else (0, 0))


async def _let_others_go_first(batch: Batch) -> None:
    """Let other tasks go first after a large batch.

    Sending needn't wait for anything, and a long history would have the loop to itself.
    """
    if len(batch.feed_lines) >= BATCH_LINES:
        await asyncio.sleep(0)
