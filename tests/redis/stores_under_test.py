"""A hot store and a task queue on a real Redis, without a cold store beside them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from penstock.contract.facts import HOUR, queued, started, task
from penstock.engine.commands import Commands, Task
from penstock.stores.base import Lease
from penstock.stores.commit_plan import plan_commit
from penstock.stores.redis.connection import Server
from penstock.stores.redis.fleet import RedisFleet
from penstock.stores.redis.hot import READ_BYTES, RedisHotStore
from penstock.stores.redis.hot_tier import RedisHotTier
from penstock.stores.redis.queue import RedisTaskQueue
from penstock.stores.redis.timing import DEFAULT_TIMING, RedisTiming
from tests.servers import redis_url

NAME = "execution-1"


class StoresUnderTest:
    """One partition, and what an owner does in it."""

    def __init__(
        self,
        url: str,
        timing: RedisTiming = DEFAULT_TIMING,
        clock: Callable[[], float] = time.monotonic,
        read_bytes: int = READ_BYTES,
    ) -> None:
        self.server = Server(url, timing, clock)
        self.hot = RedisHotStore(self.server, 1, read_bytes)
        self.queue = RedisTaskQueue(self.server, 1)
        self.tier = RedisHotTier(self.server, self.hot)
        self.fleet = RedisFleet(self.server, 1)
        self.lease = Lease(0, "", "", 0, 0)

    async def call(self, *arguments: Any) -> Any:
        return await self.server.main.call(*arguments)

    async def own(self, name: str = "owner-1") -> None:
        lease = await self.hot.acquire(0, name, HOUR)
        assert lease is not None
        self.lease = lease

    async def commit(self, *changes: Commands, position: int | None = None) -> None:
        at = self.lease.position if position is None else position
        await self.hot.commit(plan_commit(self.lease, at, changes))
        self.lease.commit_number += 1
        self.lease.position = at

    async def hand_out(self, *nodes: str) -> list[Task]:
        """Of an execution that begins with it."""
        tasks = [task(NAME, node) for node in nodes]
        await self.commit(started(NAME))
        await self.commit(queued(*tasks))
        return tasks

    async def inbox(self) -> list[Any]:
        return [event for _, event in await self.hot.receive(0, self.lease.position, 1000, 0.0)]


@asynccontextmanager
async def open_stores(url: str | None = None, **options: Any) -> AsyncIterator[StoresUnderTest]:
    """Opened stores, of which one owner has the lease; `options` are those of the class."""
    stores = StoresUnderTest(url or redis_url(), **options)
    try:
        await stores.server.open()
        await stores.own()
        yield stores
    finally:
        await stores.queue.close()
        await stores.server.close()
