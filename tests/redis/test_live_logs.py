"""Logs of running tasks in Redis.

They expire by themselves, and never take the memory that outcomes need.
"""

import asyncio

import pytest

from penstock.contract.facts import success, task
from penstock.errors import StoreUnavailable
from penstock.stores.task_keys import key_of
from tests.redis.stores_under_test import NAME, open_stores
from tests.servers import redis_server
from tests.waiting import until

KEY, OTHER = key_of(task(NAME, "a")), key_of(task(NAME, "b"))


def test_what_nobody_shares_again_is_forgotten_after_a_minute() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.queue.share_logs({KEY: "at work"})
            (name,) = await stores.call("KEYS", "*:log:*")
            assert name.startswith(b"penstock:{0}:")
            assert 50 <= await stores.call("TTL", name) <= 60
            await stores.call("EXPIRE", name, 5)
            await stores.queue.share_logs({KEY: "at work"})
            assert await stores.call("TTL", name) >= 50

    asyncio.run(scenario())


def test_a_redis_that_refuses_a_log_says_so_and_takes_the_outcome() -> None:
    with redis_server(append_only=None) as server:

        async def scenario() -> None:
            async with open_stores(server.url) as stores:
                (dispatched,) = await stores.hand_out("a")
                await stores.queue.fetch("worker-1", {"echo"}, 1)
                await stores.queue.share_logs({KEY: "at work"})
                await stores.call("CONFIG", "SET", "maxmemory", "1")
                with pytest.raises(StoreUnavailable):
                    await stores.queue.share_logs({KEY: "at work\nstill", OTHER: "me too"})
                await stores.queue.report("worker-1", [success(dispatched, "worker-1")])
                assert await stores.inbox() == [success(dispatched, "worker-1")]
                await stores.queue.share_logs({KEY: ""})
                assert await stores.call("KEYS", "*:log:*") == []

        asyncio.run(scenario())


def test_a_redis_that_is_nearly_full_gets_no_logs_but_loses_those_that_are_over() -> None:
    with redis_server(append_only=None) as server:

        async def scenario() -> None:
            async with open_stores(server.url) as stores:
                await stores.queue.share_logs({KEY: "at work"})
                for number in range(300):  # so that a fortieth of it is more than a few buffers
                    await stores.call("SET", f"filling {number}", b"x" * 10_000)
                lines = (await stores.call("INFO", "memory")).decode().splitlines()
                used = next(
                    int(line.partition(":")[2]) for line in lines if line.startswith("used_memory:")
                )
                await stores.call("CONFIG", "SET", "maxmemory", used + used // 40)

                async def is_full() -> bool:
                    try:
                        stores.server.check_open()
                    except StoreUnavailable:
                        return True
                    return False

                await until(is_full, "the store to say that it is nearly full")
                await stores.call("SET", "there is room for this", "1")
                with pytest.raises(StoreUnavailable, match="out of memory"):
                    await stores.queue.share_logs({KEY: "", OTHER: "me too"})
                assert await stores.call("KEYS", "*:log:*") == []

        asyncio.run(scenario())
