"""API keys in memory."""

from __future__ import annotations

import msgspec

from penstock.stores import codec
from penstock.stores.records import ApiKey


class MemoryApiKeys:
    def __init__(self) -> None:
        self._api_keys: dict[str, bytes] = {}

    async def put_key(self, key: ApiKey) -> None:
        self._api_keys[key.id] = codec.encode(key)

    async def keys(self) -> list[ApiKey]:
        keys = [msgspec.msgpack.decode(data, type=ApiKey) for data in self._api_keys.values()]
        return sorted(keys, key=lambda key: (key.created_at, key.id))

    async def revoke_key(self, key_id: str, now: float) -> bool:
        data = self._api_keys.get(key_id)
        if data is None:
            return False
        key = msgspec.msgpack.decode(data, type=ApiKey)
        if key.revoked_at is not None:
            return False
        key.revoked_at = now
        await self.put_key(key)
        return True
