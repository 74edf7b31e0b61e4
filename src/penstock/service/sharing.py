"""Shared answers, which many ask for at once, again and again.

Computed for the first, and kept for a moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

COST = 20
"""An answer is kept for so many times as long as it took: however many ask, it is computed a
twentieth of the time.
"""
MOST_SECONDS = 30.0
MOST_KEPT = 100


class _Kept(Generic[Answer]):
    def __init__(self, task: asyncio.Task[Answer]) -> None:
        self.task, self.until = task, float("inf")


class Shared(Generic[Answer]):
    """Caches answers for a moment, and computes each once at a time."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._kept: dict[Hashable, _Kept[Answer]] = {}

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer; a failure goes to all who wait for it, and isn't cached."""
        kept = self._kept.get(key)
        if kept is None or self._clock() >= kept.until:
            kept = self._begin(key, compute)
        return await asyncio.shield(kept.task)  # who goes away doesn't take it from the others

    def _begin(self, key: Hashable, compute: Callable[[], Awaitable[Answer]]) -> _Kept[Answer]:
        began_at = self._clock()

        async def work() -> Answer:
            return await compute()

        def done(task: asyncio.Task[Answer]) -> None:
            took = self._clock() - began_at
            kept.until = self._clock() + min(max(self._seconds, COST * took), MOST_SECONDS)
            if (task.cancelled() or task.exception() is not None) and self._kept.get(key) is kept:
                del self._kept[key]

        kept = _Kept(asyncio.create_task(work()))
        self._kept.pop(key, None)
        self._kept[key] = kept
        kept.task.add_done_callback(done)
        self._forget()
        return kept

    def _forget(self) -> None:
        """Forget the oldest answer; whoever waits for one has it in hand."""
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def close(self) -> None:
        for kept in self._kept.values():
            kept.task.cancel()
