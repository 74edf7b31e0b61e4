"""Dead workers lose their tasks; live ones and outages don't."""

import asyncio
from typing import Any

import pytest

from penstock.contract.facts import Owner, hand_out, stop
from penstock.engine.events import TaskLost
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.reaper import Reaper, WorkerWatch
from penstock.stores.task_keys import key_of
from tests.orchestrator.desk import QUICK, Desk, look, quick
from tests.waiting import let_others_run, until

ECHO = {"echo"}
LOOK = 2.5
ENOUGH = int(QUICK.worker_dead_seconds / LOOK)


def test_a_worker_is_dead_after_enough_silence_and_loses_its_tasks_once() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, tasks = await hand_out(stores, "a", "b")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
        await look(reaper, LOOK)
        for _ in range(ENOUGH - 1):
            await look(reaper, LOOK)
        assert await owner.inbox() == []
        await look(reaper, LOOK)
        assert await owner.inbox() == [TaskLost(*key_of(lost), "worker-1") for lost in tasks]
        assert reaper.reaped == 2
        for _ in range(2 * ENOUGH):
            await look(reaper, LOOK)
        assert reaper.reaped == len(await owner.inbox()) == 2

    asyncio.run(scenario())


def test_a_heartbeat_starts_the_count_again() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, (task,) = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
        for _ in range(5):
            for _ in range(ENOUGH):
                await look(reaper, LOOK)
            assert await stores.queue.heartbeat("worker-1", ECHO, [stop(task)]) == []
        assert await owner.inbox() == []

    asyncio.run(scenario())


def test_of_ten_thousand_live_tasks_and_one_dead_only_the_dead_one_is_taken() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, tasks = await hand_out(stores, *(f"n{number}" for number in range(10_001)))
        live = [f"worker-{number}" for number in range(100)]
        for worker in live:
            await stores.queue.fetch(worker, ECHO, 100)
        assert await stores.queue.fetch("dead", ECHO, 10) == tasks[-1:]
        reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
        for _ in range(ENOUGH + 1):
            for worker in live:
                await stores.queue.heartbeat(worker, ECHO, [])
            await look(reaper, LOOK)
        assert await owner.inbox() == [TaskLost(*key_of(tasks[-1]), "dead")]

    asyncio.run(scenario())


def test_a_new_owner_starts_counting_from_nothing() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        for _ in range(3):
            reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
            for _ in range(ENOUGH):
                await look(reaper, LOOK)
        assert await owner.inbox() == []

    asyncio.run(scenario())


def test_time_in_which_the_watch_could_not_look_counts_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process was paused for an hour: the workers' silence in that hour says nothing."""
    looked: list[float] = []
    clock = 0.0

    async def scenario() -> None:
        nonlocal clock
        stores = Desk().stores
        await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        watch = WorkerWatch(stores.queue, quick(reaper_seconds=0.01))
        once = watch.look

        async def note(seconds: float) -> None:
            looked.append(seconds)
            await once(seconds)

        watch.look = note  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + clock)
        running = asyncio.create_task(watch.run())
        await until(lambda: looked)
        clock += 3600.0
        seen = len(looked)
        await until(lambda: len(looked) > seen + 1)
        running.cancel()
        assert max(looked) <= 0.02
        assert watch.silent_seconds["worker-1"] < 1.0

    asyncio.run(scenario())


def test_an_outage_of_the_store_declares_nobody_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stores = Desk().stores
        await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        watch = WorkerWatch(stores.queue, quick(reaper_seconds=0.0))
        await watch.look(LOOK)
        await watch.look(LOOK)
        assert watch.silent_seconds["worker-1"] == LOOK
        workers = stores.queue.workers
        failed = 0

        async def away() -> Any:
            nonlocal failed
            failed += 1
            raise (StoreUnavailable("away") if failed % 2 else RuntimeError("broken"))

        monkeypatch.setattr(stores.queue, "workers", away)
        running = asyncio.create_task(watch.run())
        await until(lambda: failed > 2)
        assert watch.silent_seconds == {}
        monkeypatch.setattr(stores.queue, "workers", workers)
        await until(lambda: watch.silent_seconds)
        running.cancel()
        assert watch.silent_seconds["worker-1"] < LOOK

    asyncio.run(scenario())


def test_an_owner_that_takes_a_partition_over_knows_for_how_long_its_workers_have_been_silent() -> (
    None
):
    """Otherwise each takeover would make the tasks of a dead worker wait for another 15 s."""

    async def scenario() -> None:
        stores = Desk().stores
        _, (task,) = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        watch = WorkerWatch(stores.queue, QUICK)
        for _ in range(ENOUGH):
            await watch.look(LOOK)
        owner = await Owner.of(stores)
        reaper = Reaper(stores.queue, owner.lease, None, watch, timing=QUICK)
        reaping = asyncio.create_task(reaper.run())
        await let_others_run()
        await watch.look(LOOK)
        await until(owner.inbox)
        reaping.cancel()
        assert await owner.inbox() == [TaskLost(*key_of(task), "worker-1")]

    asyncio.run(scenario())


def test_a_reaper_whose_lease_has_moved_on_takes_nothing_and_stops() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
        for _ in range(ENOUGH):
            await look(reaper, LOOK)
        current = await Owner.of(stores)
        with pytest.raises(Fenced):
            await look(reaper, LOOK)
        assert await current.inbox() == []

    asyncio.run(scenario())


def test_a_worker_that_left_is_forgotten() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, (task,) = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
        await look(reaper, LOOK)
        await stores.queue.leave("worker-1", [task])
        await look(reaper, LOOK)
        assert reaper._watch.silent_seconds == {}

    asyncio.run(scenario())


def test_a_worker_that_comes_back_and_dies_again_loses_its_tasks_again_as_soon() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a", "b")
        reaper = Reaper(stores.queue, owner.lease, timing=QUICK)
        for lost in (1, 2):
            await stores.queue.heartbeat("worker-1", ECHO, [])
            await stores.queue.fetch("worker-1", ECHO, 1)
            for _ in range(ENOUGH + 1):
                await look(reaper, LOOK)
            assert reaper.reaped == lost
            await look(reaper, LOOK)  # it isn't known any more

    asyncio.run(scenario())
