"""Live logs: what running tasks have logged so far, in keys that expire by themselves.

Plain commands suffice, because nothing has to be checked. A task is handed out once under its
generation and attempt, so two workers never write the same key. Nobody asks for the log of an
attempt that is over, since readers go by the state of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.stores.base import partition_of
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Link, Server
from penstock.stores.task_keys import Key

LogCall = tuple[Key, str, tuple[Any, ...]]
"""A task's key, a command for its log, and the command's arguments behind the log's key."""


class RedisLiveLogs:
    def __init__(self, server: Server, partitions: int) -> None:
        self._server = server
        self._partitions = partitions

    async def share(self, texts: Mapping[Key, str]) -> None:
        """Write live logs.

        Raises `StoreUnavailable` also if Redis is nearly full: the rest of its memory is for
        outcomes.
        """
        expiry_seconds = self._server.timing.live_log_seconds
        removals: list[LogCall] = []
        writes: list[LogCall] = []
        for key, text in texts.items():
            if text:
                writes.append((key, "SET", (text, "EX", expiry_seconds)))
            else:
                removals.append((key, "UNLINK", ()))

        await self._send(removals)
        if writes:
            self._server.check_open()
            await self._send(writes)

    async def of(self, key: Key) -> str:
        link, name = self._location(key)
        text = await link.ask("GET", name)
        return text.decode() if text else ""

    async def _send(self, log_calls: Iterable[LogCall]) -> None:
        calls_by_link: dict[Link, list[tuple[Any, ...]]] = {}
        for key, command, arguments in log_calls:
            link, name = self._location(key)
            call = (command, name, *arguments)
            calls_by_link.setdefault(link, []).append(call)

        pipelines = [link.pipeline(calls) for link, calls in calls_by_link.items()]
        await asyncio.gather(*pipelines)

    def _location(self, key: Key) -> tuple[Link, str]:
        """The connection for a task's log, and the name of its key."""
        execution_id, node_id, generation, attempt = key
        partition = partition_of(execution_id, self._partitions)
        name = keys.live_log(partition, execution_id, node_id, generation, attempt)
        return self._server.of(partition), name
