"""The rate limit's storage in Redis: all API processes together let in no more than the limit.

While Redis is unavailable, each process counts in a window of its own: a limit that is too generous
for a while does less harm than a service that answers nobody.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Self

from redis.asyncio import Redis
from redis.exceptions import RedisError

from penstock.api.rate_limit import Entered, MemoryRateLimitStorage
from penstock.stores.redis.connection import async_client, close_client, script

log = logging.getLogger("penstock.api")

PREFIX = "penstock:{limits}:"
PATIENCE_SECONDS = 1.0
AWAY_SECONDS = 1.0
"""How long Redis isn't asked again after a failure, so that not every call waits for it."""
MICRO = 1_000_000


class RedisRateLimitStorage:
    """Sliding windows in Redis, and in memory while Redis is unavailable."""

    def __init__(self, client: Redis, clock: Callable[[], float] = time.monotonic) -> None:
        """`close` closes the client too."""
        self._client = client
        self._clock = clock
        self._script = client.register_script(script("rate_limit").source)
        self._own = MemoryRateLimitStorage(clock)
        self._away_until = float("-inf")
        self._away = False

    @classmethod
    def at(cls, url: str) -> Self:
        client = async_client(
            url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        )
        return cls(client)

    async def close(self) -> None:
        await close_client(self._client)

    async def enter(self, key: str, limit: int, seconds: int, amount: int = 1) -> Entered:
        if self._clock() >= self._away_until:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    answer = await self._script(
                        keys=[PREFIX + key], args=[limit, seconds * MICRO, amount]
                    )
                self._note(None)
                return _entered(answer, seconds)
            except (RedisError, OSError, TimeoutError) as error:
                self._note(error)
        return await self._own.enter(key, limit, seconds, amount)

    def _note(self, error: Exception | None) -> None:
        """Log once that Redis doesn't answer, and once that it does again."""
        if error is not None:
            self._away_until = self._clock() + AWAY_SECONDS
            if not self._away:
                log.warning(
                    "Redis doesn't answer the rate limit; this process uses its own window: %s",
                    f"{type(error).__name__} {error}".strip(),
                )
        elif self._away:
            log.info("the rate limit is shared through Redis again")
        self._away = error is not None


def _entered(answer: Any, seconds: int) -> Entered:
    let_in, count, age = answer
    return Entered(bool(let_in), int(count), max(0.0, seconds - int(age) / MICRO))
