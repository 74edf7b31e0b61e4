"""Blobs in a table of PostgreSQL, by their hash: the same value is stored once."""

from __future__ import annotations

import asyncio
import hashlib

from penstock.engine.events import Blob
from penstock.errors import StoreError
from penstock.stores.object_blobs import ObjectBlobs
from penstock.stores.postgres.database import SLOW_SECONDS, Database
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)

LARGE_BYTES = 1024 * 1024
NO_DATA = b""
"""The data in the row of a value that is in an object store."""
TOUCH_SECONDS = 3600.0
"""How often `used_at` of a value that is put again is updated, at most."""


async def _key_of(data: bytes) -> str:
    """The blob's key, its hash.

    Computed in a thread if large: 60 MB would block the loop for 0.1 s.
    """
    if len(data) <= LARGE_BYTES:
        return hashlib.sha256(data).hexdigest()
    return (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()


class PostgresBlobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, data: bytes) -> Blob:
        key = await _key_of(data)
        async with self._database.connection(SLOW_SECONDS) as connection:
            await connection.execute(SQL.put_blob, (key, data, TOUCH_SECONDS))
        return Blob(key, len(data))

    async def get(self, blob: Blob) -> bytes:
        rows = await self._database.rows(SQL.select_blob, (blob.key,), seconds=SLOW_SECONDS)
        if not rows:
            raise StoreError(f"the blob {blob.key} is gone from {self._database.where}")
        data = bytes(rows[0][0])
        if not data and blob.size:
            raise StoreError(
                f"the blob {blob.key} is in an object store; "
                "set PENSTOCK_BLOBS as it was when it was put"
            )
        return data

    async def delete(self, blob: Blob) -> None:
        await self._database.change(SQL.delete_blob, (blob.key,))


class ReferencedObjects:
    """Blobs in an object store, with a row for each in PostgreSQL.

    From the rows, retention knows which objects are used. The row is written first and the object
    second. Retention deletes an object while it has locked its row, so a value that is put again at
    the same time waits for that, and is written afterwards.
    """

    def __init__(self, database: Database, objects: ObjectBlobs) -> None:
        self._database = database
        self._objects = objects
        self._before = PostgresBlobs(database)
        """Blobs from before there was an object store."""

    async def put(self, data: bytes) -> Blob:
        key = await _key_of(data)
        await self._database.change(SQL.put_blob, (key, NO_DATA, TOUCH_SECONDS))
        return await self._objects.put(data)

    async def get(self, blob: Blob) -> bytes:
        data = await self._objects.find(blob)
        return await self._before.get(blob) if data is None else data

    async def delete(self, blob: Blob) -> None:
        await self._objects.delete(blob)
        await self._before.delete(blob)
