"""`penstock purge` on PostgreSQL."""

from __future__ import annotations

import asyncio

from penstock.stores.object_blobs import ObjectBlobs
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.retention import Purged, would_go
from penstock.stores.postgres.retention import purge as purge_store


def purge(database_url: str, before: float, *, objects: ObjectBlobs | None = None, dry_run: bool = False) -> Purged:
    """As `retention.purge`, or what it would do; for callers without a loop. Others may use the database meanwhile."""
    return asyncio.run(_purge(PostgresColdStore(database_url, objects=objects), before, dry_run=dry_run))


async def _purge(store: PostgresColdStore, before: float, *, dry_run: bool) -> Purged:
    try:
        await store.open()
        return await (would_go(store, before) if dry_run else purge_store(store, before))
    finally:
        await store.close()
