"""API keys in PostgreSQL."""

from __future__ import annotations

import msgspec

from penstock.stores.postgres.database import Database
from penstock.stores.postgres.texts import escaped, unescaped
from penstock.stores.records import ApiKey, Scope

PUT_KEY = """
    INSERT INTO api_keys (id, name, scopes, hash, created_at, revoked_at)
    VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (id) DO UPDATE SET
      name = excluded.name, scopes = excluded.scopes, hash = excluded.hash,
      created_at = excluded.created_at, revoked_at = excluded.revoked_at
"""
SELECT_KEYS = """
    SELECT id, name, scopes, hash, created_at, revoked_at FROM api_keys ORDER BY created_at, id
"""

_scopes_decoder = msgspec.json.Decoder(tuple[Scope, ...])


class PostgresApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_key(self, key: ApiKey) -> None:
        scopes = msgspec.json.encode(key.scopes).decode()
        values = (key.id, escaped(key.name), scopes, key.hash, key.created_at, key.revoked_at)
        async with self._database.connection() as connection:
            await connection.execute(PUT_KEY, values)

    async def keys(self) -> list[ApiKey]:
        rows = await self._database.rows(SELECT_KEYS)
        return [
            ApiKey(key_id, unescaped(name), _scopes_decoder.decode(scopes), *columns)
            for key_id, name, scopes, *columns in rows
        ]

    async def revoke_key(self, key_id: str, now: float) -> bool:
        statement = "UPDATE api_keys SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL"
        return await self._database.change(statement, (now, key_id)) > 0
