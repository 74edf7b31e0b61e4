"""The stores under the contract. To add one, add a line to `STORES`; nothing else in this folder changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Settings
from penstock.stores.base import Stores
from penstock.stores.memory import MemoryStores
from penstock.stores.opening import open_stores
from penstock.stores.scaled import ScaledStores
from penstock.stores.sqlite import SqliteStores
from tests.object_store import bucket_url
from tests.redis.cluster import cluster_url
from tests.servers import database_url, redis_url

STORES: dict[str, Callable[[Path], Stores]] = {
    "memory": lambda _: MemoryStores(time.time),
    "memory with 8 partitions": lambda _: MemoryStores(time.time, 8),
    "sqlite": lambda folder: SqliteStores(folder / "store.db"),
    "redis and postgresql": lambda _: ScaledStores(redis_url(), Settings(database=database_url())),
    "redis cluster": lambda _: ScaledStores(cluster_url(), Settings(database=database_url())),
}


OBJECT_STORES: dict[str, Callable[[Path], Stores]] = {
    "memory with s3": lambda _: open_stores("memory://", Settings(blobs=bucket_url())),
    "sqlite with s3": lambda folder: open_stores(f"sqlite:///{folder}/store.db", Settings(blobs=bucket_url())),
    "redis and postgresql with s3": lambda _: ScaledStores(
        redis_url(), Settings(database=database_url(), blobs=bucket_url())
    ),
}
"""The same with large values elsewhere: only what concerns these is tried with them."""

Test = Callable[[Stores], Awaitable[None]]


def on_every_store(test: Test) -> Callable[..., None]:
    """Makes a test of a coroutine function that takes opened stores."""
    return _parametrized(test, STORES)


def on_every_blob_store(test: Test) -> Callable[..., None]:
    return _parametrized(test, {**STORES, **OBJECT_STORES})


def _parametrized(test: Test, stores: Mapping[str, Callable[[Path], Stores]]) -> Callable[..., None]:
    def run(opened: Callable[[Path], Stores], tmp_path: Path) -> None:
        asyncio.run(_with_stores(test, opened, tmp_path))

    run.__name__, run.__doc__, run.__module__ = str(getattr(test, "__name__", "")), test.__doc__, test.__module__
    return pytest.mark.parametrize("opened", list(stores.values()), ids=list(stores))(run)


async def _with_stores(test: Callable[..., Any], opened: Callable[[Path], Stores], folder: Path) -> None:
    stores = opened(folder)
    await stores.open()
    try:
        await test(stores)
    finally:
        await stores.close()
