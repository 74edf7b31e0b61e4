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
from tests.redis.place import NAME, place

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
        async with place() as it:
            await it.commit(started(NAME))
            await it.commit(ended(NAME))
            old = structs.replace(it.lease)
            await it.own("owner-1")
            with pytest.raises(Fenced):
                await move(it.tier, old)
            assert await it.hot.known([NAME, "execution-2"]) == {NAME}
            assert [entry.execution_id for entry in await it.tier.outbox(0, 10)] == [NAME]
            assert await it.tier.built(it.lease) == ""
            await it.own("owner-1")
            assert it.lease.cold_number == 0

    asyncio.run(scenario())


def test_what_the_cold_store_has_acknowledged_is_known_to_the_next_owner() -> None:
    async def scenario() -> None:
        async with place() as it:
            await it.own("owner-1")
            await it.tier.acknowledge_commit(it.lease, 1_000_007)
            await it.own("owner-1")
            assert it.lease.cold_number == 1_000_007

    asyncio.run(scenario())


def test_what_is_wiped_is_everything_but_inbox_and_lease() -> None:
    async def scenario() -> None:
        async with place() as it:
            await it.hand_out("a", "b")
            await it.queue.fetch("worker-1", {"echo"}, 1)
            await it.call("SET", "penstock:{1}:execution:other", "another partition's")
            await it.tier.wipe(it.lease)
            assert sorted(await it.call("KEYS", "*")) == [
                b"penstock:{0}:lease",
                b"penstock:{1}:execution:other",
            ]
            await it.tier.restore(it.lease, {"execution-2": CHANGE})
            await it.tier.mark_built(it.lease, "the-store", 1000)
            assert (await it.tier.built(it.lease), it.lease.commit_number) == ("the-store", 1000)
            assert await it.hot.active(0) == ["execution-2"]
            await it.commit()

    asyncio.run(scenario())
