"""Priorities in a queue: the highest first; within one priority first come, first served."""

import asyncio
import random

from penstock.contract.facts import Owner, begin, new_execution_ids, queued, stop, task
from penstock.contract.waiting import let_others_run
from penstock.engine.commands import Commands, Task
from penstock.stores.base import Stores

ECHO = {"echo"}


async def test_tasks_of_a_higher_priority_are_handed_out_first(stores: Stores) -> None:
    priorities = {
        "a": 0,
        "b": 5,
        "c": -1,
        "d": 10,
        "e": 5,
        "f": 0,
        "g": -1,
    }
    await _hand_out(stores, priorities)
    fetched = await _fetch(stores, 3)
    assert fetched == "dbe"

    fetched = await _fetch(stores, 10)
    assert fetched == "afcg"


async def test_a_task_of_a_higher_priority_overtakes_those_that_wait(stores: Stores) -> None:
    owner, (a, *_) = await _hand_out(stores, {"a": 0, "b": 0, "c": 1})
    fetched = await _fetch(stores, 2)
    assert fetched == "ca"

    high = task(a.execution_id, "d", priority=2)
    low = task(a.execution_id, "e")
    await owner.commit(queued(high, low))
    fetched = await _fetch(stores, 10)
    assert fetched == "dbe"


async def test_any_order_of_arrival_gives_the_order_of_priorities(stores: Stores) -> None:
    choose = random.Random(1)
    choices = [-2, 0, 0, 0, 1, 2**40]
    priorities = {f"n{number}": choose.choice(choices) for number in range(200)}
    await _hand_out(stores, priorities)
    fetched: list[Task] = []
    while len(fetched) < len(priorities):
        fetched += await stores.queue.fetch("worker-1", ECHO, choose.randrange(1, 9))

    highest_first = sorted(priorities, key=lambda node: -priorities[node])
    assert [task.node_id for task in fetched] == highest_first


async def test_a_worker_that_waits_is_woken_by_a_task_of_any_priority(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    for node, priority in (("a", 3), ("b", -3)):
        fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 5))
        await let_others_run()
        dispatched = task(execution_id, node, priority=priority)
        await owner.commit(queued(dispatched))
        async with asyncio.timeout(5):
            fetched = await fetching
            assert fetched == [dispatched]


async def test_each_queue_has_priorities_of_its_own(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    tasks = [
        task(execution_id, "a", queue="mail", priority=9),
        task(execution_id, "b"),
        task(execution_id, "c", priority=1),
    ]
    await owner.commit(queued(*tasks))
    fetched = await _fetch(stores, 10)
    assert fetched == "cb"

    mail_tasks = await stores.queue.fetch("worker-1", {"mail"}, 10)
    assert [task.node_id for task in mail_tasks] == ["a"]


async def test_a_stopped_task_is_not_handed_out_whatever_its_priority(stores: Stores) -> None:
    owner, (a, b, c) = await _hand_out(stores, {"a": 2, "b": 2, "c": 0})
    await owner.commit(Commands(a.execution_id, stops=[stop(a), stop(c)]))
    fetched = await stores.queue.fetch("worker-1", ECHO, 10)
    assert fetched == [b]


async def test_tasks_keep_their_priority_through_a_pause(stores: Stores) -> None:
    owner, (a, *_) = await _hand_out(stores, {"a": 0, "b": 2, "c": -2, "d": 1})
    await owner.commit(Commands(a.execution_id, paused=True))
    fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 10))
    await let_others_run()
    assert not fetching.done()

    await owner.commit(Commands(a.execution_id, paused=False))
    async with asyncio.timeout(5):
        fetched = await fetching
        assert [task.node_id for task in fetched] == list("bdac")


async def test_what_a_worker_hands_back_keeps_its_priority(stores: Stores) -> None:
    _, (_, b, _) = await _hand_out(stores, {"a": 0, "b": 5, "c": 1})
    (first,) = await stores.queue.fetch("worker-1", ECHO, 1)
    assert first == b

    await stores.queue.leave("worker-1", [b])
    fetched = await _fetch(stores, 10)
    assert fetched == "bca"


async def test_depths_count_tasks_of_every_priority(stores: Stores) -> None:
    queue = stores.queue
    await _hand_out(stores, {"a": 0, "b": 5, "c": -1, "d": 5})
    depths = await queue.depths()
    assert dict(depths) == {"echo": (4, 0)}

    await _fetch(stores, 3)
    depths = await queue.depths()
    assert dict(depths) == {"echo": (1, 3)}

    await _fetch(stores, 3)
    depths = await queue.depths()
    assert depths["echo"] == (0, 4)


async def _hand_out(stores: Stores, priorities: dict[str, int]) -> tuple[Owner, list[Task]]:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    tasks: list[Task] = []
    for node, priority in priorities.items():
        tasks.append(task(execution_id, node, priority=priority))
    await owner.commit(queued(*tasks))
    return owner, tasks


async def _fetch(stores: Stores, limit: int) -> str:
    """The ids of the nodes whose tasks are fetched, in order."""
    tasks = await stores.queue.fetch("worker-1", ECHO, limit)
    return "".join(task.node_id for task in tasks)
