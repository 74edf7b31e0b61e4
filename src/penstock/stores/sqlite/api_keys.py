"""API keys in the file."""

from __future__ import annotations

import msgspec

from penstock.stores.records import ApiKey, Scope
from penstock.stores.sqlite.reader import UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer, insert_many

_scopes_decoder = msgspec.json.Decoder(tuple[Scope, ...])


class SqliteApiKeys:
    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def put_key(self, key: ApiKey) -> None:
        row = (
            key.id,
            key.name,
            msgspec.json.encode(key.scopes),
            key.hash,
            key.created_at,
            key.revoked_at,
        )
        statement = (
            "INSERT OR REPLACE INTO api_keys (id, name, scopes, hash, created_at, revoked_at)"
        )
        await self._writer.submit(lambda connection: insert_many(connection, statement, [row]))

    async def keys(self) -> list[ApiKey]:
        rows = await self._reader.rows(
            """
            SELECT id, name, scopes, hash, created_at, revoked_at FROM api_keys
            ORDER BY created_at, id
            """
        )
        return [
            ApiKey(key_id, name, _scopes_decoder.decode(scopes), *columns)
            for key_id, name, scopes, *columns in rows
        ]

    async def revoke_key(self, key_id: str, now: float) -> bool:
        statement = "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
        try:
            revoked = await self._writer.submit(
                lambda connection: connection.execute(statement, (now, key_id)).rowcount
            )
        except UNKNOWABLE:
            return False
        return bool(revoked)
