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
from penstock.stores.tiering import Copied, Summary, Tail
from tests.redis.stores_under_test import NAME, open_stores

Move = Callable[[RedisHotTier, Lease], Awaitable[None]]
SUMMARY = Summary("RUNNING", 1.0, None, None, None, 1, 2)
COPIED = Copied(2, SUMMARY)
CHANGE = codec.encode(codec.Change(codec.SCHEMA, record("execution-2"), [], {}, []))


@pytest.mark.parametrize(
    "move",
    [
        lambda tier, lease: tier.acknowledge_outbox(lease, 1, [NAME]),
        lambda tier, lease: tier.wipe(lease),
        lambda tier, lease: tier.restore(lease, {"execution-2": CHANGE}),
        lambda tier, lease: tier.mark_built(lease, "store", 9),
        lambda tier, lease: tier.acknowledge_commit(lease, 9),
        lambda tier, lease: tier.acknowledge_copies(lease, {NAME: COPIED}),
        lambda tier, lease: tier.forget_copies(lease),
    ],
    ids=[
        "acknowledge_outbox",
        "wipe",
        "restore",
        "mark_built",
        "acknowledge_commit",
        "acknowledge_copies",
        "forget_copies",
    ],
)
def test_whoever_lost_the_lease_moves_nothing(move: Move) -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.commit(started(NAME))
            await stores.commit(ended(NAME))
            await stores.tier.acknowledge_copies(stores.lease, {NAME: Copied(1, SUMMARY)})
            old = structs.replace(stores.lease)
            await stores.own("owner-1")
            with pytest.raises(Fenced):
                await move(stores.tier, old)
            assert await stores.hot.known([NAME, "execution-2"]) == {NAME}
            assert [entry.execution_id for entry in await stores.tier.outbox(0, 10)] == [NAME]
            assert await stores.tier.built(stores.lease) == ""
            assert (await stores.tier.tails([NAME]))[NAME].first == 1
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


def test_a_tail_is_what_was_not_copied_yet() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            names = [f"execution-{number}" for number in range(3)]
            await stores.commit(*[started(name) for name in names])
            await stores.commit(started(names[1]), started(names[2]))
            whole = await stores.tier.changes(names)
            assert await stores.tier.tails([*names, "unknown"]) == {
                name: Tail(None, whole[name]) for name in names
            }

            copied = {name: Copied(1, SUMMARY) for name in names}
            await stores.tier.acknowledge_copies(stores.lease, copied)
            assert await stores.tier.tails(names) == {
                name: Tail(copied[name], whole[name][1:]) for name in names
            }
            await stores.commit(started(names[0]))
            newest = (await stores.tier.changes(names))[names[0]][-1]
            assert (await stores.tier.tails([names[0]]))[names[0]].changes == [newest]

            await stores.tier.forget_copies(stores.lease)
            assert (await stores.tier.tails([names[1]]))[names[1]] == Tail(None, whole[names[1]])

    asyncio.run(scenario())


def test_how_far_an_execution_was_copied_is_noted_while_the_store_has_it() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.commit(started(NAME))
            await stores.tier.acknowledge_copies(stores.lease, {NAME: Copied(1, SUMMARY)})
            await stores.commit(ended(NAME))
            await stores.tier.acknowledge_outbox(stores.lease, 1, [NAME])
            await stores.tier.acknowledge_copies(stores.lease, {NAME: COPIED})
            assert await stores.tier.tails([NAME]) == {}
            assert await stores.call("EXISTS", "penstock:{0}:copied") == 0

            # what is left of it by chance doesn't count when it is restored
            await stores.call("HSET", "penstock:{0}:copied", NAME, b"7 ")
            await stores.tier.restore(stores.lease, {NAME: CHANGE})
            assert await stores.tier.tails([NAME]) == {NAME: Tail(None, [CHANGE])}

    asyncio.run(scenario())


def test_tails_are_read_in_calls_of_so_many_bytes() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            names = [f"execution-{number}" for number in range(5)]
            await stores.commit(*[started(name) for name in names])
            stores.hot._read_bytes = 1
            tails = await stores.tier.tails(names)
            assert list(tails) == names
            assert all(tail.changes for tail in tails.values())

    asyncio.run(scenario())
