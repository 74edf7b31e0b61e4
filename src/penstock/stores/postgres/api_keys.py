"""API keys in PostgreSQL."""

from __future__ import annotations

import msgspec

from penstock.stores.postgres.database import Database
from penstock.stores.postgres.texts import escaped, unescaped
from penstock.stores.records import ApiKey, Scope
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)


_scopes_decoder = msgspec.json.Decoder(tuple[Scope, ...])


class PostgresApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_key(self, key: ApiKey) -> None:
        scopes = msgspec.json.encode(key.scopes).decode()
        values = (key.id, escaped(key.name), scopes, key.hash, key.created_at, key.revoked_at)
        async with self._database.connection() as connection:
            await connection.execute(SQL.put_key, values)

    async def keys(self) -> list[ApiKey]:
        rows = await self._database.rows(SQL.select_keys)
        return [
            ApiKey(key_id, unescaped(name), _scopes_decoder.decode(scopes), *columns)
            for key_id, name, scopes, *columns in rows
        ]

    async def revoke_key(self, key_id: str, now: float) -> bool:
        return await self._database.change(SQL.revoke_key, (now, key_id)) > 0
