"""Where a task is, whoever moved it: a stop must find it."""

import asyncio
from typing import Any

from penstock.contract.facts import queued, started, stop, success, task
from penstock.engine.commands import Commands
from penstock.engine.events import TaskFailed, TaskLost
from penstock.stores import codec
from penstock.stores.redis.entries import TaskKey
from penstock.stores.redis.queue import RedisTaskQueue
from tests.redis.stores_under_test import NAME, StoresUnderTest, open_stores
from tests.waiting import until

ECHO = {"echo"}
STREAM = "penstock:{0}:tasks:0:echo"


async def _entries(stores: StoresUnderTest) -> int:
    return int(await stores.call("XLEN", STREAM))


def test_a_new_owner_stops_a_task_that_the_last_one_handed_out() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            waiting, claimed = await stores.hand_out("a", "b")
            await stores.own("owner-1")
            assert [
                fetched_task.node_id
                for fetched_task in await stores.queue.fetch("worker-1", ECHO, 1)
            ] == ["a"]
            await stores.commit(Commands(NAME, stops=[stop(waiting), stop(claimed)]))
            assert await _entries(stores) == 0
            assert await stores.queue.heartbeat("worker-1", ECHO, [stop(waiting)]) == [
                stop(waiting)
            ]

    asyncio.run(scenario())


def test_a_task_that_was_handed_back_can_still_be_stopped() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            dispatched = await stores.hand_out("a", "b")
            for worker in ("worker-1", "worker-2"):  # twice, so that it has moved twice
                await stores.queue.leave(worker, await stores.queue.fetch(worker, ECHO, 10))
            assert await _entries(stores) == 2
            await stores.commit(Commands(NAME, stops=[stop(dispatched[0])]))
            assert await stores.queue.fetch("worker-3", ECHO, 10) == [dispatched[1]]

    asyncio.run(scenario())


def test_a_task_that_was_set_aside_and_released_can_still_be_stopped() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            await stores.commit(Commands(NAME, paused=True))
            waiting = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 10))

            async def is_aside() -> bool:
                return bool(await stores.call("EXISTS", f"penstock:{{0}}:onhold:{NAME}"))

            await until(is_aside, "the task to be set aside")
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await stores.commit(Commands(NAME, paused=False))
            assert await _entries(stores) == 1
            await stores.commit(Commands(NAME, stops=[stop(dispatched)]))
            assert await _entries(stores) == 0

    asyncio.run(scenario())


def test_a_task_with_a_long_name_and_large_numbers_is_set_aside_too() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.hand_out("first")
            await stores.commit(Commands(NAME, paused=True))
            long = [
                task(NAME, "n" * size, attempt=attempt, generation=attempt)
                for size, attempt in ((31, 1), (32, 127), (300, 128), (255, 70_000), (256, 300))
            ]
            await stores.commit(queued(*long))
            assert await stores.call("HLEN", f"penstock:{{0}}:onhold:{NAME}") == len(long)
            await stores.commit(
                Commands(NAME, stops=[stop(fetched_task) for fetched_task in long[1:]])
            )
            await stores.commit(Commands(NAME, paused=False))
            fetched = await stores.queue.fetch("worker-1", ECHO, 10)
            assert [fetched_task.node_id for fetched_task in fetched] == ["first", "n" * 31]

    asyncio.run(scenario())


def test_a_task_that_cannot_be_read_fails_its_node_and_leaves_the_worker_alone() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            newer = codec.encode([NAME, "b", 1, 1, {"this": "is another shape"}])
            await stores.call("XADD", STREAM, "*", "1", newer)
            await stores.call("XADD", STREAM, "*", "1", b"\xc1 not even that")
            assert await stores.queue.fetch("worker-1", ECHO, 10) == [dispatched]
            events = await stores.inbox()
            assert {event.node_id for event in events} == {"b", ""}
            assert all(isinstance(event, TaskFailed) and not event.retryable for event in events)
            await stores.queue.report("worker-1", [success(dispatched, "worker-1")])
            assert await _entries(stores) == 0

    asyncio.run(scenario())


def test_a_task_fetched_by_a_call_that_was_given_up_is_there_for_others() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            for turns in range(20):  # wherever in its way the fetch is when it is cancelled
                fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 1))
                for _ in range(turns):
                    await asyncio.sleep(0)
                fetching.cancel()
                (result,) = await asyncio.gather(fetching, return_exceptions=True)
                if isinstance(result, list):
                    await stores.queue.leave("worker-1", result)
            async with asyncio.timeout(5):
                assert await stores.queue.fetch("worker-2", ECHO, 1) == [dispatched]

    asyncio.run(scenario())


def test_the_beginning_of_a_task_is_its_key() -> None:
    assert TaskKey.__struct_fields__ == tuple(type(task(NAME)).__struct_fields__[:4])


def test_a_worker_hands_back_only_what_is_on_its_own_list() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            assert await stores.queue.fetch("worker-1", ECHO, 1) == [dispatched]
            ((_, stream, entry_id),) = stores.queue._claimed.values()
            assert (
                await stores.server.run_script(0, "list", "back", "worker-2", stream, entry_id) == 0
            )
            assert await stores.queue.heartbeat("worker-1", ECHO, [stop(dispatched)]) == []

    asyncio.run(scenario())


def test_a_worker_that_holds_a_task_stays_in_the_group() -> None:
    """Its list would go with it, and the task would be nobody's."""

    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            await stores.queue.fetch("worker-1", ECHO, 1)
            await stores.server.run_script(0, "list", "forget", "worker-1")
            assert await stores.queue.claimed("worker-1") == [dispatched]

    asyncio.run(scenario())


def test_a_task_that_was_released_under_a_new_owner_can_be_stopped() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            await stores.commit(started("execution-2"))
            await _set_aside(stores)
            await stores.own("owner-1")
            # it reads the streams now
            await stores.commit(Commands("execution-2", stops=[stop(task("execution-2"))]))
            await stores.commit(Commands(NAME, paused=False))
            await stores.commit(Commands(NAME, stops=[stop(dispatched)]))
            assert await _entries(stores) == 0

    asyncio.run(scenario())


def test_a_task_that_is_stopped_by_the_commit_that_releases_it_does_not_come_back() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            remaining, stopped = await stores.hand_out("a", "b")
            await _set_aside(stores)
            await stores.commit(Commands(NAME, paused=False, stops=[stop(stopped)]))
            assert await stores.queue.fetch("worker-2", ECHO, 10) == [remaining]

    asyncio.run(scenario())


async def _set_aside(stores: StoresUnderTest) -> None:
    """Pause the execution, and let a fetch meet its tasks."""
    await stores.commit(Commands(NAME, paused=True))
    fetching = asyncio.create_task(stores.queue.fetch("worker-1", ECHO, 10))

    async def is_empty() -> bool:
        return await _entries(stores) == 0

    await until(is_empty, "the tasks to be set aside")
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)


def test_what_one_partition_gave_goes_back_when_the_fetch_is_given_up_at_the_next() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            queue = RedisTaskQueue(stores.server, 2)
            stores.server.partitions = 2
            take, reached = queue._fetch_from, asyncio.Event()

            async def slow(partition: int, *arguments: Any) -> Any:
                if partition == 1:
                    reached.set()
                    await asyncio.Event().wait()
                return await take(partition, *arguments)

            queue._fetch_from = slow  # type: ignore[method-assign, assignment]
            fetching = asyncio.create_task(queue.fetch("worker-1", ECHO, 10))
            await reached.wait()
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)
            async with asyncio.timeout(5):
                assert await stores.queue.fetch("worker-2", ECHO, 10) == [dispatched]
            await queue.close()

    asyncio.run(scenario())


def test_a_server_that_has_forgotten_its_scripts_is_told_them_again() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.hand_out("a")
            assert len(await stores.queue.fetch("worker-1", ECHO, 1)) == 1
            await stores.call("SCRIPT", "FLUSH")
            await stores.commit(queued(task(NAME, "b")))
            assert [
                fetched_task.node_id
                for fetched_task in await stores.queue.fetch("worker-1", ECHO, 1)
            ] == ["b"]

    asyncio.run(scenario())


def test_an_outcome_of_a_reclaimed_task_is_dropped_before_the_worker_has_heard_of_it() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            await stores.queue.fetch("worker-1", ECHO, 1)
            assert await stores.queue.reap(0, stores.lease.token, "worker-1") == 1
            await stores.queue.report("worker-1", [success(dispatched, "worker-1")])
            assert [type(event) for event in await stores.inbox()] == [TaskLost]

    asyncio.run(scenario())
