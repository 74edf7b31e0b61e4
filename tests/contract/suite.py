"""The stores under the contract. To add one, add a line to `STORES`; nothing else in this folder changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.config import Settings
from penstock.stores.base import Stores
from penstock.stores.memory import MemoryStores
from penstock.stores.scaled import ScaledStores
from penstock.stores.sqlite import SqliteStores
from tests.redis.cluster import cluster_url
from tests.servers import database_url, redis_url

STORES: dict[str, Callable[[Path], Stores]] = {
    "memory": lambda _: MemoryStores(time.time),
    "memory with 8 partitions": lambda _: MemoryStores(time.time, 8),
    "sqlite": lambda folder: SqliteStores(folder / "store.db"),
    "redis and postgresql": lambda _: ScaledStores(redis_url(), Settings(database=database_url())),
    "redis cluster": lambda _: ScaledStores(cluster_url(), Settings(database=database_url())),
}


def on_every_store(test: Callable[[Stores], Awaitable[None]]) -> Callable[..., None]:
    """Makes a test of a coroutine function that takes opened stores."""

    def run(opened: Callable[[Path], Stores], tmp_path: Path) -> None:
        asyncio.run(_with_stores(test, opened, tmp_path))

    run.__name__, run.__doc__, run.__module__ = str(getattr(test, "__name__", "")), test.__doc__, test.__module__
    return pytest.mark.parametrize("opened", list(STORES.values()), ids=list(STORES))(run)


async def _with_stores(test: Callable[..., Any], opened: Callable[[Path], Stores], folder: Path) -> None:
    stores = opened(folder)
    await stores.open()
    try:
        await test(stores)
    finally:
        await stores.close()
