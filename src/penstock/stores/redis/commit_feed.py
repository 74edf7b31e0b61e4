"""The commit feed in Redis: a stream for each partition of what its commits recorded.

Each entry names the last position in the entry before it, so that a reader can tell whether
something between the two was trimmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import chain, islice

import msgspec

from penstock.engine.commands import Transition
from penstock.stores.records import FeedEntry, FeedGap
from penstock.stores.redis import keys
from penstock.stores.redis.commits import FEED_SLOTS as SLOTS
from penstock.stores.redis.connection import Link, Server
from penstock.stores.redis.malformed import DroppedEntries

SUBSCRIPTION_ENTRIES = 200
PAGE_ENTRIES = 8
RESTS_MAX = 64
NUMBER_MAX = 2**63
"""More than that isn't the number of an entry."""
_lines = msgspec.msgpack.Decoder(list[tuple[str, list[Transition]]])
StreamEntry = tuple[bytes, Sequence[bytes]]


class RedisCommitFeed:
    """The commits of all partitions: read from a cursor on, or as they come."""

    def __init__(self, server: Server, partitions: int) -> None:
        self._server = server
        self._partitions = partitions
        self._rests: dict[tuple[int, int], list[FeedEntry]] = {}
        """Entries that were read and didn't fit into an answer, by partition and position.

        A commit may have hundreds of parts.
        """
        self._dropped = DroppedEntries(server.timing.dropped_line_seconds)

    async def commits_end(self) -> tuple[int, ...]:
        calls = [self._begin(partition) for partition in range(self._partitions)]
        newest = await asyncio.gather(*calls)
        return tuple(map(_end, newest))

    async def read_commits(self, after: Sequence[int], limit: int = 500) -> list[FeedEntry]:
        """Commits in order within each partition.

        Raises `FeedGap` if something behind `after` was trimmed.
        """
        share = max(1, limit // self._partitions)
        calls = [
            self._partition_entries(partition, position, share)
            for partition, position in enumerate(after)
        ]
        by_partition = await asyncio.gather(*calls)
        feed_entries = chain.from_iterable(by_partition)
        return list(islice(feed_entries, limit))

    async def _partition_entries(self, partition: int, after: int, limit: int) -> list[FeedEntry]:
        feed_entries = self._rests.pop((partition, after), [])
        while len(feed_entries) < limit:
            last_position = feed_entries[-1].position if feed_entries else after
            page = await self._page(partition, last_position)
            if not page:
                break
            feed_entries += page

        if len(feed_entries) > limit:
            last_position = feed_entries[limit - 1].position
            self._rests[partition, last_position] = feed_entries[limit:]
            if len(self._rests) > RESTS_MAX:
                oldest = next(iter(self._rests))
                del self._rests[oldest]
        return feed_entries[:limit]

    async def _page(self, partition: int, after: int) -> list[FeedEntry]:
        key = keys.commit_feed(partition)
        number = max(after, 0) // SLOTS
        start = f"{min(number, NUMBER_MAX)}-0".encode()
        while True:
            link = self._server.of(partition)
            entries = await link.ask("XRANGE", key, start, "+", "COUNT", PAGE_ENTRIES)
            if not entries:
                return []
            if after > 0 and _before(entries[0]) > after:
                raise FeedGap("what came after that event isn't kept any more; begin without it")

            feed_entries = [
                feed_entry
                for feed_entry in self._decode(partition, entries)
                if feed_entry.position > after
            ]
            if feed_entries or len(entries) < PAGE_ENTRIES:
                return feed_entries
            # nothing in these entries is new or can be read: go on behind them
            last_id, _ = entries[-1]
            start = b"(" + last_id

    async def subscribe(self) -> AsyncIterator[list[FeedEntry]]:
        """Commits from now on.

        The first list, which is empty, says that the subscription has begun. Raises `FeedGap` if
        read too late.
        """
        groups = list(self._server.groups)
        numbers: dict[int, int] = {}
        for group in groups:
            for partition in group:
                numbers[partition] = await self._begin(partition)

        links = [self._server.blocking(group[0]) for group in groups]
        reading: dict[asyncio.Task[list[FeedEntry]], int] = {}
        try:
            yield []
            while True:
                for index in set(range(len(groups))) - set(reading.values()):
                    read = self._read(links[index], groups[index], numbers)
                    reading[asyncio.create_task(read)] = index
                done, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del reading[task]
                    if feed_entries := task.result():
                        yield feed_entries
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            for link in links:
                await self._server.drop(link)

    async def _begin(self, partition: int) -> int:
        """The number of the commit that everything new comes after.

        After a rebuild, and so in a new store, the feed goes on at a later number than its last
        entry has. Whoever begins to read now has missed nothing.
        """
        first = await self._server.of(partition).ask("HGET", keys.lease(partition), "e")
        first_number = int(first or 0) // SLOTS
        newest_number = await self._newest(partition)
        return max(newest_number, first_number)

    async def _read(
        self, link: Link, partitions: Sequence[int], numbers: dict[int, int]
    ) -> list[FeedEntry]:
        count = ("COUNT", SUBSCRIPTION_ENTRIES)
        timing = self._server.timing
        block = ("BLOCK", round(timing.feed_seconds * 1000))
        streams = [keys.commit_feed(partition) for partition in partitions]
        after = [f"{numbers[partition]}-1" for partition in partitions]
        call = ("XREAD", *count, *block, "STREAMS", *streams, *after)
        seconds_max = timing.feed_seconds + timing.block_margin_seconds
        reply = await link.ask(*call, seconds=seconds_max)

        partition_by_key = dict(zip(streams, partitions, strict=True))
        feed_entries: list[FeedEntry] = []
        for key, entries in reply or ():
            partition = partition_by_key[key.decode()]
            if _before(entries[0]) > _end(numbers[partition]):
                raise FeedGap("some commits were trimmed before they were read")
            numbers[partition] = _number(entries[-1])
            feed_entries += self._decode(partition, entries)
        return feed_entries

    async def _newest(self, partition: int) -> int:
        """The number of the last commit in the feed."""
        newest = await self._server.of(partition).ask(
            "XREVRANGE", keys.commit_feed(partition), "+", "-", "COUNT", 1
        )
        return _number(newest[0]) if newest else 0

    def _decode(self, partition: int, entries: Sequence[StreamEntry]) -> Iterator[FeedEntry]:
        """What entries hold. One that can't be read is dropped."""
        for entry in entries:
            first = _number(entry) * SLOTS
            try:
                recorded = _lines.decode(entry[1][1])
            except (msgspec.DecodeError, IndexError) as error:
                self._dropped.add("an entry of the feed of commits", error)
                continue
            for index, (execution_id, lines) in enumerate(recorded):
                yield FeedEntry(first + index, execution_id, lines, partition)


def _number(entry: StreamEntry) -> int:
    return int(entry[0].partition(b"-")[0])


def _end(number: int) -> int:
    """The position behind everything in a commit."""
    return number * SLOTS + SLOTS - 1 if number else 0


def _before(entry: StreamEntry) -> int:
    """The last position in the entry before it; 0 if there was none."""
    try:
        return int(entry[1][3])
    except (IndexError, ValueError):
        return 0  # not ours; `_decode` drops it
