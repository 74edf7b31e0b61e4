"""Live logs: what running tasks have logged so far, in keys that expire by themselves.

Nothing is checked, so plain commands do. A task is handed out once under its generation and
attempt, so two workers never write the same key; and what is left of one that is over is asked for
by nobody, since readers go by the state of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.stores.base import partition_of
from penstock.stores.redis import keys
from penstock.stores.redis.server import Server
from penstock.stores.redis.wire import Link
from penstock.stores.task_keys import Key

EXPIRY_SECONDS = 60


class RedisLiveLogs:
    def __init__(self, server: Server, partitions: int) -> None:
        self._server, self._partitions = server, partitions

    async def share(self, texts: Mapping[Key, str]) -> None:
        """Write live logs.

        Raises `StoreUnavailable` also if Redis is nearly full: the rest of its memory is for
        outcomes.
        """
        await self._send([(key, "UNLINK", ()) for key, text in texts.items() if not text])
        new = [(key, "SET", (text, "EX", EXPIRY_SECONDS)) for key, text in texts.items() if text]
        if new:
            self._server.check_open()
            await self._send(new)

    async def of(self, key: Key) -> str:
        link, name = self._location(key)
        found = await link.ask("GET", name)
        return found.decode() if found else ""

    async def _send(self, calls: Iterable[tuple[Key, str, tuple[Any, ...]]]) -> None:
        groups: dict[Link, list[tuple[Any, ...]]] = {}
        for key, command, more in calls:
            link, name = self._location(key)
            groups.setdefault(link, []).append((command, name, *more))
        await asyncio.gather(*(link.pipeline(some) for link, some in groups.items()))

    def _location(self, key: Key) -> tuple[Link, str]:
        partition = partition_of(key[0], self._partitions)
        return self._server.of(partition), keys.live_log(partition, *key)
