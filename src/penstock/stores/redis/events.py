"""The live feed: each partition's stream of what its commits recorded, a lane of the feed of all executions.

Each entry names the last position in the entry before it: so a reader can tell whether something between was trimmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec

from penstock.engine.commands import Transition
from penstock.stores.records import FeedGap, FeedPart
from penstock.stores.redis import keys
from penstock.stores.redis.commits import FEED_SLOTS as SLOTS
from penstock.stores.redis.malformed import dropped
from penstock.stores.redis.server import Server
from penstock.stores.redis.wire import Link

BLOCK_SECONDS = 5.0
MARGIN_SECONDS = 5.0
NEWS_ENTRIES = 200
PAGE_ENTRIES = 8
RESTS_MAX = 64
NUMBER_MAX = 2**63
"""More than that isn't the number of an entry."""
_lines = msgspec.msgpack.Decoder(list[tuple[str, list[Transition]]])
Entry = tuple[bytes, Sequence[bytes]]


class RedisEvents:
    def __init__(self, server: Server, partitions: int) -> None:
        self._server, self._partitions = server, partitions
        self._rests: dict[tuple[int, int], list[FeedPart]] = {}
        """By lane and position, what was read and didn't fit in a page: a commit may have hundreds
        of parts.
        """

    async def feed_end(self) -> tuple[int, ...]:
        newest = await asyncio.gather(*(self._begin(lane) for lane in range(self._partitions)))
        return tuple(map(_end, newest))

    async def feed(self, after: Sequence[int], limit: int = 500) -> list[FeedPart]:
        """In order within each lane. Raises `FeedGap` if something behind `after` was trimmed."""
        share = max(1, limit // self._partitions)
        lanes = await asyncio.gather(
            *(self._lane(lane, position, share) for lane, position in enumerate(after))
        )
        return [part for parts in lanes for part in parts][:limit]

    async def _lane(self, lane: int, after: int, limit: int) -> list[FeedPart]:
        parts = self._rests.pop((lane, after), [])
        while len(parts) < limit and (
            more := await self._page(lane, parts[-1].position if parts else after)
        ):
            parts += more
        if len(parts) > limit:
            self._rests[lane, parts[limit - 1].position] = parts[limit:]
            if len(self._rests) > RESTS_MAX:
                del self._rests[next(iter(self._rests))]
        return parts[:limit]

    async def _page(self, lane: int, after: int) -> list[FeedPart]:
        start = f"{min(max(after, 0) // SLOTS, NUMBER_MAX)}-0".encode()
        while entries := await self._server.of(lane).ask(
            "XRANGE", keys.events(lane), start, "+", "COUNT", PAGE_ENTRIES
        ):
            if after > 0 and _before(entries[0]) > after:
                raise FeedGap("what came after that event isn't kept any more; begin without it")
            parts = [part for part in _parts(lane, entries) if part.position > after]
            if parts or len(entries) < PAGE_ENTRIES:
                return parts
            start = (
                b"(" + entries[-1][0]
            )  # nothing in them can be read, or is new: what follows may be
        return []

    async def news(self) -> AsyncIterator[list[FeedPart]]:
        """From now on; the first list, which is empty, says that they have begun.

        Raises `FeedGap` if read too late.
        """
        groups = list(self._server.groups)
        places = {lane: await self._begin(lane) for group in groups for lane in group}
        links = [self._server.blocking(group[0]) for group in groups]
        reading: dict[asyncio.Task[list[FeedPart]], int] = {}
        try:
            yield []
            while True:
                for index in set(range(len(groups))) - set(reading.values()):
                    reading[
                        asyncio.create_task(self._read(links[index], groups[index], places))
                    ] = index
                done, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del reading[task]
                    if parts := task.result():
                        yield parts
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            for link in links:
                await self._server.drop(link)

    async def _begin(self, lane: int) -> int:
        """The number of the commit that everything new comes after.

        After a partition was built again, and so in a new store, the feed goes on at a later number
        than its last entry has. Whoever begins to read now has missed nothing.
        """
        first = await self._server.of(lane).ask("HGET", keys.lease(lane), "e")
        return max(await self._newest(lane), int(first or 0) // SLOTS)

    async def _read(
        self, link: Link, lanes: Sequence[int], places: dict[int, int]
    ) -> list[FeedPart]:
        call: list[Any] = [
            "XREAD",
            "COUNT",
            NEWS_ENTRIES,
            "BLOCK",
            round(BLOCK_SECONDS * 1000),
            "STREAMS",
        ]
        call += [keys.events(lane) for lane in lanes] + [f"{places[lane]}-1" for lane in lanes]
        found = await link.ask(*call, seconds=BLOCK_SECONDS + MARGIN_SECONDS)
        numbers = {keys.events(lane).encode(): lane for lane in lanes}
        parts: list[FeedPart] = []
        for key, entries in found or ():
            lane = numbers[key]
            if _before(entries[0]) > _end(places[lane]):
                raise FeedGap("some of the news were trimmed before they were read")
            places[lane] = _number(entries[-1])
            parts += _parts(lane, entries)
        return parts

    async def _newest(self, lane: int) -> int:
        """The number of the last commit in the feed."""
        newest = await self._server.of(lane).ask(
            "XREVRANGE", keys.events(lane), "+", "-", "COUNT", 1
        )
        return _number(newest[0]) if newest else 0


def _number(entry: Entry) -> int:
    return int(entry[0].partition(b"-")[0])


def _end(number: int) -> int:
    """The position behind everything in a commit."""
    return number * SLOTS + SLOTS - 1 if number else 0


def _before(entry: Entry) -> int:
    """The last position in the entry before it; 0 if there was none."""
    try:
        return int(entry[1][3])
    except (IndexError, ValueError):
        return 0  # not ours; `_parts` drops it


def _parts(lane: int, entries: Sequence[Entry]) -> Iterator[FeedPart]:
    for entry in entries:
        first = _number(entry) * SLOTS
        try:
            recorded = _lines.decode(entry[1][1])
        except (msgspec.DecodeError, IndexError) as error:
            dropped.add("an entry of the feed of commits", error)
            continue
        for index, (execution_id, lines) in enumerate(recorded):
            yield FeedPart(first + index, execution_id, lines, lane)
