"""Dead workers lose their tasks; live ones and outages don't."""

import asyncio

import pytest

from penstock.engine.events import TaskLost
from penstock.errors import Fenced
from penstock.orchestrator import reaper as reaping
from penstock.orchestrator.reaper import DEAD_SECONDS, Reaper
from penstock.stores.task_queue import key_of
from tests.contract.facts import Owner, hand_out, stop
from tests.orchestrator.desk import Desk
from tests.waiting import until

ECHO = {"echo"}
LOOK = 2.5
ENOUGH = int(DEAD_SECONDS / LOOK)


def test_a_worker_is_dead_after_enough_silence_and_loses_its_tasks_once() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, tasks = await hand_out(stores, "a", "b")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease)
        await reaper.look(LOOK)
        for _ in range(ENOUGH - 1):
            await reaper.look(LOOK)
        assert await owner.inbox() == []
        await reaper.look(LOOK)
        assert await owner.inbox() == [TaskLost(*key_of(each), "worker-1") for each in tasks]
        assert reaper.reaped == 2
        for _ in range(2 * ENOUGH):
            await reaper.look(LOOK)
        assert reaper.reaped == len(await owner.inbox()) == 2

    asyncio.run(scenario())


def test_a_heartbeat_starts_the_count_again() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, (given,) = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease)
        for _ in range(5):
            for _ in range(ENOUGH):
                await reaper.look(LOOK)
            assert await stores.queue.heartbeat("worker-1", ECHO, [stop(given)]) == []
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
        reaper = Reaper(stores.queue, owner.lease)
        for _ in range(ENOUGH + 1):
            for worker in live:
                await stores.queue.heartbeat(worker, ECHO, [])
            await reaper.look(LOOK)
        assert await owner.inbox() == [TaskLost(*key_of(tasks[-1]), "dead")]

    asyncio.run(scenario())


def test_a_new_owner_starts_counting_from_nothing() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        for _ in range(3):
            reaper = Reaper(stores.queue, owner.lease)
            for _ in range(ENOUGH):
                await reaper.look(LOOK)
        assert await owner.inbox() == []

    asyncio.run(scenario())


def test_time_in_which_the_reaper_could_not_look_counts_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process was paused for an hour: the workers' silence in that hour says nothing."""
    looked: list[float] = []
    clock = 0.0

    async def scenario() -> None:
        nonlocal clock
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease)
        look = reaper.look

        async def note(seconds: float) -> None:
            looked.append(seconds)
            await look(seconds)

        reaper.look = note  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + clock)
        monkeypatch.setattr(reaping, "LOOK_SECONDS", 0.01)
        running = asyncio.create_task(reaper.run())
        await until(lambda: looked)
        clock += 3600.0
        seen = len(looked)
        await until(lambda: len(looked) > seen + 1)
        running.cancel()
        assert await owner.inbox() == []
        assert max(looked) <= 0.02

    asyncio.run(scenario())


def test_a_reaper_whose_lease_has_moved_on_takes_nothing_and_stops() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease)
        for _ in range(ENOUGH):
            await reaper.look(LOOK)
        current = await Owner.of(stores)
        with pytest.raises(Fenced):
            await reaper.look(LOOK)
        assert await current.inbox() == []

    asyncio.run(scenario())


def test_a_worker_that_left_is_forgotten() -> None:
    async def scenario() -> None:
        stores = Desk().stores
        owner, (given,) = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(stores.queue, owner.lease)
        await reaper.look(LOOK)
        await stores.queue.leave("worker-1", [given])
        await reaper.look(LOOK)
        assert reaper._beats == reaper._silent_seconds == {}

    asyncio.run(scenario())
