"""A feed of several lanes in memory, as a store with partitions has it: capped, and read in any interleaving."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from penstock.engine.commands import Transition
from penstock.stores.records import FeedGap, FeedPart, Place


class Lanes:
    def __init__(self, count: int, luck: random.Random, *, retained: int = 10_000) -> None:
        self._luck, self._retained = luck, retained
        self._parts: list[list[FeedPart]] = [[] for _ in range(count)]
        self._ends, self._trimmed = [0] * count, [0] * count
        self._last: dict[str, int] = {}

    def commit(self, lane: int, *, parts: int = 1, lines: int = 1) -> None:
        """Of executions that are at home in this lane; now and then of none that anybody could read about."""
        self._ends[lane] += self._luck.randrange(1, 4)
        for number in range(parts):
            name = f"{lane}/{number}"
            first = self._last.get(name, 0) + 1
            self._last[name] = first + lines - 1
            told = [
                Transition(seq, 1.0, "n", "PENDING", "QUEUED", 1)
                for seq in range(first, first + lines)
            ]
            self._ends[lane] += 1
            self._parts[lane].append(FeedPart(self._ends[lane], name, told, lane))
        retained = self._parts[lane]
        if len(retained) > self._retained:
            self._trimmed[lane] = retained[-self._retained - 1].position
            del retained[: -self._retained]

    @property
    def lines(self) -> dict[str, list[int]]:
        return {name: list(range(1, last + 1)) for name, last in self._last.items()}

    async def feed_end(self) -> Place:
        await asyncio.sleep(0)
        return tuple(self._ends)

    async def feed(self, after: Place, limit: int = 500) -> list[FeedPart]:
        await asyncio.sleep(0)
        assert len(after) == len(self._parts)
        if any(position < trimmed for position, trimmed in zip(after, self._trimmed, strict=True)):
            raise FeedGap("only the newest parts are kept")
        waiting: list[list[FeedPart]] = [
            [part for part in parts if part.position > position]
            for parts, position in zip(self._parts, after, strict=True)
        ]
        found: list[FeedPart] = []
        while len(found) < limit and (left := [parts for parts in waiting if parts]):
            found.append(self._luck.choice(left).pop(0))
        return found

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the feed of all executions needs no {name}")
