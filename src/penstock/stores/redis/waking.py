"""Wake-ups of a worker: how it learns that there are tasks to fetch, without asking all the time.

Every partition has a stream of one entry that changes when tasks are handed out. A worker reads on
from the entry that it knows, so nothing that came while it was busy is missed; and now and then it
looks everywhere, whatever it was told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from penstock.stores.redis import keys
from penstock.stores.redis.server import Server
from penstock.stores.redis.wire import Link

BLOCK_SECONDS = 4.0
"""After so long it looks everywhere, so that what nobody was woken for is running within 5 s."""
MARGIN_SECONDS = 5.0


class Waker:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._groups = [list(group) for group in server.groups]
        self._links: list[Link] = [server.blocking(group[0]) for group in self._groups]
        self._seen: dict[int, Any] = {
            partition: "0" for group in self._groups for partition in group
        }
        self._hopeful: list[int] = list(self._seen)
        """Partitions that may have something, the one that waited longest first."""
        self._wakeups = dict.fromkeys(self._seen, 0)
        """How often each partition was woken."""
        self._reading: dict[asyncio.Task[None], int] = {}

    def hopeful(self) -> list[tuple[int, int]]:
        """Partitions that may have tasks, with how often each was woken.

        The first goes to the end, so that none is always served last.
        """
        order = [(partition, self._wakeups[partition]) for partition in self._hopeful]
        self._hopeful = self._hopeful[1:] + self._hopeful[:1]
        return order

    def found_empty(self, partition: int, wakeups: int) -> None:
        """Note that a partition has no tasks, unless it was woken since it was looked at.

        Reading and fetching have connections of their own.
        """
        if partition in self._hopeful and self._wakeups[partition] == wakeups:
            self._hopeful.remove(partition)

    async def wait(self) -> None:
        """Wait until a partition may have tasks. Raises `StoreError`."""
        if len(self._groups) == 1:
            await self._wait_for_one()
            return
        while not self._hopeful:
            for index in set(range(len(self._groups))) - set(self._reading.values()):
                reading = asyncio.create_task(self._read(self._links[index], self._groups[index]))
                self._reading[reading] = index
            done, _ = await asyncio.wait(self._reading, return_when=asyncio.FIRST_COMPLETED)
            failed = {
                self._reading.pop(task): task for task in done if task.exception() is not None
            }
            for task in done - set(failed.values()):
                del self._reading[task]
            for index in failed:
                await self._renew(index)
            for task in failed.values():
                task.result()

    async def _wait_for_one(self) -> None:
        """As below, without a task for each reading: this is part of every hop of a chain."""
        while not self._hopeful:
            try:
                await self._read(self._links[0], self._groups[0])
            except (
                BaseException
            ):  # also one that was given up: its answer would be in the way of the next
                await self._renew(0)
                raise

    async def _renew(self, index: int) -> None:
        """Make another connection: in a cluster the partition may be on another node by now."""
        await self._server.drop(self._links[index])
        self._links[index] = self._server.blocking(self._groups[index][0])

    async def _read(self, link: Link, partitions: Sequence[int]) -> None:
        call: list[Any] = ["XREAD", "BLOCK", round(BLOCK_SECONDS * 1000), "STREAMS"]
        call += [keys.wake(each) for each in partitions] + [self._seen[each] for each in partitions]
        found = await link.ask(*call, seconds=BLOCK_SECONDS + MARGIN_SECONDS)
        if not found:
            self._hope(partitions)
            return
        numbers = {keys.wake(each).encode(): each for each in partitions}
        for key, entries in found:
            self._seen[numbers[key]] = entries[-1][0]
        self._hope([numbers[key] for key, _ in found])

    def _hope(self, partitions: Sequence[int]) -> None:
        for each in partitions:
            self._wakeups[each] += 1
            if each not in self._hopeful:
                self._hopeful.append(each)

    async def close(self) -> None:
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        for link in self._links:
            await self._server.drop(link)
