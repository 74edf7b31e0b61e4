"""Claims of partitions, where there are two servers of the hot store.

One server at a time may run a partition, decided by compare and set.
"""

import asyncio

import pytest

from penstock.engine.states import ExecutionState
from penstock.errors import Fenced
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.tiering import CLAIM_SECONDS, Claim
from tests.postgres.opened import copy_of, new_intent, with_store


async def _claim(store: PostgresColdStore, holder: str, server: str) -> Claim:
    claimed = await store.claims.claim(0, holder, server)
    assert claimed is not None
    return claimed


async def _let_time_pass(store: PostgresColdStore, seconds: float) -> None:
    await store.database.change("UPDATE partitions SET seen_at = seen_at - %s", (seconds,))


@with_store
async def test_an_owner_on_another_server_waits_for_the_one_that_lives(
    store: PostgresColdStore,
) -> None:
    first = await _claim(store, "one", "server-1")
    assert await store.claims.claim(0, "two", "server-2") is None
    await _let_time_pass(store, CLAIM_SECONDS + 1)
    assert await store.claims.renew_claim(0, first.term, "server-1")
    assert await store.claims.claim(0, "two", "server-2") is None
    await _let_time_pass(store, CLAIM_SECONDS + 1)
    second = await _claim(store, "two", "server-2")
    assert second.term > first.term
    assert await store.claims.claim(0, "one", "server-1") is None


@with_store
async def test_on_one_server_the_lease_says_who_may_and_a_claim_is_had_at_once(
    store: PostgresColdStore,
) -> None:
    first = await _claim(store, "one", "server-1")
    assert (await _claim(store, "two", "server-1")).term > first.term


@with_store
async def test_whoever_has_a_partition_takes_it_along_to_another_server(
    store: PostgresColdStore,
) -> None:
    claimed = await _claim(store, "one", "server-1")
    assert await store.claims.renew_claim(0, claimed.term, "server-2")
    assert await store.claims.claim(0, "two", "server-1") is None
    assert (await _claim(store, "one", "server-3")).term > claimed.term


@with_store
async def test_a_partition_that_was_given_up_is_anybodys(store: PostgresColdStore) -> None:
    claimed = await _claim(store, "one", "server-1")
    await store.claims.release_claim(0, claimed.term - 1)
    assert await store.claims.claim(0, "two", "server-2") is None
    await store.claims.release_claim(0, claimed.term)
    await _claim(store, "two", "server-2")


@with_store
async def test_of_many_that_claim_at_once_on_servers_of_their_own_one_wins(
    store: PostgresColdStore,
) -> None:
    claims = await asyncio.gather(
        *(store.claims.claim(0, f"holder-{n}", f"server-{n}") for n in range(20))
    )
    assert len([claimed for claimed in claims if claimed is not None]) == 1


@with_store
async def test_a_term_that_is_over_stores_and_rebuilds_nothing(store: PostgresColdStore) -> None:
    await store.executions.record_intents([new_intent("a")])
    old = await _claim(store, "one", "server-1")
    current = await _claim(store, "two", "server-1")
    assert not await store.claims.renew_claim(0, old.term, "server-1")
    with pytest.raises(Fenced):
        await store.claims.begin_rebuild(0, old.term, 9)
    with pytest.raises(Fenced):
        await store.copies.put_copies(
            0, 1, [copy_of("a", ExecutionState.RUNNING, 2)], term=old.term
        )
    assert await store.executions.started(0) == ["a"]
    await store.copies.put_copies(
        0, 1, [copy_of("a", ExecutionState.RUNNING, 2)], term=current.term
    )
    assert await store.claims.begin_rebuild(0, current.term, 9) == 2
    assert (await _claim(store, "two", "server-1")).commit_number == 9


@with_store
async def test_a_claim_says_when_another_server_was_built_again(store: PostgresColdStore) -> None:
    claimed = await _claim(store, "one", "server-1")
    await store.claims.begin_rebuild(0, claimed.term, 1)
    assert (await _claim(store, "one", "server-1")).seconds_since_rebuild is None
    since = (await _claim(store, "one", "server-2")).seconds_since_rebuild
    assert since is not None
    assert 0 <= since < 60
