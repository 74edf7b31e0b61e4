"""Watches a loop: for how long it computed without looking at anything else."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

TICK_SECONDS = 0.002


class Watch:
    def __init__(self) -> None:
        self._longest = 0.0
        self._before = time.thread_time()

    @property
    def blocked_seconds(self) -> float:
        """The longest that this thread has computed between two turns.

        Not by the clock: the machine may be busy.

        What it has computed since its last turn counts too: what ends a test may come right behind
        what held the loop.
        """
        return max(self._longest, time.thread_time() - self._before)

    async def tick(self) -> None:
        while True:
            self._longest = self.blocked_seconds
            self._before = time.thread_time()
            await asyncio.sleep(TICK_SECONDS)


@asynccontextmanager
async def watched_loop():
    watch = Watch()
    ticking = asyncio.create_task(watch.tick())
    await asyncio.sleep(0)
    try:
        yield watch
    finally:
        ticking.cancel()
