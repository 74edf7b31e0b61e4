"""Tasks ahead: how many tasks are handed out before one that waits."""

from __future__ import annotations

from typing import Any

from penstock.contract.facts import begin, hand_out, new_execution_ids, queued, stop, task
from penstock.contract.waiting import until
from penstock.engine.commands import Commands, Task
from penstock.stores.base import Stores, TasksAhead
from penstock.stores.task_keys import key_of

ECHO = {"echo"}
LIMIT = 1000


async def test_a_task_is_behind_those_that_came_before_it(stores: Stores) -> None:
    _, tasks = await hand_out(stores, *"abcd")
    assert await _all_ahead(stores, tasks) == [0, 1, 2, 3]


async def test_a_claimed_task_is_not_ahead_and_has_no_place(stores: Stores) -> None:
    _, (a, b, c) = await hand_out(stores, *"abc")
    await stores.queue.fetch("worker-1", ECHO, 1)
    assert await _all_ahead(stores, [a, b, c]) == [None, 0, 1]

    await stores.queue.leave("worker-1", [a])
    assert await _all_ahead(stores, [a, b, c]) == [2, 0, 1]


async def test_a_stopped_task_is_not_ahead_and_has_no_place(stores: Stores) -> None:
    owner, (a, b) = await hand_out(stores, *"ab")
    await owner.commit(Commands(a.execution_id, stops=[stop(a)]))
    assert await _all_ahead(stores, [a, b]) == [None, 0]


async def test_tasks_of_a_higher_priority_are_ahead_and_those_of_a_lower_one_are_not(
    stores: Stores,
) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    priorities = {"low": -1, "a": 0, "high": 5, "b": 0, "higher": 7, "lower": -9}
    tasks = [task(execution_id, node, priority=number) for node, number in priorities.items()]
    await owner.commit(queued(*tasks))
    assert await _all_ahead(stores, tasks) == [4, 2, 1, 3, 0, 5]


async def test_each_queue_has_places_of_its_own(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    mail = task(execution_id, "mail", queue="mail")
    echo = task(execution_id, "echo")
    await owner.commit(queued(mail, echo))
    assert await _all_ahead(stores, [mail, echo]) == [0, 0]
    assert await stores.queue.tasks_ahead(key_of(mail), "echo", "echo", 0, LIMIT) is None
    assert await stores.queue.tasks_ahead(key_of(mail), "nobody's", "echo", 0, LIMIT) is None


async def test_only_the_attempt_that_waits_has_a_place(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    first, second = next(execution_ids), next(execution_ids)
    owner = await begin(stores, first, second)
    await owner.commit(queued(task(first, "a")))
    waiting = task(second, "a", attempt=2)
    others = [task(second, "a"), task(second, "a", attempt=2, generation=2), task(second, "b")]
    await owner.commit(queued(waiting))
    assert await _all_ahead(stores, [waiting, *others]) == [1, None, None, None]


async def test_what_a_worker_passed_over_is_ahead_of_its_handlers_tasks_only(
    stores: Stores,
) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    fields: dict[str, Any] = {"queue": "shared"}
    old = [task(execution_id, f"old{number}", handler="old", **fields) for number in range(2)]
    new = [task(execution_id, f"new{number}", handler="new", **fields) for number in range(3)]
    await owner.commit(queued(*new[:2], old[0]))
    fetched = await stores.queue.fetch("worker-1", {"shared"}, 1, {"old"})
    assert fetched == old[:1]

    await owner.commit(queued(old[1], new[2]))
    assert await _all_ahead(stores, [*new, old[1]]) == [0, 1, 3, 0]


async def test_no_more_tasks_are_looked_at_than_allowed(stores: Stores) -> None:
    owner, tasks = await hand_out(stores, *(f"n{number}" for number in range(6)))
    high = task(tasks[0].execution_id, "high", priority=1)
    await owner.commit(queued(high))
    assert await _ahead(stores, tasks[3], limit=4) == TasksAhead(4)
    assert await _ahead(stores, tasks[4], limit=4) == TasksAhead(5, is_exact=False)
    assert await _ahead(stores, tasks[5], limit=4) == TasksAhead(5, is_exact=False)


async def test_more_tasks_than_a_store_reads_at_once_are_counted(stores: Stores) -> None:
    _, tasks = await hand_out(stores, *(f"n{number}" for number in range(500)))
    assert await _ahead(stores, tasks[199]) == TasksAhead(199)
    assert await _ahead(stores, tasks[200]) == TasksAhead(200)
    assert await _ahead(stores, tasks[499]) == TasksAhead(499)


async def test_tasks_of_all_partitions_are_ahead_by_priority_and_then_by_age(
    stores: Stores,
) -> None:
    tasks: list[Task] = []
    for partition in range(stores.hot.partitions):
        execution_id = next(new_execution_ids(stores, partition))
        owner = await begin(stores, execution_id)
        low = task(execution_id, "low", priority=-1)
        high = task(execution_id, "high", priority=1)
        await owner.commit(queued(low, high))
        tasks.append(low)
        await _time_has_passed(stores)

    partitions = stores.hot.partitions
    expected = [partitions + number for number in range(partitions)]
    assert await _all_ahead(stores, tasks) == expected


async def _time_has_passed(stores: Stores) -> None:
    """Tasks of the same millisecond are equally old."""
    begun_at = stores.hot.now()

    async def is_later() -> bool:
        return stores.hot.now() > begun_at + 0.002

    await until(is_later)


async def _ahead(stores: Stores, waiting: Task, limit: int = LIMIT) -> TasksAhead | None:
    return await stores.queue.tasks_ahead(
        key_of(waiting), waiting.queue, waiting.handler, waiting.priority, limit
    )


async def _all_ahead(stores: Stores, tasks: list[Task]) -> list[int | None]:
    """How many tasks are ahead of each; None if it doesn't wait."""
    counts: list[int | None] = []
    for waiting in tasks:
        ahead = await _ahead(stores, waiting)
        assert ahead is None or ahead.is_exact
        counts.append(None if ahead is None else ahead.count)
    return counts
