"""A worker gets only tasks whose handler it has; what nobody takes can be taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.contract.facts import Owner, begin, new_execution_ids, queued, stop, success, task
from penstock.definition.model import HandlerDefaults, Retry
from penstock.engine.commands import Commands, Task
from penstock.engine.events import TaskEvent, TaskReturned
from penstock.errors import Fenced
from penstock.stores.base import Backlog, Stores, WaitingTask
from penstock.stores.task_keys import key_of

SHARED = {"shared"}
OLD, NEW = {"old"}, {"old", "new"}


def _names(stores: Stores) -> tuple[str, str]:
    """Two executions of one partition."""
    names = new_execution_ids(stores)
    return next(names), next(names)


async def _hand_out(stores: Stores, *handlers: str, **fields: Any) -> tuple[Owner, list[Task]]:
    """One execution with a task in the shared queue for each of these handlers."""
    name, mark = _names(stores)
    owner = await begin(stores, name, mark)
    tasks = [
        task(name, f"n{number}", handler=handler, queue="shared", **fields)
        for number, handler in enumerate(handlers)
    ]
    await owner.commit(queued(*tasks))
    return owner, tasks


async def _fetch(owner: Owner, worker_id: str, handlers: set[str]) -> list[Task]:
    """What is there for it now, perhaps nothing: something else is there for it in any case."""
    mark = task(_names(owner.stores)[1], "mark", handler="mark", queue="mark")
    await owner.commit(queued(mark))
    fetched = await owner.stores.queue.fetch(worker_id, ["shared", "mark"], 10, {*handlers, "mark"})
    assert fetched[-1] == mark
    await owner.commit(Commands(mark.execution_id, stops=[stop(mark)]))
    return fetched[:-1]


async def test_a_worker_gets_only_tasks_whose_handler_it_has(stores: Stores) -> None:
    _, (a, b, c) = await _hand_out(stores, "new", "old", "new")
    assert await stores.queue.fetch("worker-1", SHARED, 10, OLD) == [b]
    assert await stores.queue.claimed("worker-1") == [b]
    assert await stores.queue.fetch("worker-2", SHARED, 10, NEW) == [a, c]


async def test_tasks_of_other_handlers_are_not_in_the_way(stores: Stores) -> None:
    _, tasks = await _hand_out(stores, *["new"] * 20, "old")
    assert await stores.queue.fetch("worker-1", SHARED, 1, OLD) == tasks[-1:]
    assert await stores.queue.fetch("worker-2", SHARED, 100, NEW) == tasks[:-1]


async def test_a_worker_that_waits_is_told_of_what_another_passed_over(stores: Stores) -> None:
    name, mark = _names(stores)
    owner = await begin(stores, name, mark)
    fetching = asyncio.create_task(stores.queue.fetch("worker-2", {"elsewhere", "shared"}, 10, NEW))
    given = task(name, handler="new", queue="shared")
    await owner.commit(queued(given))
    assert await _fetch(owner, "worker-1", OLD) == []
    async with asyncio.timeout(5):
        assert await fetching == [given]


async def test_what_was_passed_over_goes_by_priority_too(stores: Stores) -> None:
    owner, (low,) = await _hand_out(stores, "new")
    high, higher = (
        task(low.execution_id, f"n{priority}", handler="new", queue="shared", priority=priority)
        for priority in (5, 12)
    )
    await owner.commit(queued(high, higher))
    assert await _fetch(owner, "worker-1", OLD) == []
    for expected in (higher, high, low):
        assert await stores.queue.fetch("worker-2", SHARED, 1, NEW) == [expected]


async def test_what_was_passed_over_is_reported_handed_back_and_lost_as_any_task(
    stores: Stores,
) -> None:
    owner, (a, b, c) = await _hand_out(stores, "new", "new", "new")
    assert await _fetch(owner, "worker-1", OLD) == []
    assert await stores.queue.fetch("worker-2", SHARED, 10, NEW) == [a, b, c]
    await stores.queue.report("worker-2", [success(a, "worker-2")])
    await stores.queue.give_back("worker-2", [b])
    assert await stores.queue.heartbeat("worker-2", SHARED, [stop(b), stop(c)]) == [stop(b)]
    assert await stores.queue.reap(owner.lease.partition, owner.lease.token, "worker-2") == 1
    assert [key_of(event) for event in await owner.inbox()] == [key_of(a), key_of(c)]  # type: ignore[arg-type]
    assert await stores.queue.fetch("worker-3", SHARED, 10, NEW) == [b]


async def test_only_a_worker_that_has_a_task_gives_it_back(stores: Stores) -> None:
    owner, (given,) = await _hand_out(stores, "old")
    await stores.queue.fetch("worker-1", SHARED, 10, OLD)
    await stores.queue.give_back("worker-2", [given])
    assert await _fetch(owner, "worker-3", OLD) == []
    assert await stores.queue.claimed("worker-1") == [given]


async def test_a_task_that_was_passed_over_can_be_stopped(stores: Stores) -> None:
    owner, (a, b) = await _hand_out(stores, "new", "new")
    assert await _fetch(owner, "worker-1", OLD) == []
    await owner.commit(Commands(a.execution_id, stops=[stop(a)]))
    assert await stores.queue.fetch("worker-2", SHARED, 10, NEW) == [b]
    assert await stores.queue.backlog(owner.lease.partition) == []


async def test_a_task_that_was_passed_over_waits_for_the_release_of_its_execution(
    stores: Stores,
) -> None:
    owner, (a, b) = await _hand_out(stores, "new", "new")
    assert await _fetch(owner, "worker-1", OLD) == []
    await owner.commit(Commands(a.execution_id, paused=True))
    assert await _fetch(owner, "worker-2", NEW) == []
    await owner.commit(Commands(a.execution_id, paused=False))
    await owner.commit(Commands(a.execution_id, stops=[stop(b)]))  # wherever it is by now
    assert await stores.queue.fetch("worker-2", SHARED, 10, NEW) == [a]
    assert await _fetch(owner, "worker-2", NEW) == []


async def test_the_backlog_says_which_handlers_were_passed_over(stores: Stores) -> None:
    owner, _ = await _hand_out(stores, "new", "new", "old")
    partition = owner.lease.partition
    assert await stores.queue.backlog(partition) == [Backlog("shared", None, 3)]
    await stores.queue.fetch("worker-1", SHARED, 10, OLD)
    assert await stores.queue.backlog(partition) == [Backlog("shared", "new", 2)]
    assert await stores.queue.depths() == {"shared": (2, 1)}
    await stores.queue.fetch("worker-2", SHARED, 10, NEW)
    assert await stores.queue.backlog(partition) == []


async def test_what_waits_can_be_taken_back_and_handed_out_again(stores: Stores) -> None:
    owner, (passed, plain) = await _hand_out(stores, "new", "old")
    await stores.queue.fetch("worker-1", SHARED, 10, OLD)
    partition, token = owner.lease.partition, owner.lease.token
    locations: list[str] = []

    def back(waiting: WaitingTask) -> TaskEvent:
        locations.append(waiting.location)
        assert waiting.waiting_seconds >= 0
        return TaskReturned(*key_of(waiting.task), waiting.location)

    for _ in range(2):
        assert await stores.queue.recall(partition, token, Backlog("shared", "new", 1), back) == 1
        assert await stores.queue.recall(partition, token, Backlog("shared", "new", 1), back) == 0
        assert len(await owner.inbox()) == len(locations)
        await owner.commit(queued(passed))
        assert await _fetch(owner, "worker-3", OLD) == []
    assert len(set(locations)) == 2, "or the second return would pass for the first one, come again"
    assert await stores.queue.fetch("worker-2", SHARED, 10, NEW) == [passed]
    assert await stores.queue.claimed("worker-1") == [plain]


async def test_what_a_worker_has_is_not_taken_back(stores: Stores) -> None:
    owner, (taken, waiting) = await _hand_out(stores, "old", "old")
    assert await stores.queue.fetch("worker-1", SHARED, 1, OLD) == [taken]
    seen: list[str] = []

    def back(given: WaitingTask) -> TaskEvent:
        seen.append(given.task.node_id)
        return TaskReturned(*key_of(given.task), given.location)

    assert (
        await stores.queue.recall(
            owner.lease.partition, owner.lease.token, Backlog("shared", None, 1), back
        )
        == 1
    )
    assert waiting.node_id in seen
    assert [key_of(event) for event in await owner.inbox()] == [key_of(waiting)]  # type: ignore[arg-type]
    assert await stores.queue.claimed("worker-1") == [taken]


async def test_what_is_not_decided_stays(stores: Stores) -> None:
    owner, tasks = await _hand_out(stores, "old", "old")
    backlog = Backlog("shared", None, 2)
    assert (
        await stores.queue.recall(owner.lease.partition, owner.lease.token, backlog, lambda _: None)
        == 0
    )
    assert await owner.inbox() == []
    assert await stores.queue.fetch("worker-1", SHARED, 10, OLD) == tasks


async def test_an_owner_whose_lease_has_moved_on_takes_nothing_back(stores: Stores) -> None:
    owner, tasks = await _hand_out(stores, "old")
    current = await Owner.of(stores)

    def back(given: WaitingTask) -> TaskEvent:
        return TaskReturned(*key_of(given.task), given.location)

    with pytest.raises(Fenced):
        await stores.queue.recall(
            owner.lease.partition, owner.lease.token, Backlog("shared", None, 1), back
        )
    assert await current.inbox() == []
    assert await stores.queue.fetch("worker-1", SHARED, 10, OLD) == tasks


async def test_workers_say_what_they_offer_until_they_leave(stores: Stores) -> None:
    asked = {"old": HandlerDefaults(), "new": HandlerDefaults(Retry(max_attempts=2), 7.0, "gpu")}
    await stores.queue.heartbeat("worker-1", {"old", "gpu"}, [], asked)
    await stores.queue.heartbeat("worker-2", SHARED, [])
    offers = {offer.worker_id: offer for offer in await stores.queue.offers()}
    assert offers["worker-1"].handlers == asked
    assert set(offers["worker-1"].queues) == {"old", "gpu"}
    assert offers["worker-1"].silent_seconds < 60
    assert offers["worker-1"].has("new")
    assert not offers["worker-1"].has("newer")
    assert offers["worker-2"].has("anything"), "a worker that doesn't say may have it"
    await stores.queue.leave("worker-1", [])
    assert [offer.worker_id for offer in await stores.queue.offers()] == ["worker-2"]
