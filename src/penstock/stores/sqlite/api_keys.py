"""API keys in the file."""

from __future__ import annotations

import msgspec

from penstock.stores.records import ApiKey, Scope
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer, insert_many

SQL = statements_beside(__file__)

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
        await self._writer.submit(lambda connection: insert_many(connection, SQL.put_key, [row]))

    async def keys(self) -> list[ApiKey]:
        rows = await self._reader.rows(SQL.select_keys)
        return [
            ApiKey(key_id, name, _scopes_decoder.decode(scopes), *columns)
            for key_id, name, scopes, *columns in rows
        ]

    async def revoke_key(self, key_id: str, now: float) -> bool:
        try:
            revoked = await self._writer.submit(
                lambda connection: connection.execute(SQL.revoke_key, (now, key_id)).rowcount
            )
        except UNKNOWABLE:
            return False
        return bool(revoked)
