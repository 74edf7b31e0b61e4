"""Watches a loop: for how long it computed without looking at anything else."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

TICK_SECONDS = 0.002


class Watch:
    def __init__(self) -> None:
        self.held_seconds = 0.0
        """The longest that this thread has computed between two turns. Not by the clock: the machine may be busy."""

    async def tick(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now = time.thread_time()
            self.held_seconds = max(self.held_seconds, now - before)
            before = now


@asynccontextmanager
async def watched_loop():
    watch = Watch()
    ticking = asyncio.create_task(watch.tick())
    await asyncio.sleep(TICK_SECONDS)
    watch.held_seconds = 0.0
    try:
        yield watch
    finally:
        ticking.cancel()
