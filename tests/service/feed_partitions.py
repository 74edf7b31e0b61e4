"""A commit feed of several partitions in memory.

As in a store with partitions, it is capped, and read in any interleaving.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from penstock.engine.commands import Transition
from penstock.stores.records import FeedCursor, FeedEntry, FeedGap


class FeedPartitions:
    def __init__(self, count: int, luck: random.Random, *, retained: int = 10_000) -> None:
        self._luck = luck
        self._retained = retained
        self._feed_entries: list[list[FeedEntry]] = [[] for _ in range(count)]
        self._ends = [0] * count
        self._trimmed = [0] * count
        self._last: dict[str, int] = {}

    def commit(self, partition: int, *, parts: int = 1, lines: int = 1) -> None:
        """Commit lines of executions of this partition.

        Now and then of an execution that no reader can look up.
        """
        self._ends[partition] += self._luck.randrange(1, 4)
        for number in range(parts):
            name = f"{partition}/{number}"
            first = self._last.get(name, 0) + 1
            self._last[name] = first + lines - 1
            transitions = [
                Transition(seq, 1.0, "n", "PENDING", "QUEUED", 1)
                for seq in range(first, first + lines)
            ]
            self._ends[partition] += 1
            self._feed_entries[partition].append(
                FeedEntry(self._ends[partition], name, transitions, partition)
            )
        retained = self._feed_entries[partition]
        if len(retained) > self._retained:
            self._trimmed[partition] = retained[-self._retained - 1].position
            del retained[: -self._retained]

    @property
    def lines(self) -> dict[str, list[int]]:
        return {name: list(range(1, last + 1)) for name, last in self._last.items()}

    async def commits_end(self) -> FeedCursor:
        await asyncio.sleep(0)
        return tuple(self._ends)

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        await asyncio.sleep(0)
        assert len(after) == len(self._feed_entries)
        if any(position < trimmed for position, trimmed in zip(after, self._trimmed, strict=True)):
            raise FeedGap("only the newest parts are kept")
        waiting: list[list[FeedEntry]] = [
            [part for part in parts if part.position > position]
            for parts, position in zip(self._feed_entries, after, strict=True)
        ]
        entries: list[FeedEntry] = []
        while len(entries) < limit and (left := [parts for parts in waiting if parts]):
            entries.append(self._luck.choice(left).pop(0))
        return entries

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the feed of all executions needs no {name}")
