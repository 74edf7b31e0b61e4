"""Large values in a table, by their hash: putting the same value twice is putting it once."""

from __future__ import annotations

import hashlib

from penstock.engine.events import Blob
from penstock.errors import StoreError
from penstock.stores.postgres.database import SLOW_SECONDS, Database

TOUCH_SECONDS = 3600.0
"""A value that is put again is noted as used, at most so often."""
NOW = "extract(epoch FROM clock_timestamp())"
PUT = f"""
    INSERT INTO blobs (key, used_at, data) VALUES (%s, {NOW}, %b)
    ON CONFLICT (key) DO UPDATE SET used_at = excluded.used_at
      WHERE blobs.used_at < excluded.used_at - {TOUCH_SECONDS}
"""  # noqa: S608 -- our own words


class PostgresBlobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, data: bytes) -> Blob:
        key = hashlib.sha256(data).hexdigest()
        async with self._database.connection(SLOW_SECONDS) as connection:
            await connection.execute(PUT, (key, data))
        return Blob(key, len(data))

    async def get(self, blob: Blob) -> bytes:
        rows = await self._database.rows("SELECT data FROM blobs WHERE key = %s", (blob.key,), seconds=SLOW_SECONDS)
        if not rows:
            raise StoreError(f"the blob {blob.key} is gone from {self._database.where}")
        return bytes(rows[0][0])

    async def delete(self, blob: Blob) -> None:
        await self._database.change("DELETE FROM blobs WHERE key = %s", (blob.key,))
