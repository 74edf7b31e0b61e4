"""Slots, stops, heartbeats and outages: what a worker does with its tasks."""

import asyncio
import threading
import time
from typing import Any

import pytest

from penstock.contract.facts import stop
from penstock.engine.commands import Commands, Stop
from penstock.engine.events import TaskFailed, TaskLost, TaskStarted, TaskSucceeded
from penstock.errors import StoreUnavailable
from penstock.stores.memory import MemoryStores
from penstock.stores.task_keys import Key
from penstock.worker.context import Context
from penstock.worker.registry import Handler
from penstock.worker.timing import WorkerTiming
from tests.contract.worker_harness import EXECUTION, WorkerHarness, error_of, idle, output_of
from tests.waiting import PATIENCE_SECONDS, STEP, let_others_run, until

HOUR = 3600.0
FAST_SECONDS = 0.01
FAST_HEARTBEATS = WorkerTiming(heartbeat_seconds=FAST_SECONDS)


async def hangs() -> None:
    await asyncio.Event().wait()


class Queue:
    """The store's queue, with faults: each named call fails so often before it does anything."""

    def __init__(self, stores: MemoryStores, **failures: int) -> None:
        self._stores = stores
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._stores.queue, name)
        if name == "begin":
            return real

        async def call(*arguments: Any) -> Any:
            if self.failures.get(name, 0) > 0:
                self.failures[name] -= 1
                raise StoreUnavailable("away")
            return await real(*arguments)

        return call


def test_no_more_handlers_run_at_once_than_there_are_slots() -> None:
    running = peak = 0

    async def counts() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await let_others_run(5)
        running -= 1

    async def scenario() -> None:
        async with WorkerHarness(counts, worker_concurrency=3) as harness:
            tasks = await harness.give_all(["counts"] * 20)
            for task in tasks:
                output_of(await harness.outcome(task))

    asyncio.run(scenario())
    assert peak == 3


def test_a_busy_worker_leaves_the_rest_of_the_tasks_to_others() -> None:
    async def scenario() -> None:
        async with WorkerHarness(hangs, worker_concurrency=2) as harness:
            tasks = await harness.give_all(["hangs"] * 5)
            await until(lambda: harness.worker.attempts == 2)
            assert await harness.stores.queue.fetch("worker-2", {"echo"}, 10) == tasks[2:]
            await harness.stop(0)

    asyncio.run(scenario())


def test_a_slow_handler_does_not_hold_up_the_others_of_its_fetch() -> None:
    async def scenario() -> None:
        async with WorkerHarness(hangs, idle, worker_concurrency=8) as harness:
            tasks = await harness.give_all(["hangs", "idle", "hangs", "idle", "idle"])
            for task in tasks:
                if task.handler == "idle":
                    output_of(await harness.outcome(task))
            await harness.stop(0)

    asyncio.run(scenario())


def test_only_a_long_task_says_that_it_has_started() -> None:
    async def scenario() -> None:
        async with WorkerHarness(hangs, idle) as harness:
            long, short = await harness.give_all(["hangs", "idle"])
            begun = await harness.started(long)
            assert begun.worker_id == "worker-1"
            assert time.time() - PATIENCE_SECONDS < begun.started_at <= time.time()
            assert [type(event) for event in await harness.events(short)] == [TaskSucceeded]
            await harness.stop(0)

    asyncio.run(scenario())


def test_a_stopped_async_handler_is_cancelled_its_slot_is_free_and_nothing_is_reported() -> None:
    seen = []

    async def notices() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def scenario() -> None:
        async with WorkerHarness(notices, idle, worker_concurrency=1) as harness:
            task = await harness.give("notices")
            await until(lambda: harness.worker.attempts == 1)
            harness.worker.stop_tasks([stop(task)])
            output_of(await harness.run("idle"))
            assert seen == ["cancelled"]
            assert [
                event for event in await harness.events(task) if not isinstance(event, TaskStarted)
            ] == []

    asyncio.run(scenario())


def test_a_stopped_sync_handler_sees_that_nobody_waits_for_it() -> None:
    began = threading.Event()
    saw = threading.Event()

    def looks(_config: Any, ctx: Context) -> None:
        began.set()
        pause = threading.Event()
        while not ctx.cancelled:
            pause.wait(STEP)
        saw.set()

    async def scenario() -> None:
        async with WorkerHarness(looks, idle, worker_concurrency=1) as harness:
            task = await harness.give("looks")
            await until(began.is_set)
            harness.worker.stop_tasks([stop(task)])
            output_of(await harness.run("idle"))
            await until(saw.is_set)

    asyncio.run(scenario())


def test_a_task_that_was_stopped_before_it_started_is_not_run() -> None:
    ran = []

    async def scenario() -> None:
        async def first() -> None:
            ran.append("first")
            harness.worker.stop_tasks([Stop(EXECUTION, "n2", 1, 1)])

        async def second() -> None:
            ran.append("second")

        async with WorkerHarness(first, second, idle) as harness:
            await harness.give_all(["first", "second"])
            await until(lambda: ran)
            output_of(await harness.run("idle"))

    asyncio.run(scenario())
    assert ran == ["first"]


def test_a_task_that_was_cancelled_at_the_owner_is_stopped_by_the_next_heartbeat() -> None:
    async def scenario() -> None:
        async with WorkerHarness(
            hangs, idle, timing=FAST_HEARTBEATS, worker_concurrency=1
        ) as harness:
            task = await harness.give("hangs")
            await until(lambda: harness.worker.attempts == 1)
            await harness.owner.commit(Commands(EXECUTION, stops=[stop(task)]))
            output_of(await harness.run("idle"))
            assert not any(isinstance(event, TaskFailed) for event in await harness.events(task))

    asyncio.run(scenario())


def test_a_task_that_was_taken_back_is_stopped_by_the_next_heartbeat() -> None:
    async def scenario() -> None:
        async with WorkerHarness(
            hangs, idle, timing=FAST_HEARTBEATS, worker_concurrency=1
        ) as harness:
            task = await harness.give("hangs")
            await until(lambda: harness.worker.attempts == 1)
            assert await harness.stores.queue.reap(0, harness.owner.lease.token, "worker-1") == 1
            output_of(await harness.run("idle"))
            kinds = [type(event) for event in await harness.events(task)]
            assert kinds in ([TaskLost], [TaskStarted, TaskLost])

    asyncio.run(scenario())


def test_a_worker_says_that_it_lives_while_its_handlers_run() -> None:
    async def scenario() -> None:
        async with WorkerHarness(hangs, timing=FAST_HEARTBEATS) as harness:
            await harness.give("hangs")

            async def beats() -> bool:
                return (await harness.stores.queue.workers()).get("worker-1", 0) > 3

            await until(beats)
            await harness.stop(0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("call", "times"), [("fetch", 3), ("report", 3), ("heartbeat", 3), ("started", 1)]
)
def test_a_store_that_is_away_for_a_while_costs_no_outcome(call: str, times: int) -> None:
    timing = WorkerTiming(
        retry_seconds=FAST_SECONDS, heartbeat_seconds=FAST_SECONDS, long_seconds=FAST_SECONDS
    )
    stores = MemoryStores(time.time)
    queue = Queue(stores, **{call: times})

    async def scenario() -> None:
        async with WorkerHarness(pauses, stores=stores, queue=queue, timing=timing) as harness:
            tasks = await harness.give_all(["pauses"] * 3)
            assert [output_of(await harness.outcome(task)) for task in tasks] == ["paused"] * 3
            await until(lambda: queue.failures[call] == 0)

    asyncio.run(scenario())


async def pauses() -> str:
    """Long enough to be worth a word that it has started, when that takes 10 ms."""
    finished = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(5 * FAST_SECONDS, finished.set_result, "paused")
    return str(await finished)


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_jump_of_the_clock_neither_fails_a_task_nor_keeps_it_from_timing_out(jump: float) -> None:
    offset = 0.0

    async def jumps() -> str:
        nonlocal offset
        offset += jump
        return await pauses()

    async def jumps_and_waits() -> str:
        nonlocal offset
        offset += jump
        finished = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(
            3 * WorkerTiming().long_seconds, finished.set_result, "in time"
        )
        return str(await finished)

    async def jumps_and_hangs() -> None:
        nonlocal offset
        offset += jump
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with WorkerHarness(
            jumps, jumps_and_waits, jumps_and_hangs, clock=lambda: time.time() + offset
        ) as harness:
            assert output_of(await harness.run("jumps", timeout_seconds=60.0)) == "paused"
            assert (
                output_of(await harness.run("jumps_and_waits", timeout_seconds=60.0)) == "in time"
            )
            event = await harness.outcome(
                await harness.give("jumps_and_hangs", timeout_seconds=0.3), seconds=5
            )
            assert error_of(event).category == "timeout"

    asyncio.run(scenario())


class StopsAtFetch:
    """The worker is told to stop in the very moment in which it gets tasks."""

    def __init__(self, stores: MemoryStores) -> None:
        self._queue = stores.queue
        self.worker: Any = None
        self.stopping: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def fetch(self, *arguments: Any) -> Any:
        tasks = await self._queue.fetch(*arguments)
        self.stopping = asyncio.create_task(self.worker.stop())
        return tasks


def test_a_worker_that_stops_hands_back_what_it_has_not_started() -> None:
    ran = []

    async def notes() -> None:
        ran.append(1)

    async def scenario() -> None:
        stores = MemoryStores(time.time)
        queue = StopsAtFetch(stores)
        harness = WorkerHarness(notes, stores=stores, queue=queue)
        queue.worker = harness.worker
        async with harness:
            harness._stopped = True
            tasks = await harness.give_all(["notes"] * 3)
            await until(lambda: queue.stopping is not None)
            assert queue.stopping is not None
            await queue.stopping
            assert await stores.queue.fetch("worker-2", {"echo"}, 10) == tasks
            assert await harness.owner.inbox() == []
            assert "worker-1" not in await stores.queue.workers()

    asyncio.run(scenario())
    assert ran == []


def test_a_worker_that_stops_lets_its_handlers_finish_and_reports_them() -> None:
    async def scenario() -> None:
        release = asyncio.Event()

        async def finishes() -> str:
            await release.wait()
            return "finished"

        async with WorkerHarness(finishes, idle, worker_concurrency=1) as harness:
            task = await harness.give("finishes")
            await until(lambda: harness.worker.attempts == 1)
            stopping = asyncio.create_task(harness.stop(PATIENCE_SECONDS))
            await let_others_run()
            later = await harness.give("idle")
            assert not stopping.done()
            release.set()
            await stopping
            assert output_of(await harness.outcome(task)) == "finished"
            assert await harness.stores.queue.fetch("worker-2", {"echo"}, 10) == [later]

    asyncio.run(scenario())


def test_what_runs_past_the_grace_period_is_cancelled_and_handed_back_at_once() -> None:
    async def scenario() -> None:
        async with WorkerHarness(hangs) as harness:
            task = await harness.give("hangs")
            await until(lambda: harness.worker.attempts == 1)
            async with asyncio.timeout(5):
                await harness.stop(FAST_SECONDS)
            kinds = [type(event) for event in await harness.events(task)]
            assert kinds[-1:] == [TaskLost], "another worker must not have to wait for the reaper"

    asyncio.run(scenario())


def test_an_outcome_that_the_store_did_not_take_is_reported_on_the_way_out() -> None:
    timing = WorkerTiming(retry_seconds=HOUR)
    stores = MemoryStores(time.time)
    queue = Queue(stores, report=1)

    async def scenario() -> None:
        async with WorkerHarness(idle, stores=stores, queue=queue, timing=timing) as harness:
            task = await harness.give("idle")
            await until(lambda: queue.failures["report"] == 0)
            await harness.stop()
            assert output_of(await harness.outcome(task)) == "went on"

    asyncio.run(scenario())


class Noted(Queue):
    """Keeps which nodes' handlers were about to be called."""

    def __init__(self, stores: MemoryStores) -> None:
        super().__init__(stores)
        self.nodes: list[str] = []

    def begin(self, key: Key) -> None:
        self.nodes.append(key[1])


def test_the_store_is_told_before_a_handler_is_called() -> None:
    """Whoever kills the process must be known to have been at work."""
    stores = MemoryStores(time.time)
    queue = Noted(stores)

    async def on_the_loop(_config: Any, ctx: Context) -> bool:
        return ctx.node_id in queue.nodes

    def in_a_thread(_config: Any, ctx: Context) -> bool:
        return ctx.node_id in queue.nodes

    async def scenario() -> None:
        in_a_process = Handler("in_a_process", idle_in_a_process, runs_in="process")
        async with WorkerHarness(
            on_the_loop, in_a_thread, in_a_process, stores=stores, queue=queue
        ) as harness:
            assert output_of(await harness.run("on_the_loop"))
            assert output_of(await harness.run("in_a_thread"))
            task = await harness.give("in_a_process")
            await harness.outcome(task)
            assert task.node_id in queue.nodes

    asyncio.run(scenario())


def idle_in_a_process() -> None:
    """Not registered, so its process refuses it: here only counts that it was to be called."""


def test_a_task_that_waits_for_a_thread_is_not_said_to_have_begun() -> None:
    """It can't be what kills the process, so a crash must not cost it an attempt."""
    release = threading.Event()
    stores = MemoryStores(time.time)
    queue = Noted(stores)

    def blocks() -> None:
        release.wait(PATIENCE_SECONDS)

    async def scenario() -> None:
        async with WorkerHarness(blocks, stores=stores, queue=queue, worker_threads=1) as harness:
            tasks = await harness.give_all(["blocks"] * 3)
            await until(lambda: harness.worker.attempts == 3)
            await until(lambda: queue.nodes)
            assert queue.nodes == [tasks[0].node_id]
            release.set()
            for task in tasks:
                output_of(await harness.outcome(task))
            assert sorted(queue.nodes) == sorted(task.node_id for task in tasks)

    try:
        asyncio.run(scenario())
    finally:
        release.set()
