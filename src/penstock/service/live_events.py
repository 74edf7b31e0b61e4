"""Live events: stored history lines first, then new ones as they are committed.

There are no gaps and no repeats. A reader's buffer is registered first, and the store is read
second, so whatever is committed in between is in the store, in the buffer, or in both; a line that
the reader already has is left out by its number. A reader that is too slow loses its buffer, and
reads the store again from the last line that it has. So a slow reader costs the engine nothing.
"""

from __future__ import annotations

import asyncio
import operator
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
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
from penstock.stores.cold import Executions
from penstock.stores.records import FeedCursor, FeedEntry, FeedGap

POSITION_ID = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?")
"""A position in an event id, followed by the line's index in the entry's own partition.

The index is missing if the whole entry has been seen.
"""
PARTITIONS_MAX = 256
EVENT_ID_CHARACTERS_MAX = 80
"""Characters of an event id that are quoted in an error message."""
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
        executions: Executions,
        *,
        waiting_max: int = 2_000,
        streams_max: int = 500,
        subscribed: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Commits arrive while a `subscribed` context is entered; by default always."""
        self._executions = executions
        self._subscribed = subscribed
        self._waiting_max = waiting_max
        self._streams_max = streams_max
        self._streams: set[Buffer] = set()
        self._followers: dict[str, list[Buffer]] = {}
        """Buffers of readers of single executions."""
        self._tail = Tail(executions)
        self._closed = False

    @property
    def streams(self) -> int:
        return len(self._streams)

    @property
    def waiting(self) -> int:
        """Lines in all buffers, not yet taken by their readers."""
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
        if not buffers:
            return
        for batch in of_execution(execution_id, lines):
            for buffer in buffers:
                buffer.put(batch)

    def look_again(self) -> None:
        """Have all readers read the store: a notification of a commit may have been lost."""
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
        self,
        execution_id: str,
        after: int = 0,
        *,
        idle_seconds: Callable[[], float | None] | float | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """An execution's lines in batches.

        The first batch comes at once, and an empty one after each `idle_seconds` of silence; a
        function is asked each time.
        """
        with self._stream() as buffer, self._following(execution_id, buffer):
            last_seq = after
            while not buffer.ended:
                batches: Iterable[Batch]
                if buffer.behind:
                    batches = await self._stored(execution_id, last_seq, buffer)
                else:
                    seconds = idle_seconds() if callable(idle_seconds) else idle_seconds
                    batches = await buffer.take(seconds) or SILENCE

                for whole_batch in batches:
                    batch = whole_batch.after(last_seq)
                    lines = batch.feed_lines
                    if lines and lines[0].seq > last_seq + 1:  # a commit was missed
                        buffer.fall_behind()
                        break

                    yield batch
                    if batch.ends:
                        return
                    if lines:
                        last_seq = lines[-1].seq
                    await _let_others_go_first(batch)

    async def everything(
        self, after: str | None = None, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[Batch, None]:
        """The lines of all executions, from now on or after the event with this id.

        The first batch comes at once, as with `follow`. The stream lasts until `close` is called.

        Raises `NoSuchEvent`, `TooManyStreams`.
        """
        with self._stream() as buffer:
            try:
                await self._tail.join(buffer)
                if buffer.ended:  # raises the error of the reading, before the stream begins
                    return

                batch = await self._first_batch(after)
                yield batch
                cursor = batch.next_cursor
                while not buffer.ended:
                    if buffer.behind:
                        buffer.collect()
                        goal = self._tail.cursor  # whatever comes after it will be in the buffer
                        while any(map(operator.lt, cursor, goal)):
                            feed_entries = await self._executions.read_commits(cursor, PAGE_ENTRIES)
                            if not feed_entries:
                                break
                            for batch in of_feed_entries(feed_entries, cursor):
                                yield batch
                                if buffer.closed:
                                    return
                                await _let_others_go_first(batch)
                                cursor = batch.next_cursor
                        cursor = tuple(map(max, cursor, goal))

                    for whole_batch in await buffer.take(idle_seconds) or SILENCE:
                        batch = whole_batch.seen_from(cursor)
                        yield batch
                        cursor = batch.next_cursor
            finally:
                self._tail.leave(buffer)

    async def _stored(self, execution_id: str, last_seq: int, buffer: Buffer) -> Iterator[Batch]:
        """The stored lines from `last_seq` on, at least one batch.

        From now on the buffer collects what is committed later.
        """
        buffer.collect()
        # with the line that the reader has: if that is the last one, the stream must end
        lines = await self._executions.history(execution_id, max(last_seq - 1, 0))
        if lines is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        if last_seq and not (lines and lines[0].seq == last_seq):
            raise NoSuchEvent(f"execution {execution_id} has no event {last_seq}")
        return of_execution(execution_id, lines)

    async def _first_batch(self, after: str | None) -> Batch:
        """The first batch of a stream of all executions.

        It has the rest of an entry that was seen in part, which is mostly nothing. The stream
        continues from its cursor.
        """
        if after is None:
            return batch_of([], self._tail.cursor)

        end = await self._executions.commits_end()
        cursor, partition, seen = _read_id(after, len(end))
        event_id = after[:EVENT_ID_CHARACTERS_MAX]
        if any(map(operator.gt, cursor, end)):
            raise NoSuchEvent(
                f"this store has no event {event_id} yet; does the id come from another store?"
            )

        try:
            feed_entries = await self._entry_at(cursor, partition) if seen else []
            await self._executions.read_commits(cursor, 1)
        except FeedGap as error:
            raise NoSuchEvent(
                f"what came after the event {event_id} isn't kept any more: {error}"
            ) from None
        if seen and not feed_entries:
            raise NoSuchEvent(
                f"this store has no event {event_id};"
                " does the id come from another store, or from long ago?"
            )
        return batch_of(feed_entries, cursor, seen)

    async def _entry_at(self, cursor: FeedCursor, partition: int) -> list[FeedEntry]:
        """The entry at this position of this partition, if there is one.

        It comes first in the stream, because later ids couldn't say that it was seen in part.
        """
        only_partition = [FAR_AHEAD] * len(cursor)
        only_partition[partition] = cursor[partition] - 1
        feed_entries = await self._executions.read_commits(tuple(only_partition), 1)
        return [
            feed_entry for feed_entry in feed_entries if feed_entry.position == cursor[partition]
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
    """Read an event id: the cursor, a partition, and how many lines of its entry have been seen.

    No lines (0) means that the whole entry was seen.

    An id has a position for each partition, with `-` in between; the entry's own partition also
    has the line's index: `17-33.0-5`.
    """
    if text == START:
        return (0,) * partitions, 0, 0

    shortened = text[:EVENT_ID_CHARACTERS_MAX]
    malformed = NoSuchEvent(
        f"{shortened!r} isn't the id of an event of all executions, such as 17.0"
    )
    positions: list[int] = []
    seen_in: list[tuple[int, int]] = []
    """Partition and number of seen lines, of each position with an index."""
    for partition, part in enumerate(text.split("-", PARTITIONS_MAX)):
        match = POSITION_ID.fullmatch(part)
        if match is None:
            raise malformed
        positions.append(int(match[1]))
        if match[2]:
            seen_in.append((partition, int(match[2]) + 1))
    if len(seen_in) > 1:
        raise malformed

    if len(positions) != partitions:
        raise NoSuchEvent(
            f"the id {shortened} has {len(positions)} positions where this store has {partitions}"
        )
    partition, seen = seen_in[0] if seen_in else (0, 0)
    return tuple(positions), partition, seen


async def _let_others_go_first(batch: Batch) -> None:
    """Let other tasks run after a large batch.

    Sending may never wait, so a long history would otherwise block the event loop.
    """
    if len(batch.feed_lines) >= BATCH_LINES:
        await asyncio.sleep(0)
