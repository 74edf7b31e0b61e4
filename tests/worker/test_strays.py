"""A task that a call put on a worker's list after it had failed: nobody else will run it."""

import asyncio
import time
from typing import Any

from penstock.engine.events import TaskSucceeded
from penstock.errors import StoreUnavailable
from penstock.stores.memory import MemoryStores
from tests.contract.worker_harness import WorkerHarness


def test_a_task_that_a_worker_was_given_unnoticed_is_run_after_two_looks() -> None:
    ran: list[str] = []

    async def note() -> None:
        ran.append("once")

    async def scenario() -> None:
        async with WorkerHarness(note) as harness:
            dispatched = await harness.give("note", queue="another")
            assert await harness.stores.queue.fetch("worker-1", {"another"}, 1) == [dispatched]
            strays = await harness.worker._take_up(set())
            assert ran == []  # it might be on its way to us
            assert await harness.worker._take_up(strays) == set()
            assert isinstance(await harness.outcome(dispatched), TaskSucceeded)
            assert await harness.worker._take_up(strays) == set()
            assert ran == ["once"]

    asyncio.run(scenario())


class Lossy:
    """A queue whose first fetch that takes something doesn't say so."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def fetch(self, *arguments: Any) -> Any:
        tasks = await self._queue.fetch(*arguments)
        if not self.lost:
            self.lost = len(tasks)
            raise StoreUnavailable("the answer is lost")
        return tasks


def test_a_task_of_a_fetch_whose_answer_was_lost_is_run_at_once() -> None:
    async def note() -> None:
        pass

    async def scenario() -> None:
        stores = MemoryStores(time.time)
        queue = Lossy(stores.queue)
        async with WorkerHarness(note, stores=stores, queue=queue) as harness:
            assert isinstance(await harness.run("note"), TaskSucceeded)
            assert queue.lost == 1

    asyncio.run(scenario())
