"""A task that a call put on a worker's list after it had failed: nobody else will run it."""

import asyncio

from penstock.engine.events import TaskSucceeded
from tests.contract.workplace import Workplace


def test_a_task_that_a_worker_was_given_unnoticed_is_run_after_two_looks() -> None:
    ran: list[str] = []

    async def note() -> None:
        ran.append("once")

    async def scenario() -> None:
        async with Workplace(note) as place:
            given = await place.give("note", queue="another")
            assert await place.stores.queue.fetch("worker-1", {"another"}, 1) == [given]
            strays = await place.worker._take_up(set())
            assert ran == []  # it might be on its way to us
            assert await place.worker._take_up(strays) == set()
            assert isinstance(await place.outcome(given), TaskSucceeded)
            assert await place.worker._take_up(strays) == set()
            assert ran == ["once"]

    asyncio.run(scenario())
