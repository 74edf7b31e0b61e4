"""The task queue: a task belongs to one worker, and only its outcome counts (G2, G4)."""

import asyncio

import pytest

from penstock.contract.facts import (
    Owner,
    begin,
    ended,
    hand_out,
    new_execution_ids,
    new_intent,
    queued,
    started,
    stop,
    success,
    task,
)
from penstock.contract.waiting import let_others_run
from penstock.engine.commands import Commands, Task
from penstock.engine.events import TaskLost, TaskStarted
from penstock.errors import Fenced
from penstock.stores.base import Stores, partition_of
from penstock.stores.task_keys import key_of

ECHO = {"echo"}


async def test_a_worker_gets_as_many_tasks_as_it_asks_for_in_order(stores: Stores) -> None:
    _, tasks = await hand_out(stores, *"abcde")
    fetched = await stores.queue.fetch("worker-1", ECHO, 2)
    assert fetched == tasks[:2]

    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == tasks[2:]


async def test_two_workers_never_get_the_same_task(stores: Stores) -> None:
    _, tasks = await hand_out(stores, *(f"n{i}" for i in range(20)))
    fetched: list[Task] = []
    while len(fetched) < len(tasks):
        for worker in ("worker-1", "worker-2"):
            fetched += await stores.queue.fetch(worker, ECHO, 5)
    assert sorted(task.node_id for task in fetched) == sorted(task.node_id for task in tasks)


async def test_a_worker_waits_for_the_first_task_and_is_woken_by_it(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 5))
    await let_others_run()
    assert not fetching.done()

    await owner.commit(queued(task(execution_id)))
    async with asyncio.timeout(5):
        fetched = await fetching
        assert fetched == [task(execution_id)]


async def test_of_two_waiting_workers_the_second_keeps_waiting_for_the_second_task(
    stores: Stores,
) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    waiting = {
        asyncio.create_task(stores.queue.fetch(worker, ECHO, 5))
        for worker in ("worker-1", "worker-2")
    }
    await let_others_run()
    fetched = []
    for node in "ab":
        await owner.commit(queued(task(execution_id, node)))
        done, waiting = await asyncio.wait(waiting, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        fetched += [await fetching for fetching in done]

    assert fetched == [[task(execution_id, "a")], [task(execution_id, "b")]]


async def test_a_fetch_that_was_cancelled_takes_no_task_with_it(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 5))
    await let_others_run()
    committing = asyncio.create_task(owner.commit(queued(task(execution_id))))
    fetching.cancel()
    await asyncio.gather(fetching, committing, return_exceptions=True)
    async with asyncio.timeout(5):
        fetched = await stores.queue.fetch("worker-2", ECHO, 5)
        assert fetched == [task(execution_id)]


async def test_a_worker_gets_tasks_of_its_queues_only(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    tasks = [task(execution_id, queue, queue=queue) for queue in ("gpu", "echo", "mail")]
    await owner.commit(queued(*tasks))
    fetched = await stores.queue.fetch("worker-1", {"echo"}, 10)
    assert fetched == [tasks[1]]

    fetched = await stores.queue.fetch("worker-2", {"gpu", "mail"}, 10)
    assert sorted(fetched_task.queue for fetched_task in fetched) == ["gpu", "mail"]

    await _assert_nothing_left(stores, {"gpu", "echo", "mail"})


async def test_an_outcome_goes_into_the_inbox_and_the_task_off_the_workers_list(
    stores: Stores,
) -> None:
    queue = stores.queue
    owner, (claimed,) = await _claim_tasks(stores, "a")
    gone = await queue.heartbeat("worker-1", ECHO, [stop(claimed)])
    assert gone == []

    await _succeed(stores, "worker-1", claimed)
    inbox = await owner.inbox()
    assert inbox == [success(claimed, "worker-1")]

    gone = await queue.heartbeat("worker-1", ECHO, [stop(claimed)])
    assert gone == [stop(claimed)]


async def test_a_second_report_of_the_same_task_is_dropped(stores: Stores) -> None:
    owner, (a, b) = await _claim_tasks(stores, "a", "b")
    first = success(a, "worker-1")
    second = success(b, "worker-1")
    await stores.queue.report("worker-1", [first, first])
    await stores.queue.report("worker-1", [first, second])
    inbox = await owner.inbox()
    assert inbox == [first, second]


async def test_a_report_by_somebody_else_is_dropped(stores: Stores) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    await _succeed(stores, "worker-2", claimed)
    inbox = await owner.inbox()
    assert inbox == []

    await _succeed(stores, "worker-1", claimed)
    inbox = await owner.inbox()
    assert len(inbox) == 1


async def test_a_report_of_a_task_that_nobody_fetched_is_dropped(stores: Stores) -> None:
    owner, (waiting,) = await hand_out(stores, "a")
    await _succeed(stores, "worker-1", waiting)
    inbox = await owner.inbox()
    assert inbox == []

    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [waiting]


async def test_a_report_of_another_attempt_or_generation_is_dropped(stores: Stores) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    execution_id = claimed.execution_id
    unclaimed = [
        task(execution_id, "a", attempt=2),
        task(execution_id, "a", generation=2),
        task(execution_id, "b"),
    ]
    await _succeed(stores, "worker-1", *unclaimed)
    inbox = await owner.inbox()
    assert inbox == []


async def test_a_long_task_says_that_it_started_and_stays_on_the_list(stores: Stores) -> None:
    queue = stores.queue
    owner, (claimed,) = await _claim_tasks(stores, "a")
    begun = TaskStarted(*key_of(claimed), "worker-1", 12.0)
    await queue.started("worker-1", [begun])
    await queue.started("worker-2", [TaskStarted(*key_of(claimed), "worker-2", 12.0)])
    inbox = await owner.inbox()
    assert inbox == [begun]

    await _succeed(stores, "worker-1", claimed)
    inbox = await owner.inbox()
    assert len(inbox) == 2


async def test_a_queued_task_that_was_stopped_is_never_fetched(stores: Stores) -> None:
    owner, (a, b, c) = await hand_out(stores, *"abc")
    await owner.commit(Commands(a.execution_id, stops=[stop(b)]))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [a, c]

    await _assert_nothing_left(stores)


async def test_a_stopped_claimed_task_is_in_the_heartbeats_answer_and_its_outcome_is_dropped(
    stores: Stores,
) -> None:
    owner, (a, b) = await _claim_tasks(stores, "a", "b")
    await owner.commit(Commands(a.execution_id, stops=[stop(a)]))
    gone = await stores.queue.heartbeat("worker-1", ECHO, [stop(a), stop(b)])
    assert gone == [stop(a)]

    await _succeed(stores, "worker-1", a, b)
    inbox = await owner.inbox()
    assert inbox == [success(b, "worker-1")]


async def test_stopping_an_attempt_leaves_the_next_one_alone(stores: Stores) -> None:
    owner, (first,) = await hand_out(stores, "a")
    second = task(first.execution_id, "a", attempt=2)
    await owner.commit(Commands(first.execution_id, stops=[stop(first)], tasks=[second]))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [second]


async def test_stopping_a_task_that_is_gone_changes_nothing(stores: Stores) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    await _succeed(stores, "worker-1", claimed)
    await owner.commit(Commands(claimed.execution_id, stops=[stop(claimed)]))
    # Dispatched again, as after a return: the old stop must not apply to it.
    await owner.commit(queued(claimed))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [claimed]


async def test_no_task_of_a_paused_execution_is_fetched_until_it_is_resumed(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    paused = next(execution_ids)
    free = next(execution_ids)
    owner = await begin(stores, paused, free)
    await owner.commit(queued(task(paused, "before")), queued(task(free)))
    await owner.commit(Commands(paused, paused=True))
    await owner.commit(queued(task(paused, "during")), queued(task(free, "during")))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [task(free), task(free, "during")]

    await _assert_nothing_left(stores)
    await owner.commit(Commands(paused, paused=False))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert sorted(fetched_task.node_id for fetched_task in fetched) == ["before", "during"]

    await _assert_nothing_left(stores)


async def test_a_release_wakes_a_waiting_worker(stores: Stores) -> None:
    owner, (waiting,) = await hand_out(stores, "a")
    await owner.commit(Commands(waiting.execution_id, paused=True))
    fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 10))
    await let_others_run()
    await owner.commit(Commands(waiting.execution_id, paused=False))
    async with asyncio.timeout(5):
        fetched = await fetching
        assert fetched == [waiting]


async def test_a_task_stopped_while_paused_is_not_fetched_after_the_resume(
    stores: Stores,
) -> None:
    owner, (a, b) = await hand_out(stores, "a", "b")
    await owner.commit(Commands(a.execution_id, paused=True))
    await _assert_nothing_left(stores)
    await owner.commit(Commands(a.execution_id, stops=[stop(a)]))
    await owner.commit(Commands(a.execution_id, paused=False))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [b]


async def test_a_task_of_an_execution_that_ended_while_paused_is_never_fetched(
    stores: Stores,
) -> None:
    owner, (a, _b) = await hand_out(stores, "a", "b")
    await owner.commit(Commands(a.execution_id, paused=True))
    await _assert_nothing_left(stores)
    # The second task isn't stopped: the end of its execution is enough.
    await owner.commit(ended(a.execution_id, stops=[stop(a)]))
    await _assert_nothing_left(stores)


async def test_a_claimed_task_can_be_reported_while_the_execution_is_paused(
    stores: Stores,
) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    await owner.commit(Commands(claimed.execution_id, paused=True))
    gone = await stores.queue.heartbeat("worker-1", ECHO, [stop(claimed)])
    assert gone == []

    await _succeed(stores, "worker-1", claimed)
    inbox = await owner.inbox()
    assert len(inbox) == 1


async def test_a_heartbeat_moves_the_workers_counter(stores: Stores) -> None:
    queue = stores.queue
    await queue.heartbeat("worker-1", ECHO, [])
    before = (await queue.workers())["worker-1"]
    await queue.heartbeat("worker-1", ECHO, [])
    workers = await queue.workers()
    assert workers["worker-1"] != before


async def test_a_worker_that_died_before_its_first_heartbeat_is_known(stores: Stores) -> None:
    """Otherwise nobody would miss it, and its tasks would wait for ever."""
    await _claim_tasks(stores, "a")
    workers = await stores.queue.workers()
    assert "worker-1" in workers


async def test_a_dead_workers_tasks_are_lost_once(stores: Stores) -> None:
    owner, (a, b) = await _claim_tasks(stores, "a", "b")
    reaped = await owner.reap("worker-1")
    assert reaped == 2

    lost = [TaskLost(*key_of(task), "worker-1") for task in (a, b)]
    inbox = await owner.inbox()
    assert sorted(inbox, key=str) == sorted(lost, key=str)

    reaped = await owner.reap("worker-1")
    assert reaped == 0

    inbox = await owner.inbox()
    assert len(inbox) == 2


async def test_the_outcome_of_a_task_that_was_taken_back_is_dropped(stores: Stores) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    await owner.reap("worker-1")
    gone = await stores.queue.heartbeat("worker-1", ECHO, [stop(claimed)])
    assert gone == [stop(claimed)]

    await _succeed(stores, "worker-1", claimed)
    inbox = await owner.inbox()
    assert [type(event) for event in inbox] == [TaskLost]


async def test_reaping_leaves_reported_tasks_and_other_workers_alone(stores: Stores) -> None:
    queue = stores.queue
    owner, (a, b, c) = await hand_out(stores, *"abc")
    await queue.fetch("worker-1", ECHO, 2)
    await queue.fetch("worker-2", ECHO, 1)
    await _succeed(stores, "worker-1", a)
    reaped = await owner.reap("worker-1")
    assert reaped == 1

    inbox = await owner.inbox()
    assert inbox == [success(a, "worker-1"), TaskLost(*key_of(b), "worker-1")]

    gone = await queue.heartbeat("worker-2", ECHO, [stop(c)])
    assert gone == []


async def test_a_reaper_whose_lease_has_moved_on_takes_nothing(stores: Stores) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    current = await Owner.of(stores)
    with pytest.raises(Fenced):
        await owner.reap("worker-1")
    inbox = await current.inbox()
    assert inbox == []

    gone = await stores.queue.heartbeat("worker-1", ECHO, [stop(claimed)])
    assert gone == []


async def test_each_partitions_owner_takes_back_the_tasks_of_its_own_executions(
    stores: Stores,
) -> None:
    queue = stores.queue
    owners = {}
    for partition in range(stores.hot.partitions):
        execution_id = next(new_execution_ids(stores, partition))
        await stores.cold.executions.record_intents([new_intent(execution_id)])
        owner = await Owner.of(stores, partition)
        await owner.commit(started(execution_id))
        await owner.commit(queued(task(execution_id)))
        owners[execution_id] = owner

    fetched = await queue.fetch("worker-1", ECHO, 100)
    assert {fetched_task.execution_id for fetched_task in fetched} == owners.keys()

    for execution_id, owner in owners.items():
        workers = await queue.workers()
        assert "worker-1" in workers, "or the other owners wouldn't hear of it"

        reaped = await owner.reap("worker-1")
        assert reaped == 1

        inbox = await owner.inbox()
        assert inbox == [TaskLost(*key_of(task(execution_id)), "worker-1")]
        assert owner.lease.partition == partition_of(execution_id, stores.hot.partitions)
    workers = await queue.workers()
    assert "worker-1" not in workers


async def test_a_worker_that_leaves_hands_back_what_it_never_started(stores: Stores) -> None:
    queue = stores.queue
    owner, (a, b) = await _claim_tasks(stores, "a", "b")
    await _succeed(stores, "worker-1", a)
    await queue.leave("worker-1", [b])
    workers = await queue.workers()
    assert "worker-1" not in workers

    await _succeed(stores, "worker-1", b)
    inbox = await owner.inbox()
    assert inbox == [success(a, "worker-1")]

    async with asyncio.timeout(5):
        fetched = await queue.fetch("worker-2", ECHO, 10)
        assert fetched == [b]


async def test_a_worker_that_leaves_hands_back_only_its_own(stores: Stores) -> None:
    queue = stores.queue
    owner, (a, b) = await hand_out(stores, "a", "b")
    await queue.fetch("worker-1", ECHO, 1)
    await queue.fetch("worker-2", ECHO, 1)
    await queue.leave("worker-1", [a, b])
    fetched = await queue.fetch("worker-3", ECHO, 10)
    assert fetched == [a]

    await _assert_nothing_left(stores)
    await _succeed(stores, "worker-2", b)
    inbox = await owner.inbox()
    assert inbox == [success(b, "worker-2")]


async def test_what_was_handed_back_by_a_paused_execution_waits_for_its_resume(
    stores: Stores,
) -> None:
    owner, (claimed,) = await _claim_tasks(stores, "a")
    await owner.commit(Commands(claimed.execution_id, paused=True))
    await stores.queue.leave("worker-1", [claimed])
    await _assert_nothing_left(stores)
    await owner.commit(Commands(claimed.execution_id, paused=False))
    async with asyncio.timeout(5):
        fetched = await stores.queue.fetch("worker-2", ECHO, 10)
        assert fetched == [claimed]


async def test_what_a_leaving_worker_stopped_in_the_middle_is_lost_at_once(stores: Stores) -> None:
    owner, (a, b) = await _claim_tasks(stores, "a", "b")
    await stores.queue.leave("worker-1", [a])
    inbox = await owner.inbox()
    assert inbox == [TaskLost(*key_of(b), "worker-1", interrupted=True)]

    workers = await stores.queue.workers()
    assert "worker-1" not in workers


async def test_a_worker_can_ask_what_is_on_its_list(stores: Stores) -> None:
    """A fetch whose answer got lost took tasks that nobody else will run."""
    queue = stores.queue
    _, (a, b, c) = await hand_out(stores, *"abc")
    on_list = await queue.claimed("worker-1")
    assert on_list == []

    await queue.fetch("worker-1", ECHO, 2)
    await queue.fetch("worker-2", ECHO, 1)
    on_list = await queue.claimed("worker-1")
    assert on_list == [a, b]

    await _succeed(stores, "worker-1", a)
    on_list = await queue.claimed("worker-1")
    assert on_list == [b]

    on_list = await queue.claimed("worker-2")
    assert on_list == [c]


async def test_a_task_that_is_handed_out_again_while_it_is_here_is_here_once(
    stores: Stores,
) -> None:
    """An owner that starts again in the same process hands out what the file says is queued."""
    owner, (waiting, claimed) = await hand_out(stores, "a", "b")
    fetched = await stores.queue.fetch("worker-1", ECHO, 1)
    assert fetched == [waiting]

    await owner.commit(Commands(claimed.execution_id, tasks=[waiting, claimed]))
    fetched = await stores.queue.fetch("worker-2", ECHO, 10)
    assert fetched == [claimed]

    await _assert_nothing_left(stores)


async def _claim_tasks(stores: Stores, *nodes: str) -> tuple[Owner, list[Task]]:
    """One execution whose tasks `worker-1` has."""
    owner, tasks = await hand_out(stores, *nodes)
    fetched = await stores.queue.fetch("worker-1", ECHO, len(nodes))
    assert fetched == tasks

    return owner, tasks


async def _succeed(stores: Stores, worker_id: str, *tasks: Task) -> None:
    """Report that tasks have succeeded on a worker, whether they are the worker's or not."""
    events = [success(task, worker_id) for task in tasks]
    await stores.queue.report(worker_id, events)


async def _assert_nothing_left(stores: Stores, queues: set[str] = ECHO) -> None:
    fetching = asyncio.create_task(stores.queue.fetch("worker-9", queues, 10))
    await let_others_run()
    assert not fetching.done()

    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)


async def test_a_worker_that_was_declared_dead_while_it_waited_is_known_again_when_it_gets_a_task(
    stores: Stores,
) -> None:
    """Or nobody would take its task back when it really is dead."""
    queue = stores.queue
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    fetching = asyncio.create_task(queue.fetch("worker-1", {"echo"}, 1))
    await let_others_run()
    reaped = await owner.reap("worker-1")
    assert reaped == 0

    workers = await queue.workers()
    assert "worker-1" not in workers

    await owner.commit(queued(task(execution_id)))
    async with asyncio.timeout(5):
        fetched = await fetching
        assert len(fetched) == 1
    workers = await queue.workers()
    assert "worker-1" in workers

    reaped = await owner.reap("worker-1")
    assert reaped == 1
