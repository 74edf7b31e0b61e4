"""`penstock purge` on PostgreSQL."""

from __future__ import annotations

import asyncio

from penstock.stores.object_blobs import ObjectBlobs
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.retention import Purged, would_go
from penstock.stores.postgres.retention import purge as purge_store

CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"


def purge(
    database_url: str, seconds: float, *, objects: ObjectBlobs | None = None, dry_run: bool = False
) -> Purged:
    """Delete what is older than `seconds` by the database's clock, as `retention.purge` does.

    With `dry_run`, nothing is deleted, and the counts are what it would delete. This is for callers
    without a loop. Other processes may use the database meanwhile.
    """
    return asyncio.run(
        _purge(PostgresColdStore(database_url, objects=objects), seconds, dry_run=dry_run)
    )


async def _purge(store: PostgresColdStore, seconds: float, *, dry_run: bool) -> Purged:
    try:
        await store.open()
        ((now,),) = await store.database.rows(CLOCK)
        before = now - seconds
        if dry_run:
            return await would_go(store, before)
        return await purge_store(store, before)
    finally:
        await store.close()
