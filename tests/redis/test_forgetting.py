"""What a dead worker leaves in Redis goes with it."""

import asyncio
from typing import Any, Self

import pytest

from penstock.contract.facts import HOUR, queued, started, success, task
from penstock.errors import StoreUnavailable
from penstock.orchestrator.reaper import WorkerWatch
from penstock.stores.base import Lease, partition_of
from penstock.stores.commit_plan import plan_commit
from penstock.stores.redis.connection import Server
from penstock.stores.redis.hot import RedisHotStore
from penstock.stores.redis.queue import RedisTaskQueue
from tests.orchestrator.desk import QUICK
from tests.servers import redis_server, redis_url

PARTITIONS = 3
WORKER = "worker-1"
QUEUES = {"echo"}
NAMES = {partition_of(name, PARTITIONS): name for name in map("execution-{}".format, range(20))}
"""One of each partition."""


class Shop:
    """A task in each of several partitions, and who looks after them."""

    def __init__(self, url: str | None = None) -> None:
        self.server = Server(url or redis_url())
        self.hot = RedisHotStore(self.server, PARTITIONS)
        self.queue = RedisTaskQueue(self.server, PARTITIONS)
        self.leases: list[Lease] = []

    async def __aenter__(self) -> Self:
        await self.server.open()
        self.leases = [await _hand_out(self.hot, partition) for partition in range(PARTITIONS)]
        await self.queue.heartbeat(WORKER, QUEUES, [])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.queue.close()
        await self.server.close()

    async def consumers(self) -> list[int]:
        streams = [f"penstock:{{{partition}}}:tasks:0:echo" for partition in range(PARTITIONS)]
        groups: list[list[Any]] = [
            await self.server.main.call("XINFO", "CONSUMERS", key, "workers") for key in streams
        ]
        return list(map(len, groups))


async def _hand_out(hot: RedisHotStore, partition: int) -> Lease:
    lease = await hot.acquire(partition, "owner", HOUR)
    assert lease is not None
    name = NAMES[partition]
    for change in (started(name), queued(task(name, "a"))):
        await hot.commit(plan_commit(lease, 0, [change]))
        lease.commit_number += 1
    return lease


def test_a_worker_that_died_idle_is_a_consumer_nowhere_once_one_owner_has_reaped_it() -> None:
    async def scenario() -> None:
        async with Shop() as shop:
            taken = await shop.queue.fetch(WORKER, QUEUES, 10)
            await shop.queue.report(
                WORKER, [success(claimed_task, WORKER) for claimed_task in taken]
            )
            assert await shop.consumers() == [1] * PARTITIONS
            assert await shop.queue.reap(0, shop.leases[0].token, WORKER) == 0
            assert await shop.consumers() == [0] * PARTITIONS
            assert await shop.queue.workers() == {}

    asyncio.run(scenario())


def test_a_worker_that_died_with_tasks_is_known_until_all_of_them_are_taken_back() -> None:
    async def scenario() -> None:
        async with Shop() as shop:
            assert len(await shop.queue.fetch(WORKER, QUEUES, 10)) == PARTITIONS
            for lease in shop.leases:
                # with its counter: one that began anew would be a heartbeat to the owners of the
                # others
                assert await shop.queue.workers() == {WORKER: 1}
                assert await shop.queue.reap(lease.partition, lease.token, WORKER) == 1
            assert await shop.consumers() == [0] * PARTITIONS
            assert await shop.queue.workers() == {}

    asyncio.run(scenario())


def test_a_redis_that_takes_no_writes_says_nothing_about_workers() -> None:
    """It can be read all the time: the heartbeats stand still, and nobody is dead."""

    async def scenario(url: str) -> None:
        async with Shop(url) as shop:
            watch = WorkerWatch(shop.queue, QUICK)
            await watch.look(1.0)
            await shop.server.main.call("CONFIG", "SET", "min-replicas-to-write", "1")
            with pytest.raises(StoreUnavailable):
                await watch.look(1000.0)
            await shop.server.main.call("CONFIG", "SET", "min-replicas-to-write", "0")
            await watch.look(1.0)
            assert watch.silent_seconds[WORKER] < 3.0

    with redis_server(append_only=None) as server:
        asyncio.run(scenario(server.url))
