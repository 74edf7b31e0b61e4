"""Wake-ups of a worker: how it learns that there are tasks to fetch, without polling.

Every partition has a stream of one entry that changes when tasks are queued. A worker reads on from
the last entry that it has seen, so it misses nothing while it is busy. Now and then it looks into
all partitions, whether it was woken or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

from penstock.stores.redis import keys
from penstock.stores.redis.connection import Link, Server


class Waker:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._groups = [list(group) for group in server.groups]
        self._links: list[Link] = [server.blocking(group[0]) for group in self._groups]
        self._seen: dict[int, Any] = dict.fromkeys(chain.from_iterable(self._groups), "0")
        """The last entry that was read of each partition's stream."""
        self._hopeful: list[int] = list(self._seen)
        """Partitions that may have tasks, the one that waited longest first."""
        self._wakeups = dict.fromkeys(self._seen, 0)
        """How often there was a wake-up, by partition."""
        self._reading: dict[asyncio.Task[None], int] = {}
        """Reads that are under way, and the index of the group that each waits for."""

    def hopeful(self) -> list[tuple[int, int]]:
        """Partitions that may have tasks, with the number of wake-ups of each.

        The first goes to the end, so that none is always served last.
        """
        order = [(partition, self._wakeups[partition]) for partition in self._hopeful]
        self._hopeful = self._hopeful[1:] + self._hopeful[:1]
        return order

    def found_empty(self, partition: int, wakeups: int) -> None:
        """Note that a partition has no tasks, unless there was a wake-up since it was looked at.

        There may be one, since wake-ups are read on a connection of their own.
        """
        if partition in self._hopeful and self._wakeups[partition] == wakeups:
            self._hopeful.remove(partition)

    async def wait(self) -> None:
        """Wait until a partition may have tasks. Raises `StoreError`."""
        if len(self._groups) == 1:
            await self._wait_for_one()
            return
        while not self._hopeful:
            self._read_all_groups()
            done, _ = await asyncio.wait(self._reading, return_when=asyncio.FIRST_COMPLETED)
            failed: list[asyncio.Task[None]] = []
            for task in done:
                index = self._reading.pop(task)
                if task.exception() is not None:
                    failed.append(task)
                    await self._renew(index)
            for task in failed:
                task.result()

    def _read_all_groups(self) -> None:
        """Begin to read the groups that aren't being read."""
        indexes = set(range(len(self._groups)))
        for index in indexes - set(self._reading.values()):
            read = self._read(self._links[index], self._groups[index])
            self._reading[asyncio.create_task(read)] = index

    async def _wait_for_one(self) -> None:
        """Wait without an asyncio task for each read: every task of a chain waits here."""
        while not self._hopeful:
            try:
                await self._read(self._links[0], self._groups[0])
            except BaseException:
                # also when cancelled: the late reply would be taken for that of the next read
                await self._renew(0)
                raise

    async def _renew(self, index: int) -> None:
        """Make another connection: in a cluster the partition may be on another node by now."""
        await self._server.drop(self._links[index])
        self._links[index] = self._server.blocking(self._groups[index][0])

    async def _read(self, link: Link, partitions: Sequence[int]) -> None:
        timing = self._server.timing
        block = ("BLOCK", round(timing.wake_up_seconds * 1000))
        streams = [keys.wake(partition) for partition in partitions]
        after = [self._seen[partition] for partition in partitions]
        call = ("XREAD", *block, "STREAMS", *streams, *after)
        seconds_max = timing.wake_up_seconds + timing.block_margin_seconds
        reply = await link.ask(*call, seconds=seconds_max)
        if not reply:
            self._wake_up(partitions)
            return

        partition_by_key = dict(zip(streams, partitions, strict=True))
        woken: list[int] = []
        for key, entries in reply:
            partition = partition_by_key[key.decode()]
            last_id, _ = entries[-1]
            self._seen[partition] = last_id
            woken.append(partition)
        self._wake_up(woken)

    def _wake_up(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._wakeups[partition] += 1
            if partition not in self._hopeful:
                self._hopeful.append(partition)

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        for link in self._links:
            await self._server.drop(link)
