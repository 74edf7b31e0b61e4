"""The end of the commit feed: read once for all readers of all executions, while there are any.

The engine's notifications of commits have no positions, and event ids are made of positions. So a
commit only starts a reading here, and readers get what the store returns.
"""

from __future__ import annotations

import asyncio
import logging

from penstock.service.readers import Buffer, of_feed_entries
from penstock.stores.cold import Executions
from penstock.stores.records import FeedCursor, advance

log = logging.getLogger("penstock.service")

PAGE_ENTRIES = 200
PAUSE_SECONDS = 0.004
"""The pause between two readings: a busy store is read some hundred times a second, not after each
commit.
"""


class Tail:
    """Reads the end of the commit feed, and gives it to the buffers of readers."""

    def __init__(self, executions: Executions) -> None:
        self._executions = executions
        self._task: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self._woken = asyncio.Event()
        self.buffers: set[Buffer] = set()
        self.cursor: FeedCursor = ()
        """The cursor up to which the buffers have been filled."""

    async def join(self, buffer: Buffer) -> None:
        """Give a buffer what comes. `cursor` is known when this returns."""
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
            self.cursor = await self._executions.commits_end()
            self._begun.set()
            while True:
                await self._woken.wait()
                self._woken.clear()
                await self._read()
        except Exception as error:  # noqa: BLE001 -- the readers, which wait for this task, get it
            log.warning("the feed of all executions can't be read: %s", error)
            self._task = None
            for buffer in self.buffers:
                buffer.end(error)
            self._begun.set()

    async def _read(self) -> None:
        while feed_entries := await self._executions.read_commits(self.cursor, PAGE_ENTRIES):
            cursor = self.cursor
            self.cursor = advance(cursor, feed_entries)
            for batch in of_feed_entries(feed_entries, cursor):
                for buffer in self.buffers:
                    buffer.put(batch)
            if len(feed_entries) < PAGE_ENTRIES:
                await asyncio.sleep(PAUSE_SECONDS)
