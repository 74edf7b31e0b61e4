"""Our stores under the contract (`penstock.contract`). To add one, add a line to `STORES`."""

from __future__ import annotations

import time

from penstock.config import Settings
from penstock.contract import NewStores
from penstock.stores.memory import MemoryStores
from penstock.stores.opening import open_stores
from penstock.stores.scaled import ScaledStores
from penstock.stores.sqlite import SqliteStores
from tests.object_store import bucket_url
from tests.redis.cluster import cluster_url
from tests.servers import database_url, redis_url

STORES: dict[str, NewStores] = {
    "memory": lambda _: MemoryStores(time.time),
    "memory with 8 partitions": lambda _: MemoryStores(time.time, 8),
    "sqlite": lambda folder: SqliteStores(folder / "store.db"),
    "redis and postgresql": lambda _: ScaledStores(redis_url(), Settings(database=database_url())),
    "redis cluster": lambda _: ScaledStores(cluster_url(), Settings(database=database_url())),
}


OBJECT_STORES: dict[str, NewStores] = {
    "memory with s3": lambda _: open_stores("memory://", Settings(blobs=bucket_url())),
    "sqlite with s3": lambda folder: open_stores(
        f"sqlite:///{folder}/store.db", Settings(blobs=bucket_url())
    ),
    "redis and postgresql with s3": lambda _: ScaledStores(
        redis_url(), Settings(database=database_url(), blobs=bucket_url())
    ),
}
"""The same with large values elsewhere: only what concerns these is tried with them."""
