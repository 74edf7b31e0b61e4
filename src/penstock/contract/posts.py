"""Posts: a signal to whoever waits for a correlation, whichever of the two comes first."""

import asyncio
from itertools import islice

from penstock.contract.facts import Owner, begin, new_execution_ids
from penstock.contract.waits import waiting
from penstock.stores.base import Stores
from penstock.stores.posts import Post
from penstock.stores.waits import WaitSearch

ROUNDS = 20


def new_post(correlation: str = "order-7", name: str = "paid", **fields: object) -> Post:
    about = {
        "name": name,
        "correlation": correlation,
        "payload": b"7",
        "sender": "key billing",
        "at": 1001.0,
        "expires_at": 2000.0,
    }
    return Post(**{**about, **fields})  # type: ignore[arg-type]


async def _two(stores: Stores) -> tuple[Owner, str, str]:
    first, second = islice(new_execution_ids(stores), 2)
    return await begin(stores, first, second), first, second


async def _names(stores: Stores, execution_id: str) -> list[tuple[int, str, bytes]]:
    signals = await stores.cold.signals.of([execution_id])
    return [(item.number, item.name, item.payload) for item in signals.get(execution_id, ())]


async def test_a_post_is_given_to_the_node_that_waits_for_it(stores: Stores) -> None:
    owner, first, second = await _two(stores)
    await owner.commit(waiting(first, "paid", key="order-7"))
    await owner.commit(waiting(second, "paid", key="order-8"))
    signals, is_kept = await stores.cold.posts.put(new_post())
    assert [(signal.execution_id, signal.number) for signal in signals] == [(first, 1)]
    assert (is_kept, signals[0].correlation, signals[0].sender) == (False, "order-7", "key billing")
    assert await _names(stores, first) == [(1, "paid", b"7")]
    assert await _names(stores, second) == []


async def test_a_post_that_comes_first_is_given_to_the_node_that_waits_later(
    stores: Stores,
) -> None:
    owner, first, second = await _two(stores)
    signals, is_kept = await stores.cold.posts.put(new_post())
    assert (signals, is_kept) == ([], True)
    await owner.commit(waiting(first, "paid", key="order-7"))
    assert await _names(stores, first) == [(1, "paid", b"7")]
    await owner.commit(waiting(second, "paid", key="order-7"))
    assert await _names(stores, second) == [], "one has got it"


async def test_two_posts_go_to_two_nodes(stores: Stores) -> None:
    owner, first, second = await _two(stores)
    await owner.commit(waiting(first, "paid", key="order-7"))
    await owner.commit(waiting(second, "paid", key="order-7"))
    for _ in range(2):
        await stores.cold.posts.put(new_post())
    assert await _names(stores, first) == await _names(stores, second) == [(1, "paid", b"7")]
    assert await stores.cold.waits.find(WaitSearch()) == []


async def test_a_node_that_waits_for_another_correlation_after_all_gets_its_post(
    stores: Stores,
) -> None:
    owner, first, _ = await _two(stores)
    await owner.commit(waiting(first, "paid", key="order-7"))
    await stores.cold.posts.put(new_post())
    # Redis has lost it, and what the node waits for came out differently
    await owner.commit(waiting(first, "paid", key="order-8"))
    await stores.cold.posts.put(new_post("order-8"))
    assert await _names(stores, first) == [(1, "paid", b"7"), (2, "paid", b"7")]


async def test_a_post_to_all_is_for_those_who_wait_and_those_who_will(stores: Stores) -> None:
    owner, first, second = await _two(stores)
    await owner.commit(waiting(first, "paid", key="order-7"))
    signals, is_kept = await stores.cold.posts.put(new_post(to_all=True))
    assert (len(signals), is_kept) == (1, True)
    await owner.commit(waiting(second, "paid", key="order-7"))
    assert await _names(stores, first) == await _names(stores, second) == [(1, "paid", b"7")]


async def test_a_post_that_has_expired_or_has_another_name_is_for_nobody(stores: Stores) -> None:
    owner, first, _ = await _two(stores)
    await stores.cold.posts.put(new_post(expires_at=1001.5))
    await stores.cold.posts.put(new_post(name="refused"))
    await owner.commit(waiting(first, "paid", key="order-7"))
    assert await _names(stores, first) == []


async def test_a_post_and_a_wait_at_the_same_moment_always_meet(stores: Stores) -> None:
    execution_ids = list(islice(new_execution_ids(stores), ROUNDS))
    owner = await begin(stores, *execution_ids)
    for number, execution_id in enumerate(execution_ids):
        key = f"order-{number}"
        await asyncio.gather(
            owner.commit(waiting(execution_id, "paid", key=key)),
            stores.cold.posts.put(new_post(key)),
        )
        assert await _names(stores, execution_id) == [(1, "paid", b"7")], number
