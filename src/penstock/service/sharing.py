"""Shared answers: computed for the first of many callers, and cached for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")

COST = 20
"""An answer is cached for so many times as long as it took to compute.

So however many callers ask, computing takes a twentieth of the time.
"""
REUSE_SECONDS_MAX = 30.0
RESULTS_MAX = 100


class _CachedResult(Generic[Answer]):
    def __init__(self, task: asyncio.Task[Answer]) -> None:
        self.task = task
        self.until = float("inf")


class Shared(Generic[Answer]):
    """Caches answers for a moment, and computes each once at a time."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._cached: dict[Hashable, _CachedResult[Answer]] = {}

    async def get(self, key: Hashable, compute: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer; a failure goes to all who wait for it, and isn't cached."""
        cached = self._cached.get(key)
        if cached is None or self._clock() >= cached.until:
            cached = self._begin(key, compute)
        # a caller that is cancelled must not cancel it for the others
        return await asyncio.shield(cached.task)

    def _begin(
        self, key: Hashable, compute: Callable[[], Awaitable[Answer]]
    ) -> _CachedResult[Answer]:
        began_at = self._clock()

        async def work() -> Answer:
            return await compute()

        def done(task: asyncio.Task[Answer]) -> None:
            now = self._clock()
            fresh_seconds = max(self._seconds, COST * (now - began_at))
            cached.until = now + min(fresh_seconds, REUSE_SECONDS_MAX)

            failed = task.cancelled() or task.exception() is not None
            if failed and self._cached.get(key) is cached:
                del self._cached[key]

        cached = _CachedResult(asyncio.create_task(work()))
        self._cached.pop(key, None)
        self._cached[key] = cached
        cached.task.add_done_callback(done)
        self._forget()
        return cached

    def _forget(self) -> None:
        """Forget the oldest answers; a caller that waits for one still gets it."""
        while len(self._cached) > RESULTS_MAX:
            del self._cached[next(iter(self._cached))]

    def close(self) -> None:
        for cached in self._cached.values():
            cached.task.cancel()
