"""What is shown of workers elsewhere: what they say of themselves, and the tasks on their lists."""

import asyncio

from penstock.contract.facts import queued, started, stop, success, task
from penstock.stores.fleet import ClaimedTask
from penstock.stores.redis.fleet import TASKS_BYTES_MAX, RedisFleet
from penstock.stores.redis.queue import RedisTaskQueue
from tests.redis.stores_under_test import NAME, StoresUnderTest, open_stores
from tests.waiting import until

ECHO = {"echo"}
STREAM = "penstock:{0}:tasks:0:echo"


async def _shown(stores: StoresUnderTest, limit: int = 100) -> dict[str, list[str]]:
    """The nodes of the tasks that each worker holds."""
    workers = await stores.fleet.workers(limit)
    return {worker.offer.worker_id: [task.node_id for task in worker.tasks] for worker in workers}


def test_every_worker_is_shown_with_the_tasks_on_its_list() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            a, b, c = await stores.hand_out("a", "b", "c")
            urgent = task(NAME, "urgent", priority=5)
            await stores.commit(queued(urgent))
            for worker, count in (("worker-1", 2), ("worker-2", 1), ("worker-3", 0)):
                if count:
                    await stores.queue.fetch(worker, ECHO, count)
                await stores.queue.heartbeat(worker, ECHO, [])
            nodes_by_worker = await _shown(stores)
            assert {name: sorted(nodes) for name, nodes in nodes_by_worker.items()} == {
                "worker-1": ["a", "urgent"],
                "worker-2": ["b"],
                "worker-3": [],
            }
            await stores.queue.report("worker-1", [success(a, "worker-1")])
            assert (await _shown(stores))["worker-1"] == ["urgent"]
            assert await stores.queue.heartbeat("worker-2", ECHO, [stop(b)]) == []
            assert await stores.queue.fetch("worker-4", ECHO, 5) == [c]

    asyncio.run(scenario())


def test_looking_does_not_make_the_tasks_of_others_ours() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            await stores.queue.fetch("worker-1", ECHO, 1)
            other = RedisTaskQueue(stores.server, 1)
            await stores.queue.heartbeat("worker-1", ECHO, [])
            (worker,) = await RedisFleet(stores.server, 1).workers(100)
            (claimed,) = worker.tasks
            assert claimed == ClaimedTask.of(dispatched, claimed.seconds)
            assert claimed.seconds is not None
            assert 0 <= claimed.seconds < 20
            await other.report("worker-1", [success(dispatched, "worker-1")])
            assert await stores.inbox() == []

    asyncio.run(scenario())


def test_a_task_whose_entry_is_gone_is_left_out() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.hand_out("a", "b")
            await stores.queue.fetch("worker-1", ECHO, 2)
            await stores.queue.heartbeat("worker-1", ECHO, [])
            await stores.call("XTRIM", STREAM, "MAXLEN", "1")
            assert await _shown(stores) == {"worker-1": ["b"]}

    asyncio.run(scenario())


def test_the_time_of_a_task_counts_from_its_fetch_and_goes_on_through_heartbeats() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            (dispatched,) = await stores.hand_out("a")
            await stores.queue.fetch("worker-1", ECHO, 1)

            async def seconds() -> float:
                await stores.queue.heartbeat("worker-1", ECHO, [stop(dispatched)])
                (worker,) = await stores.fleet.workers(100)
                return worker.tasks[0].seconds or 0.0

            async def passed() -> bool:
                return await seconds() >= 0.05

            await until(passed, "the time to go on")

    asyncio.run(scenario())


def test_a_worker_is_shown_with_the_time_of_its_first_heartbeat() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            before = stores.server.now()
            await stores.queue.heartbeat("worker-1", ECHO, [])
            after = stores.server.now()
            for _ in range(2):
                await stores.queue.heartbeat("worker-1", ECHO, [])
            (worker,) = await stores.fleet.workers(100)
            assert worker.heartbeats == 3
            # the clock of Redis is estimated here: on a busy machine it is milliseconds off
            assert before - 1 <= worker.offer.started_at <= after + 1
            old = b'{"queues":["echo"],"running":1,"at":1000.0}'  # as the version before said it
            await stores.call("HSET", "penstock:{fleet}:workers", "worker-1", old)
            (worker,) = await stores.fleet.workers(100)
            assert (worker.offer.started_at, worker.running) == (0.0, 1)

    asyncio.run(scenario())


def test_of_many_tasks_those_that_a_worker_has_had_for_longest_are_shown() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.hand_out(*(f"n{number}" for number in range(9)))
            await stores.queue.fetch("worker-1", ECHO, 6)
            await stores.queue.fetch("worker-2", ECHO, 3)
            for worker in ("worker-1", "worker-2"):
                await stores.queue.heartbeat(worker, ECHO, [])
            assert await _shown(stores, 4) == {
                "worker-1": ["n0", "n1", "n2", "n3"],
                "worker-2": ["n6", "n7", "n8"],
            }

    asyncio.run(scenario())


def test_tasks_that_are_too_large_or_of_another_version_are_left_out() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.commit(started(NAME))
            large = [
                task(NAME, f"large{number}", config=b"x" * (TASKS_BYTES_MAX // 3))
                for number in range(4)
            ]
            await stores.commit(queued(*large, task(NAME, "small")))
            await stores.call("XADD", STREAM, "*", "1", b"\x92\x01\x02")
            await stores.queue.heartbeat("worker-1", ECHO, [])
            await stores.call(
                "XREADGROUP", "GROUP", "workers", "worker-1", "COUNT", 10, "STREAMS", STREAM, ">"
            )
            assert (await _shown(stores))["worker-1"] == ["large0", "large1", "small"]

    asyncio.run(scenario())
