"""Tasks that a worker without their handler passes on.

Each moves once, and nothing of it stays behind.
"""

import asyncio
from typing import Any

from penstock.contract.facts import queued, started, success, task
from penstock.engine.events import TaskReturned
from penstock.stores import codec
from penstock.stores.base import Backlog
from penstock.stores.task_keys import key_of
from tests.redis.stores_under_test import NAME, StoresUnderTest, open_stores

SIDE = "penstock:{0}:tasks:0:echo\x1fnew"
OLD = [1, "echo", "old"]
"""One queue, and the handlers of a worker, as the script takes them."""


async def _hand_out(stores: StoresUnderTest, *handlers: str) -> list[Any]:
    tasks = [task(NAME, f"n{number}", handler=handler) for number, handler in enumerate(handlers)]
    await stores.commit(started(NAME))
    for first in range(0, len(tasks), 500):
        await stores.commit(queued(*tasks[first : first + 500]))
    return tasks


def test_a_task_moves_once_however_many_workers_without_its_handler_look() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await _hand_out(stores, "new")
            await stores.queue._fetch_from(0, "worker-1", OLD, 10)
            first = await stores.call("XRANGE", SIDE, "-", "+")
            wake = await stores.call("XRANGE", "penstock:{0}:wake", "-", "+")
            assert len(first) == 1
            for worker in range(3):
                await stores.queue._fetch_from(0, f"worker-{worker}", OLD, 10)
            assert await stores.call("XRANGE", SIDE, "-", "+") == first
            assert await stores.call("XRANGE", "penstock:{0}:wake", "-", "+") == wake, (
                "nobody is woken for nothing"
            )
            assert await stores.queue.fetch("worker-9", {"echo"}, 10, {"new"}) == [dispatched]

    asyncio.run(scenario())


def test_one_fetch_passes_over_a_bounded_number_and_the_next_goes_on() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await _hand_out(stores, *["new"] * 1500, "old")
            await stores.queue._fetch_from(0, "worker-1", OLD, 100)
            backlog = {
                backlog_line.handler: backlog_line.waiting
                for backlog_line in await stores.queue.backlog(0)
            }
            assert backlog == {"new": 1000, None: 501}
            async with asyncio.timeout(5):  # it is woken by what it has moved itself
                fetched = await stores.queue.fetch("worker-1", {"echo"}, 100, {"old"})
            assert [backlog_line.handler for backlog_line in fetched] == ["old"]
            assert await stores.queue.backlog(0) == [Backlog("echo", "new", 1500)]

    asyncio.run(scenario())


def test_the_stream_of_a_handler_goes_when_its_tasks_are_done() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            tasks = await _hand_out(stores, "new", "new")
            await stores.queue._fetch_from(0, "worker-1", OLD, 10)
            assert await stores.queue.fetch("worker-2", {"echo"}, 10, {"new"}) == tasks
            await stores.queue._fetch_from(0, "worker-2", [1, "echo", "new"], 10)
            assert await stores.call("EXISTS", SIDE) == 1, "its tasks are in a worker's hands"
            await stores.queue.report(
                "worker-2", [success(claimed_task, "worker-2") for claimed_task in tasks]
            )
            await stores.queue._fetch_from(0, "worker-2", [1, "echo", "new"], 10)
            assert await stores.call("EXISTS", SIDE) == 0
            assert await stores.call("SMEMBERS", "penstock:{0}:queues") == [b"0:echo"]
            assert await stores.call("SMEMBERS", "penstock:{0}:ranks") == []
            assert await stores.queue.depths() == {"echo": (0, 0)}

    asyncio.run(scenario())


def test_a_task_whose_handler_cannot_be_read_is_reported_and_not_passed_over() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await _hand_out(stores, "old")
            await stores.call("XADD", "penstock:{0}:tasks:0:echo", "*", "1", b"\xc1 is no task")
            assert await stores.queue.fetch("worker-1", {"echo"}, 10, {"old"}) == [dispatched]
            assert [event.error.category for event in await stores.inbox()] == ["schema"]
            assert await stores.queue.backlog(0) == []

    asyncio.run(scenario())


def test_a_task_that_is_gone_is_not_taken_back() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await _hand_out(stores, "new")
            event = codec.encode(TaskReturned(*key_of(dispatched), "nowhere"))
            assert (
                await stores.server.run_script(
                    0, "recall", stores.lease.token, "0:echo", "1-1", event
                )
                == 0
            )
            assert await stores.inbox() == []

    asyncio.run(scenario())


def test_a_large_backlog_is_looked_at_in_portions() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await _hand_out(stores, *["new"] * 1000)
            seen: list[str] = []

            def look(waiting: Any) -> None:
                seen.append(waiting.task.node_id)

            for _ in range(4):
                await stores.queue.recall(0, stores.lease.token, Backlog("echo", None, 1000), look)
            assert seen[:1000] == [f"n{number}" for number in range(1000)]
            assert seen[1000:] == seen[:400], "then from the beginning"

    asyncio.run(scenario())
