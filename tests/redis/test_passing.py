"""Tasks that a worker without their handler passes over: each moves once, and nothing of it stays behind."""

import asyncio
from typing import Any

from penstock.contract.facts import queued, started, success, task
from penstock.engine.events import TaskReturned
from penstock.stores import codec
from penstock.stores.base import Backlog
from penstock.stores.task_queue import key_of
from tests.redis.place import NAME, Place, place

SIDE = "penstock:{0}:tasks:0:echo\x1fnew"
OLD = [1, "echo", "old"]
"""One queue, and the handlers of a worker, as the script takes them."""


async def _hand_out(it: Place, *handlers: str) -> list[Any]:
    tasks = [task(NAME, f"n{number}", handler=handler) for number, handler in enumerate(handlers)]
    await it.commit(started(NAME))
    for first in range(0, len(tasks), 500):
        await it.commit(queued(*tasks[first : first + 500]))
    return tasks


def test_a_task_moves_once_however_many_workers_without_its_handler_look() -> None:
    async def scenario() -> None:
        async with place() as it:
            (given,) = await _hand_out(it, "new")
            await it.queue._take(0, "worker-1", OLD, 10)
            first = await it.call("XRANGE", SIDE, "-", "+")
            wake = await it.call("XRANGE", "penstock:{0}:wake", "-", "+")
            assert len(first) == 1
            for worker in range(3):
                await it.queue._take(0, f"worker-{worker}", OLD, 10)
            assert await it.call("XRANGE", SIDE, "-", "+") == first
            assert await it.call("XRANGE", "penstock:{0}:wake", "-", "+") == wake, (
                "nobody is woken for nothing"
            )
            assert await it.queue.fetch("worker-9", {"echo"}, 10, {"new"}) == [given]

    asyncio.run(scenario())


def test_one_fetch_passes_over_a_bounded_number_and_the_next_goes_on() -> None:
    async def scenario() -> None:
        async with place() as it:
            await _hand_out(it, *["new"] * 1500, "old")
            await it.queue._take(0, "worker-1", OLD, 100)
            backlog = {each.handler: each.waiting for each in await it.queue.backlog(0)}
            assert backlog == {"new": 1000, None: 501}
            async with asyncio.timeout(5):  # it is woken by what it has moved itself
                fetched = await it.queue.fetch("worker-1", {"echo"}, 100, {"old"})
            assert [each.handler for each in fetched] == ["old"]
            assert await it.queue.backlog(0) == [Backlog("echo", "new", 1500)]

    asyncio.run(scenario())


def test_the_stream_of_a_handler_goes_when_its_tasks_are_done() -> None:
    async def scenario() -> None:
        async with place() as it:
            tasks = await _hand_out(it, "new", "new")
            await it.queue._take(0, "worker-1", OLD, 10)
            assert await it.queue.fetch("worker-2", {"echo"}, 10, {"new"}) == tasks
            await it.queue._take(0, "worker-2", [1, "echo", "new"], 10)
            assert await it.call("EXISTS", SIDE) == 1, "its tasks are in a worker's hands"
            await it.queue.report("worker-2", [success(each, "worker-2") for each in tasks])
            await it.queue._take(0, "worker-2", [1, "echo", "new"], 10)
            assert await it.call("EXISTS", SIDE) == 0
            assert await it.call("SMEMBERS", "penstock:{0}:queues") == [b"0:echo"]
            assert await it.call("SMEMBERS", "penstock:{0}:ranks") == []
            assert await it.queue.depths() == {"echo": (0, 0)}

    asyncio.run(scenario())


def test_a_task_whose_handler_cannot_be_read_is_reported_and_not_passed_over() -> None:
    async def scenario() -> None:
        async with place() as it:
            (given,) = await _hand_out(it, "old")
            await it.call("XADD", "penstock:{0}:tasks:0:echo", "*", "1", b"\xc1 is no task")
            assert await it.queue.fetch("worker-1", {"echo"}, 10, {"old"}) == [given]
            assert [event.error.category for event in await it.inbox()] == ["schema"]
            assert await it.queue.backlog(0) == []

    asyncio.run(scenario())


def test_a_task_that_is_gone_is_not_taken_back() -> None:
    async def scenario() -> None:
        async with place() as it:
            (given,) = await _hand_out(it, "new")
            event = codec.encode(TaskReturned(*key_of(given), "nowhere"))
            assert await it.queue._run("recall", 0, it.lease.token, "0:echo", "1-1", event) == 0
            assert await it.inbox() == []

    asyncio.run(scenario())


def test_a_large_backlog_is_looked_at_in_portions() -> None:
    async def scenario() -> None:
        async with place() as it:
            await _hand_out(it, *["new"] * 1000)
            seen: list[str] = []

            def look(waiting: Any) -> None:
                seen.append(waiting.task.node_id)

            for _ in range(4):
                await it.queue.recall(0, it.lease.token, Backlog("echo", None, 1000), look)
            assert seen[:1000] == [f"n{number}" for number in range(1000)]
            assert seen[1000:] == seen[:400], "then from the beginning"

    asyncio.run(scenario())
