"""What moves between hot and cold is moved by the holder of the lease only."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec import structs

from penstock.contract.facts import ended, record, started
from penstock.errors import Fenced
from penstock.stores import codec
from penstock.stores.base import Lease
from penstock.stores.redis.hot_tier import RedisHotTier
from tests.redis.stores_under_test import NAME, open_stores

Move = Callable[[RedisHotTier, Lease], Awaitable[None]]
CHANGE = codec.encode(codec.Change(codec.SCHEMA, record("execution-2"), [], {}, []))


@pytest.mark.parametrize(
    "move",
    [
        lambda tier, lease: tier.acknowledge_outbox(lease, 1, [NAME]),
        lambda tier, lease: tier.wipe(lease),
        lambda tier, lease: tier.restore(lease, {"execution-2": CHANGE}),
        lambda tier, lease: tier.mark_built(lease, "store", 9),
        lambda tier, lease: tier.acknowledge_commit(lease, 9),
    ],
    ids=["acknowledge_outbox", "wipe", "restore", "mark_built", "acknowledge_commit"],
)
def test_whoever_lost_the_lease_moves_nothing(move: Move) -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.commit(started(NAME))
            await stores.commit(ended(NAME))
            old = structs.replace(stores.lease)
            await stores.own("owner-1")
            with pytest.raises(Fenced):
                await move(stores.tier, old)
            assert await stores.hot.known([NAME, "execution-2"]) == {NAME}
            assert [entry.execution_id for entry in await stores.tier.outbox(0, 10)] == [NAME]
            assert await stores.tier.built(stores.lease) == ""
            await stores.own("owner-1")
            assert stores.lease.cold_number == 0

    asyncio.run(scenario())


def test_what_the_cold_store_has_acknowledged_is_known_to_the_next_owner() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.own("owner-1")
            await stores.tier.acknowledge_commit(stores.lease, 1_000_007)
            await stores.own("owner-1")
            assert stores.lease.cold_number == 1_000_007

    asyncio.run(scenario())


def test_what_is_wiped_is_everything_but_inbox_and_lease() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.hand_out("a", "b")
            await stores.queue.fetch("worker-1", {"echo"}, 1)
            await stores.call("SET", "penstock:{1}:execution:other", "another partition's")
            await stores.tier.wipe(stores.lease)
            assert sorted(await stores.call("KEYS", "*")) == [
                b"penstock:{0}:lease",
                b"penstock:{1}:execution:other",
            ]
            await stores.tier.restore(stores.lease, {"execution-2": CHANGE})
            await stores.tier.mark_built(stores.lease, "the-store", 1000)
            assert (await stores.tier.built(stores.lease), stores.lease.commit_number) == (
                "the-store",
                1000,
            )
            assert await stores.hot.active(0) == ["execution-2"]
            await stores.commit()

    asyncio.run(scenario())
