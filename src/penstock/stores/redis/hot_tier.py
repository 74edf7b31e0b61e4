"""The hot tier on Redis: what tiering asks of the hot store (`stores.tiering.HotTier`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

import msgspec

from penstock.stores import codec
from penstock.stores.base import Lease
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Server
from penstock.stores.redis.flat_lists import portions
from penstock.stores.redis.hot import RedisHotStore
from penstock.stores.tiering import Copied, Outgoing, Summary, Tail

PORTION = 200
"""How many keys or executions one call of a script takes: Lua's stack is limited."""
SCAN_KEYS = 1000

_outgoing = msgspec.msgpack.Decoder(Outgoing)
_summary = msgspec.msgpack.Decoder(Summary)


class RedisHotTier:
    def __init__(self, server: Server, hot: RedisHotStore) -> None:
        self._server = server
        self._hot = hot

    async def server_id(self, partition: int) -> str:
        reply = await self._server.of(partition).ask("INFO", "server")
        lines: list[str] = reply.decode(errors="replace").splitlines()
        for line in lines:
            name, _, value = line.partition(":")
            if name == "run_id":
                return value
        return ""

    async def built(self, lease: Lease) -> str:
        link = self._server.of(lease.partition)
        store_id = await link.ask("HGET", keys.lease(lease.partition), "built")
        return store_id.decode() if store_id else ""

    async def outbox(self, partition: int, limit: int) -> list[Outgoing]:
        key = keys.prefix(partition) + "outbox"
        entries = await self._server.of(partition).ask("LRANGE", key, 0, limit - 1)
        return [_outgoing.decode(data) for data in entries]

    async def changes(self, execution_ids: Collection[str]) -> Mapping[str, list[bytes]]:
        return await self._hot.changes(execution_ids)

    async def tails(self, execution_ids: Collection[str]) -> Mapping[str, Tail]:
        tails: dict[str, Tail] = {}
        for execution_id, (copied, changes) in await self._hot.read_lists("tails", execution_ids):
            if copied or changes:
                tails[execution_id] = Tail(_decode_copied(copied), changes)
        return tails

    async def acknowledge_copies(self, lease: Lease, copied: Mapping[str, Copied]) -> None:
        values = {execution_id: _encode_copied(how_far) for execution_id, how_far in copied.items()}
        items = list(chain.from_iterable(values.items()))
        for portion in portions(items, PORTION, width=2):
            await self._run(lease, "acknowledge_copies", *portion)

    async def forget_copies(self, lease: Lease) -> None:
        await self._run(lease, "forget_copies")

    async def acknowledge_outbox(self, lease: Lease, count: int, archived: Collection[str]) -> None:
        if count or archived:
            await self._run(lease, "acknowledge_outbox", count, *archived)
            return

        # nothing changes: this only asks whether the lease is still valid
        await self._server.ask_script(
            lease.partition, "lease", lease.token, "acknowledge_outbox", 0
        )

    async def acknowledge_commit(self, lease: Lease, commit_number: int) -> None:
        await self._run(lease, "acknowledge_commit", commit_number)

    async def wipe(self, lease: Lease) -> None:
        partition = lease.partition
        link = self._server.of(partition)
        pattern = keys.prefix(partition).replace("[", "\\[") + "*"
        retained = {
            keys.lease(partition).encode(),
            keys.inbox(partition).encode(),
        }

        cursor: Any = 0
        while True:
            cursor, names = await link.ask("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_KEYS)
            doomed = [name for name in names if name not in retained]
            for portion in portions(doomed, PORTION):
                await self._run(lease, "wipe", *portion)
            if int(cursor) == 0:
                return

    async def restore(self, lease: Lease, executions: Mapping[str, bytes]) -> None:
        items = list(chain.from_iterable(executions.items()))
        for portion in portions(items, PORTION, width=2):
            await self._run(lease, "restore", *portion)

    async def mark_built(self, lease: Lease, store_id: str, commit_number: int) -> None:
        await self._run(lease, "built", store_id, commit_number)
        lease.commit_number = commit_number
        await self._server.fleet.call("SET", keys.STORE, keys.mark(store_id), "NX")

    async def _run(self, lease: Lease, action: str, *arguments: Any) -> None:
        """Run an action of `lease.lua`. Raises `Fenced` if the lease is another owner's by now."""
        await self._server.run_script(lease.partition, "lease", lease.token, action, *arguments)


def _encode_copied(copied: Copied) -> bytes:
    """The number first, as text: `read.lua` reads it."""
    return b"%d %b" % (copied.until, codec.encode(copied.summary))


def _decode_copied(data: bytes) -> Copied | None:
    if not data:
        return None
    until, _, summary = data.partition(b" ")
    return Copied(int(until), _summary.decode(summary))
