"""Leases: only the owner with the newest lease of a partition may commit (G2, G4)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.contract.facts import (
    HOUR,
    Owner,
    begin,
    dead_letter,
    new_execution_ids,
    new_intent,
    queued,
    started,
    stop,
    task,
)
from penstock.contract.waiting import let_others_run, until
from penstock.engine.commands import Commands
from penstock.engine.events import ExecutionStarted
from penstock.errors import Fenced
from penstock.stores.base import Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.records import DeadLetterSearch

SHORT_SECONDS = 0.02
MANY = 20
"""Active executions. With only a few of them a store may write at once, without a gap
in which a cancellation or another commit could come.
"""


async def test_a_new_store_leases_its_partitions_from_the_first_commit_on(stores: Stores) -> None:
    for partition in range(stores.hot.partitions):
        lease = await stores.hot.acquire(partition, "owner-1", HOUR)
        assert lease is not None
        assert (lease.partition, lease.owner) == (partition, "owner-1")
        assert (lease.commit_number, lease.position) == (0, 0)


async def test_the_lease_of_a_live_owner_is_refused_to_others(stores: Stores) -> None:
    await Owner.of(stores)
    lease = await stores.hot.acquire(0, "owner-2", HOUR)
    assert lease is None


async def test_a_lease_that_ran_out_is_taken_over(stores: Stores) -> None:
    lease = await stores.hot.acquire(0, "owner-1", SHORT_SECONDS)
    assert lease is not None

    taken = await until(lambda: stores.hot.acquire(0, "owner-2", HOUR), "the lease has run out")
    assert taken.owner == "owner-2"


async def test_a_renewed_lease_outlives_its_first_term(stores: Stores) -> None:
    hot = stores.hot
    lease = await hot.acquire(0, "owner-1", SHORT_SECONDS)
    assert lease is not None

    is_renewed = await hot.renew(lease, HOUR)
    assert is_renewed

    end = hot.now() + 2 * SHORT_SECONDS
    await until(lambda: hot.now() > end)
    lease = await hot.acquire(0, "owner-2", HOUR)
    assert lease is None


async def test_a_released_partition_is_free_at_once(stores: Stores) -> None:
    owner = await Owner.of(stores)
    await stores.hot.release(owner.lease)
    lease = await stores.hot.acquire(0, "owner-2", HOUR)
    assert lease is not None


async def test_every_lease_has_a_token_of_its_own_that_nobody_can_guess(stores: Stores) -> None:
    tokens = [(await Owner.of(stores)).lease.token for _ in range(10)]
    assert len(set(tokens)) == len(tokens)
    assert all("owner-1" not in token and len(token) >= 16 for token in tokens)


async def test_an_old_lease_can_neither_be_renewed_nor_release_the_new_one(stores: Stores) -> None:
    hot = stores.hot
    old = await Owner.of(stores)
    current = await Owner.of(stores)
    is_renewed = await hot.renew(old.lease, HOUR)
    assert not is_renewed

    await hot.release(old.lease)
    is_renewed = await hot.renew(current.lease, HOUR)
    assert is_renewed

    lease = await hot.acquire(0, "owner-2", HOUR)
    assert lease is None


async def test_a_released_lease_commits_nothing(stores: Stores) -> None:
    owner = await begin(stores, *_execution_ids(stores, 1))
    await stores.hot.release(owner.lease)
    is_renewed = await stores.hot.renew(owner.lease, HOUR)
    assert not is_renewed

    with pytest.raises(Fenced):
        await owner.commit()


async def test_a_new_owner_goes_on_from_the_last_commit(stores: Stores) -> None:
    hot = stores.hot
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await hot.append([ExecutionStarted(execution_id)] * 3)
    owner.position = (await hot.receive(0, 0, 2, 0.0))[-1][0]
    await owner.commit()
    await hot.release(owner.lease)
    following = await Owner.of(stores, name="owner-2")
    assert following.lease.commit_number == 2
    assert following.lease.position == owner.position

    inbox = await following.inbox()
    assert len(inbox) == 1


async def test_a_commit_with_an_old_token_writes_nothing(stores: Stores) -> None:
    await _assert_refused(stores, _after_a_takeover)


async def test_a_commit_with_an_old_number_writes_nothing(stores: Stores) -> None:
    async def repeat(owner: Owner, commit: CommitPlan) -> CommitPlan:
        await owner.commit()
        return commit

    await _assert_refused(stores, repeat)


async def test_a_commit_with_a_number_that_is_yet_to_come_writes_nothing(stores: Stores) -> None:
    async def hurry(_owner: Owner, commit: CommitPlan) -> CommitPlan:
        commit.commit_number += 1
        return commit

    await _assert_refused(stores, hurry)


async def test_of_two_commits_with_the_same_number_only_one_happens(stores: Stores) -> None:
    first, second, *rest = _execution_ids(stores, MANY)
    owner = await begin(stores, first, second, *rest)
    commits = [owner.commit_of(queued(task(first))), owner.commit_of(queued(task(second)))]
    answers = await asyncio.gather(
        *(stores.hot.commit(commit) for commit in commits), return_exceptions=True
    )
    assert [type(answer) for answer in answers].count(Fenced) == 1

    loaded = await stores.hot.load([first, second])
    assert sum(len(stored.runs) for stored in loaded.values()) == 1


async def test_a_commit_whose_caller_is_cancelled_happens_as_a_whole_or_not_at_all(
    stores: Stores,
) -> None:
    hot = stores.hot
    execution_id, *rest = _execution_ids(stores, MANY)
    owner = await begin(stores, execution_id, *rest)
    await hot.append([ExecutionStarted(execution_id)])
    owner.position = (await hot.receive(0, 0, 10, 0.0))[-1][0]
    committing = asyncio.create_task(owner.commit(queued(task(execution_id))))
    await asyncio.sleep(0)
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    # Writes are ordered: when this one is done, so is the commit, if it happens at all.
    await stores.cold.definitions.put_workflow("w", "h", b"{}", 0.0)
    following = await Owner.of(stores)
    stored = (await hot.load([execution_id]))[execution_id]
    happened = bool(stored.runs)
    assert (following.lease.position == owner.position) == happened

    inbox = await following.inbox()
    assert (inbox == []) == happened

    if happened:
        async with asyncio.timeout(1):
            fetched = await stores.queue.fetch("worker-1", {"echo"}, 10)
            assert len(fetched) == 1


async def _after_a_takeover(owner: Owner, commit: CommitPlan) -> CommitPlan:
    await Owner.of(owner.stores)
    return commit


async def _assert_refused(
    stores: Stores, spoil: Callable[[Owner, CommitPlan], Awaitable[CommitPlan]]
) -> None:
    """A commit with one of everything is refused after `spoil`, and leaves no trace."""
    hot = stores.hot
    execution_id, other = _execution_ids(stores, 2)
    owner = await begin(stores, execution_id)
    remaining = task(execution_id, "remaining")
    await owner.commit(queued(remaining))
    await stores.cold.executions.record_intents([new_intent(other)])
    await hot.append([ExecutionStarted(other)])
    before = await hot.load([execution_id])
    changes = Commands(
        execution_id,
        record=before[execution_id].record,
        outputs={"remaining": b"1"},
        tasks=[task(execution_id, "new")],
        stops=[stop(remaining)],
        dead_letters=[dead_letter(execution_id)],
        wake_at=1.0,
        timer_changed=True,
        paused=True,
        logs=[("remaining", 1, "line")],
        nodes={"new": before[execution_id].runs["remaining"]},
        history=before[execution_id].history,
    )
    position = (await hot.receive(0, 0, 10, 0.0))[-1][0]
    planned = owner.commit_of(changes, started(other))
    planned.position = position
    commit = await spoil(owner, planned)
    with pytest.raises(Fenced):
        await hot.commit(commit)
    stored = await hot.load([execution_id, other])
    assert stored == before

    next_due = await hot.next_due(0)
    assert next_due is None
    assert await stores.cold.dead_letters.dead_letters(DeadLetterSearch()) == []

    current = await Owner.of(stores)
    inbox = await current.inbox()
    assert [event.execution_id for event in inbox] == [other]

    fetched = await stores.queue.fetch("worker-1", {"echo"}, 10)
    assert fetched == [remaining]

    waiting = asyncio.create_task(stores.queue.fetch("worker-2", {"echo"}, 10))
    await let_others_run()
    assert not waiting.done()

    waiting.cancel()


def _execution_ids(stores: Stores, count: int) -> list[str]:
    execution_ids = new_execution_ids(stores)
    return [next(execution_ids) for _ in range(count)]
