"""The hot tier on Redis: what tiering asks of the hot store (`stores.tiering.HotTier`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from penstock.stores.base import Lease
from penstock.stores.redis import keys
from penstock.stores.redis.hot import RedisHotStore
from penstock.stores.redis.scripts import script
from penstock.stores.redis.server import Server
from penstock.stores.tiering import Outgoing

PORTION = 200
SCAN_KEYS = 1000
_outgoing = msgspec.msgpack.Decoder(Outgoing)


class RedisHotTier:
    def __init__(self, server: Server, hot: RedisHotStore) -> None:
        self._server, self._hot = server, hot

    async def server_id(self, partition: int) -> str:
        info = (await self._server.of(partition).ask("INFO", "server")).decode(errors="replace")
        return next(
            (line.partition(":")[2] for line in info.splitlines() if line.startswith("run_id:")), ""
        )

    async def built(self, lease: Lease) -> str:
        found = await self._server.of(lease.partition).ask(
            "HGET", keys.lease(lease.partition), "built"
        )
        return found.decode() if found else ""

    async def outbox(self, partition: int, limit: int) -> list[Outgoing]:
        key = keys.prefix(partition) + "outbox"
        return [
            _outgoing.decode(data)
            for data in await self._server.of(partition).ask("LRANGE", key, 0, limit - 1)
        ]

    async def changes(self, execution_ids: Collection[str]) -> Mapping[str, list[bytes]]:
        return await self._hot.changes(execution_ids)

    async def acknowledge_outbox(self, lease: Lease, count: int, archived: Collection[str]) -> None:
        if count or archived:
            await self._run(lease, "acknowledge_outbox", count, *archived)
        else:  # nothing but the question whether it may
            link = self._server.of(lease.partition)
            await script("lease").ask(
                link, keys.lease(lease.partition), lease.token, "acknowledge_outbox", 0
            )

    async def acknowledge_commit(self, lease: Lease, commit_number: int) -> None:
        await self._run(lease, "acknowledge_commit", commit_number)

    async def wipe(self, lease: Lease) -> None:
        link, prefix = self._server.of(lease.partition), keys.prefix(lease.partition)
        pattern = prefix.replace("[", "\\[") + "*"
        retained = {f"{prefix}lease".encode(), f"{prefix}inbox".encode()}
        cursor: Any = 0
        while True:
            cursor, found = await link.ask("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_KEYS)
            doomed = [key for key in found if key not in retained]
            for first in range(0, len(doomed), PORTION):
                await self._run(lease, "wipe", *doomed[first : first + PORTION])
            if int(cursor) == 0:
                return

    async def restore(self, lease: Lease, executions: Mapping[str, bytes]) -> None:
        items = [part for pair in executions.items() for part in pair]
        for first in range(0, len(items), 2 * PORTION):
            await self._run(lease, "restore", *items[first : first + 2 * PORTION])

    async def mark_built(self, lease: Lease, store_id: str, commit_number: int) -> None:
        await self._run(lease, "built", store_id, commit_number)
        lease.commit_number = commit_number
        await self._server.fleet.call("SET", keys.STORE, keys.mark(store_id), "NX")

    async def _run(self, lease: Lease, what: str, *arguments: Any) -> None:
        link = self._server.of(lease.partition)
        await script("lease").run(link, keys.lease(lease.partition), lease.token, what, *arguments)
