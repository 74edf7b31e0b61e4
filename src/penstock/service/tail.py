"""The end of the feed of all executions: the store is read once for all who follow it, and only while somebody does.

What the engine tells about its commits has no positions, and ids are made of positions. So a commit only wakes the
reading here, and what readers get is what the store says.
"""

from __future__ import annotations

import asyncio
import logging

from penstock.service.readers import Buffer, of_parts
from penstock.stores.cold import ColdStore
from penstock.stores.records import Place, behind

log = logging.getLogger("penstock.service")

PAGE_PARTS = 200
PAUSE_SECONDS = 0.004
"""Between two readings, so that a busy engine is asked some hundred times a second, not after each
commit.
"""


class Tail:
    def __init__(self, cold: ColdStore) -> None:
        self._cold = cold
        self._task: asyncio.Task[None] | None = None
        self._begun, self._woken = asyncio.Event(), asyncio.Event()
        self.buffers: set[Buffer] = set()
        self.place: Place = ()
        """Up to where the buffers have been given everything that they collect."""

    async def join(self, buffer: Buffer) -> None:
        """`place` is known when this returns."""
        self.buffers.add(buffer)
        if self._task is None:
            self._begun = asyncio.Event()
            self._task = asyncio.create_task(self._run())
        await self._begun.wait()

    def leave(self, buffer: Buffer) -> None:
        self.buffers.discard(buffer)
        if not self.buffers and self._task is not None:
            self._task.cancel()
            self._task = None

    def wake(self) -> None:
        self._woken.set()

    async def _run(self) -> None:
        try:
            self.place = await self._cold.feed_end()
            self._begun.set()
            while True:
                await self._woken.wait()
                self._woken.clear()
                await self._read()
        except Exception as error:  # noqa: BLE001 -- whatever it is, the readers must hear of it: they wait for this task
            log.warning("the feed of all executions can't be read: %s", error)
            self._task = None
            for buffer in self.buffers:
                buffer.end(error)
            self._begun.set()

    async def _read(self) -> None:
        while parts := await self._cold.feed(self.place, PAGE_PARTS):
            place, self.place = self.place, behind(self.place, parts)
            for batch in of_parts(parts, place):
                for buffer in self.buffers:
                    buffer.put(batch)
            if len(parts) < PAGE_PARTS:
                await asyncio.sleep(PAUSE_SECONDS)
