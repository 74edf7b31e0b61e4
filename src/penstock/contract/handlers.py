"""A worker gets only tasks whose handler it has; waiting tasks can be taken back."""

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
from penstock.stores.task_keys import Key, key_of

SHARED = {"shared"}
OLD = {"old"}
NEW = {"old", "new"}


def _two_execution_ids(stores: Stores) -> tuple[str, str]:
    """Two executions of one partition."""
    execution_ids = new_execution_ids(stores)
    return next(execution_ids), next(execution_ids)


async def _hand_out(stores: Stores, *handlers: str, **fields: Any) -> tuple[Owner, list[Task]]:
    """One execution with a task in the shared queue for each handler."""
    execution_id, mark = _two_execution_ids(stores)
    owner = await begin(stores, execution_id, mark)
    tasks = [
        task(execution_id, f"n{number}", handler=handler, queue="shared", **fields)
        for number, handler in enumerate(handlers)
    ]
    await owner.commit(queued(*tasks))
    return owner, tasks


async def _fetch(owner: Owner, worker_id: str, handlers: set[str]) -> list[Task]:
    """The tasks that wait for this worker now, without waiting for one.

    A fetch waits until there is a task, so a task in another queue ends it.
    """
    mark = task(_two_execution_ids(owner.stores)[1], "mark", handler="mark", queue="mark")
    await owner.commit(queued(mark))
    fetched = await owner.stores.queue.fetch(worker_id, ["shared", "mark"], 10, {*handlers, "mark"})
    assert fetched[-1] == mark

    await owner.commit(Commands(mark.execution_id, stops=[stop(mark)]))
    return fetched[:-1]


async def _task_keys(owner: Owner) -> list[Key]:
    """The keys of the tasks that the events in the inbox are about."""
    return [key_of(event) for event in await owner.inbox() if isinstance(event, TaskEvent)]


async def test_a_worker_gets_only_tasks_whose_handler_it_has(stores: Stores) -> None:
    queue = stores.queue
    _, (a, b, c) = await _hand_out(stores, "new", "old", "new")
    fetched = await queue.fetch("worker-1", SHARED, 10, OLD)
    assert fetched == [b]

    on_list = await queue.claimed("worker-1")
    assert on_list == [b]

    fetched = await queue.fetch("worker-2", SHARED, 10, NEW)
    assert fetched == [a, c]


async def test_tasks_of_other_handlers_are_not_in_the_way(stores: Stores) -> None:
    _, tasks = await _hand_out(stores, *["new"] * 20, "old")
    fetched = await stores.queue.fetch("worker-1", SHARED, 1, OLD)
    assert fetched == tasks[-1:]

    fetched = await stores.queue.fetch("worker-2", SHARED, 100, NEW)
    assert fetched == tasks[:-1]


async def test_a_worker_that_waits_is_told_of_what_another_passed_over(stores: Stores) -> None:
    execution_id, mark = _two_execution_ids(stores)
    owner = await begin(stores, execution_id, mark)
    fetch = stores.queue.fetch("worker-2", {"elsewhere", "shared"}, 10, NEW)
    fetching = asyncio.create_task(fetch)
    waiting = task(execution_id, handler="new", queue="shared")
    await owner.commit(queued(waiting))
    fetched = await _fetch(owner, "worker-1", OLD)
    assert fetched == []

    async with asyncio.timeout(5):
        fetched = await fetching
        assert fetched == [waiting]


async def test_what_was_passed_over_goes_by_priority_too(stores: Stores) -> None:
    owner, (low,) = await _hand_out(stores, "new")
    fields: dict[str, Any] = {"handler": "new", "queue": "shared"}
    high = task(low.execution_id, "n5", priority=5, **fields)
    higher = task(low.execution_id, "n12", priority=12, **fields)
    await owner.commit(queued(high, higher))
    fetched = await _fetch(owner, "worker-1", OLD)
    assert fetched == []

    for expected in (higher, high, low):
        fetched = await stores.queue.fetch("worker-2", SHARED, 1, NEW)
        assert fetched == [expected]


async def test_what_was_passed_over_is_reported_handed_back_and_lost_as_any_task(
    stores: Stores,
) -> None:
    queue = stores.queue
    owner, (a, b, c) = await _hand_out(stores, "new", "new", "new")
    fetched = await _fetch(owner, "worker-1", OLD)
    assert fetched == []

    fetched = await queue.fetch("worker-2", SHARED, 10, NEW)
    assert fetched == [a, b, c]

    await queue.report("worker-2", [success(a, "worker-2")])
    await queue.give_back("worker-2", [b])
    gone = await queue.heartbeat("worker-2", SHARED, [stop(b), stop(c)])
    assert gone == [stop(b)]

    reaped = await owner.reap("worker-2")
    assert reaped == 1

    task_keys = await _task_keys(owner)
    assert task_keys == [key_of(a), key_of(c)]

    fetched = await queue.fetch("worker-3", SHARED, 10, NEW)
    assert fetched == [b]


async def test_only_a_worker_that_has_a_task_gives_it_back(stores: Stores) -> None:
    queue = stores.queue
    owner, (claimed,) = await _hand_out(stores, "old")
    await queue.fetch("worker-1", SHARED, 10, OLD)
    await queue.give_back("worker-2", [claimed])
    fetched = await _fetch(owner, "worker-3", OLD)
    assert fetched == []

    on_list = await queue.claimed("worker-1")
    assert on_list == [claimed]


async def test_a_task_that_was_passed_over_can_be_stopped(stores: Stores) -> None:
    owner, (a, b) = await _hand_out(stores, "new", "new")
    fetched = await _fetch(owner, "worker-1", OLD)
    assert fetched == []

    await owner.commit(Commands(a.execution_id, stops=[stop(a)]))
    fetched = await stores.queue.fetch("worker-2", SHARED, 10, NEW)
    assert fetched == [b]

    backlogs = await stores.queue.backlog(owner.lease.partition)
    assert backlogs == []


async def test_a_task_that_was_passed_over_waits_for_the_release_of_its_execution(
    stores: Stores,
) -> None:
    owner, (a, b) = await _hand_out(stores, "new", "new")
    fetched = await _fetch(owner, "worker-1", OLD)
    assert fetched == []

    await owner.commit(Commands(a.execution_id, paused=True))
    fetched = await _fetch(owner, "worker-2", NEW)
    assert fetched == []

    await owner.commit(Commands(a.execution_id, paused=False))
    await owner.commit(Commands(a.execution_id, stops=[stop(b)]))  # wherever it is by now
    fetched = await stores.queue.fetch("worker-2", SHARED, 10, NEW)
    assert fetched == [a]

    fetched = await _fetch(owner, "worker-2", NEW)
    assert fetched == []


async def test_the_backlog_says_which_handlers_were_passed_over(stores: Stores) -> None:
    queue = stores.queue
    owner, _ = await _hand_out(stores, "new", "new", "old")
    partition = owner.lease.partition
    backlogs = await queue.backlog(partition)
    assert backlogs == [Backlog("shared", None, 3)]

    await queue.fetch("worker-1", SHARED, 10, OLD)
    backlogs = await queue.backlog(partition)
    assert backlogs == [Backlog("shared", "new", 2)]

    depths = await queue.depths()
    assert depths == {"shared": (2, 1)}

    await queue.fetch("worker-2", SHARED, 10, NEW)
    backlogs = await queue.backlog(partition)
    assert backlogs == []


async def test_what_waits_can_be_taken_back_and_handed_out_again(stores: Stores) -> None:
    queue = stores.queue
    owner, (passed, plain) = await _hand_out(stores, "new", "old")
    await queue.fetch("worker-1", SHARED, 10, OLD)
    locations: list[str] = []

    def returned(waiting: WaitingTask) -> TaskEvent:
        locations.append(waiting.location)
        assert waiting.waiting_seconds >= 0

        return TaskReturned(*key_of(waiting.task), waiting.location)

    backlog = Backlog("shared", "new", 1)
    for _ in range(2):
        recalled = await owner.recall(backlog, returned)
        assert recalled == 1

        recalled = await owner.recall(backlog, returned)
        assert recalled == 0

        inbox = await owner.inbox()
        assert len(inbox) == len(locations)

        await owner.commit(queued(passed))
        fetched = await _fetch(owner, "worker-3", OLD)
        assert fetched == []

    assert len(set(locations)) == 2, "or the second return would pass for the first one, come again"

    fetched = await queue.fetch("worker-2", SHARED, 10, NEW)
    assert fetched == [passed]

    on_list = await queue.claimed("worker-1")
    assert on_list == [plain]


async def test_what_a_worker_has_is_not_taken_back(stores: Stores) -> None:
    queue = stores.queue
    owner, (taken, waiting) = await _hand_out(stores, "old", "old")
    fetched = await queue.fetch("worker-1", SHARED, 1, OLD)
    assert fetched == [taken]

    seen: list[str] = []

    def returned(candidate: WaitingTask) -> TaskEvent:
        seen.append(candidate.task.node_id)
        return TaskReturned(*key_of(candidate.task), candidate.location)

    backlog = Backlog("shared", None, 1)
    recalled = await owner.recall(backlog, returned)
    assert recalled == 1
    assert waiting.node_id in seen

    task_keys = await _task_keys(owner)
    assert task_keys == [key_of(waiting)]

    on_list = await queue.claimed("worker-1")
    assert on_list == [taken]


async def test_what_is_not_decided_stays(stores: Stores) -> None:
    owner, tasks = await _hand_out(stores, "old", "old")
    backlog = Backlog("shared", None, 2)
    recalled = await owner.recall(backlog, lambda _: None)
    assert recalled == 0

    inbox = await owner.inbox()
    assert inbox == []

    fetched = await stores.queue.fetch("worker-1", SHARED, 10, OLD)
    assert fetched == tasks


async def test_an_owner_whose_lease_has_moved_on_takes_nothing_back(stores: Stores) -> None:
    owner, tasks = await _hand_out(stores, "old")
    current = await Owner.of(stores)

    def returned(waiting: WaitingTask) -> TaskEvent:
        return TaskReturned(*key_of(waiting.task), waiting.location)

    backlog = Backlog("shared", None, 1)
    with pytest.raises(Fenced):
        await owner.recall(backlog, returned)
    inbox = await current.inbox()
    assert inbox == []

    fetched = await stores.queue.fetch("worker-1", SHARED, 10, OLD)
    assert fetched == tasks


async def test_workers_say_what_they_offer_until_they_leave(stores: Stores) -> None:
    queue = stores.queue
    handlers = {
        "old": HandlerDefaults(),
        "new": HandlerDefaults(Retry(max_attempts=2), 7.0, "gpu"),
    }
    await queue.heartbeat("worker-1", {"old", "gpu"}, [], handlers)
    await queue.heartbeat("worker-2", SHARED, [])
    offers = {offer.worker_id: offer for offer in await queue.offers()}
    assert offers["worker-1"].handlers == handlers
    assert set(offers["worker-1"].queues) == {"old", "gpu"}
    assert offers["worker-1"].silent_seconds < 60
    assert offers["worker-1"].has("new")
    assert not offers["worker-1"].has("newer")
    assert offers["worker-2"].has("anything"), "a worker that doesn't say may have it"

    await queue.leave("worker-1", [])
    offers_now = await queue.offers()
    assert [offer.worker_id for offer in offers_now] == ["worker-2"]
