"""Large values in an object store.

Retention deletes them there when nothing refers to them any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from penstock.config import Settings
from penstock.errors import SettingsError, StoreError
from penstock.stores.object_blobs import ObjectBlobs
from penstock.stores.postgres.blobs import PostgresBlobs, ReferencedObjects
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.retention import Purged, purge
from penstock.stores.scaled import ScaledStores
from tests.object_store import bucket_url
from tests.servers import database_url, redis_url
from tests.waiting import until

DAY = 86400.0
BEFORE = 100 * DAY
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
    "AND query LIKE '%INSERT INTO blobs%'"
)


class SlowObjects(ObjectBlobs):
    """Somebody puts a value again while it is being deleted."""

    def __init__(self, url: str, database: str) -> None:
        super().__init__(url)
        self._database = database
        self.blobs: ReferencedObjects
        self.putting: asyncio.Task[object] | None = None

    async def delete_many(self, keys: Sequence[str]) -> None:
        self.putting = asyncio.create_task(self.blobs.put(b"again"))
        with psycopg.connect(self._database, autocommit=True) as connection:
            await until(
                lambda: self._is_waiting(connection), "the put waits for the row, or is done"
            )
        await super().delete_many(keys)

    def _is_waiting(self, connection: psycopg.Connection) -> bool:
        assert self.putting is not None
        row = connection.execute(WAITING).fetchone()
        return self.putting.done() or bool(row and row[0])


def _age(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE blobs SET used_at = %s", (BEFORE - 2 * DAY,))


def test_values_that_nothing_names_leave_the_object_store() -> None:
    async def scenario() -> None:
        database, objects = database_url(), ObjectBlobs(bucket_url())
        store = PostgresColdStore(database, objects=objects)
        await store.open()
        blobs = ReferencedObjects(store.database, objects)
        old = await blobs.put(b"old")
        _age(database)
        young = await blobs.put(b"young")
        assert await purge(store, BEFORE) == Purged(blobs=1)
        assert {stored_object.key async for stored_object in objects.objects()} == {young.key}
        with pytest.raises(StoreError, match=old.key):
            await blobs.get(old)
        await store.close()

    asyncio.run(scenario())


def test_a_value_that_is_put_again_while_it_is_deleted_is_there_afterwards() -> None:
    async def scenario() -> None:
        database = database_url()
        objects = SlowObjects(bucket_url(), database)
        store = PostgresColdStore(database, objects=objects)
        await store.open()
        blobs = objects.blobs = ReferencedObjects(store.database, objects)
        again = await blobs.put(b"again")
        _age(database)
        assert await purge(store, BEFORE) == Purged(blobs=1)
        assert objects.putting is not None
        await objects.putting
        assert await blobs.get(again) == b"again"
        await store.close()

    asyncio.run(scenario())


def test_values_from_before_the_object_store_are_still_read() -> None:
    async def scenario() -> None:
        store = PostgresColdStore(database_url())
        await store.open()
        before = PostgresBlobs(store.database)
        old = await before.put(b"old")
        blobs = ReferencedObjects(store.database, ObjectBlobs(bucket_url()))
        new = await blobs.put(b"new")
        assert [await blobs.get(old), await blobs.get(new)] == [b"old", b"new"]
        with pytest.raises(StoreError, match="is in an object store"):
            await before.get(new)
        # and back again: what is put into the database is there
        assert await before.put(b"new") == new
        assert await before.get(new) == b"new"
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("url", ["ftp://somewhere/bucket", "s4://bucket"])
def test_an_object_store_of_an_unknown_kind_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="use a folder, or an object store"):
        ObjectBlobs(url)


def test_a_bucket_that_is_not_there_is_refused_when_the_store_is_opened() -> None:
    async def scenario() -> None:
        bucket = bucket_url().replace("s3://penstock", "s3://not-there")
        stores = ScaledStores(redis_url(), Settings(database=database_url(), blobs=bucket))
        with pytest.raises(SettingsError, match="can't be used for large values"):
            await stores.open()

    asyncio.run(scenario())


def test_a_folder_for_large_values_is_refused_with_redis() -> None:
    with pytest.raises(SettingsError, match="which other machines don't see"):
        ScaledStores(redis_url(), Settings(database=database_url(), blobs="/data/blobs"))
