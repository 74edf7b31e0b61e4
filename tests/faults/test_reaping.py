"""Many workers have many long tasks, and one of them is dead (G5).

On a real Redis, with the real reaper.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from penstock.contract.facts import queued, started, stop, task
from penstock.engine.commands import Task
from penstock.engine.events import TaskLost
from penstock.orchestrator.reaper import Reaper
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.stores.task_keys import key_of
from tests.faults.table import Fault
from tests.orchestrator.desk import look
from tests.redis.stores_under_test import NAME, StoresUnderTest, open_stores

ECHO = {"echo"}
WORKERS = 100
PORTION = 500
TIMING = OrchestratorTiming()
"""Tasks in one commit, as an owner would."""


async def _hand_out(stores: StoresUnderTest, count: int) -> list[Task]:
    tasks = [task(NAME, f"n{number}") for number in range(count)]
    await stores.commit(started(NAME))
    for first in range(0, count, PORTION):
        await stores.commit(queued(*tasks[first : first + PORTION]))
    return tasks


async def _beat(stores: StoresUnderTest, claimed: dict[str, list[Task]]) -> int:
    """All that live say so. Answers how many tasks they are told that they have lost."""
    answers = [
        await stores.queue.heartbeat(worker, ECHO, [stop(claimed_task) for claimed_task in tasks])
        for worker, tasks in claimed.items()
    ]
    return sum(map(len, answers))


@pytest.mark.fault("reaping", "10,000 live long tasks and one dead, on Redis")
def test_of_ten_thousand_tasks_in_live_hands_and_one_in_dead_ones_only_that_one_is_taken(
    fault: Fault,
) -> None:
    live = fault.size(short=2_000, full=10_000)

    async def scenario() -> None:
        async with open_stores() as stores:
            await stores.own()
            tasks = await _hand_out(stores, live + 1)
            claimed = {
                f"live-{n}": await stores.queue.fetch(f"live-{n}", ECHO, live // WORKERS)
                for n in range(WORKERS)
            }
            assert await stores.queue.fetch("dead", ECHO, 10) == tasks[-1:]
            assert sum(map(len, claimed.values())) == live
            reaper = Reaper(stores.queue, stores.lease, timing=TIMING)
            for _ in range(int(TIMING.worker_dead_seconds / TIMING.reaper_seconds)):
                await _beat(stores, claimed)
                await look(reaper, TIMING.reaper_seconds)
            assert await stores.inbox() == [], "it has been silent for less than it may be"
            assert await _beat(stores, claimed) == 0
            begun = time.perf_counter()
            await look(reaper, TIMING.reaper_seconds)
            milliseconds = 1000 * (time.perf_counter() - begun)
            assert await stores.inbox() == [TaskLost(*key_of(tasks[-1]), "dead")]
            assert await _beat(stores, claimed) == 0, "one that lives has lost a task"
            fault.shows(
                live=live,
                dead_found=reaper.reaped,
                sweeps=1,
                live_taken=0,
                sweep_milliseconds=milliseconds,
            )

    asyncio.run(scenario())
