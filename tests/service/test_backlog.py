"""A store is not filled without end.

Beyond a limit, starts are refused until some executions have ended.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import penstock
from penstock.config import Settings
from penstock.contract.facts import Owner, over, queued, running, submitted, task
from penstock.errors import Overloaded
from penstock.service.backlog import CLOSE_LOOK_SECONDS, LOOK_SECONDS, Backlog
from penstock.stores.memory import MemoryStores
from penstock.worker.registry import Handler, Registry
from tests.waiting import let_others_run


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def _refused(backlog: Backlog, workflow: str, count: int = 1) -> bool:
    try:
        await backlog.enter(workflow, count)
    except Overloaded as error:
        return error.retry_after > 0
    return False


def test_more_executions_of_a_workflow_than_its_limit_are_refused_until_some_have_ended() -> None:
    async def scenario() -> None:
        stores, clock = MemoryStores(time.time), Clock()
        backlog = Backlog(stores, waiting_tasks_max=0, workflow_unfinished_max=3, clock=clock)
        intents = [submitted(name, workflow="one") for name in ("a", "b")]
        await stores.cold.executions.record_intents(intents)
        assert not await _refused(backlog, "one")
        assert await _refused(backlog, "one")
        assert not await _refused(backlog, "two")
        owner = await Owner.of(stores)
        await owner.commit(*(running(intent) for intent in intents))
        await owner.commit(*(over(intent) for intent in intents))
        clock.seconds += CLOSE_LOOK_SECONDS
        await _refused(backlog, "one")  # it starts the look
        await let_others_run()
        assert not await _refused(backlog, "one", 3)

    asyncio.run(scenario())


def test_more_tasks_than_the_store_should_hold_are_refused() -> None:
    async def scenario() -> None:
        stores, clock = MemoryStores(time.time), Clock()
        backlog = Backlog(stores, waiting_tasks_max=10, workflow_unfinished_max=0, clock=clock)
        assert not await _refused(backlog, "one", 4)
        [new] = intents = [submitted("a", workflow="one")]
        await stores.cold.executions.record_intents(intents)
        owner = await Owner.of(stores)
        await owner.commit(running(new))
        await owner.commit(queued(*[task("a", f"n{number}") for number in range(10)]))
        clock.seconds += LOOK_SECONDS
        await _refused(backlog, "one", 0)
        await let_others_run()
        assert await _refused(backlog, "one")

    asyncio.run(scenario())


def test_an_engine_refuses_what_is_over_its_limit() -> None:
    async def scenario() -> None:
        release = asyncio.Event()

        async def wait(_config: dict[str, Any]) -> None:
            await release.wait()

        registry = Registry([Handler("linger", wait)])
        settings = Settings(workflow_unfinished_max=2)
        flow = {"name": "slow", "nodes": [{"id": "a", "handler": "linger"}]}
        async with penstock.Engine("memory://", settings=settings, registry=registry) as engine:
            for _ in range(2):
                await engine.start(flow)
            with pytest.raises(Overloaded, match="PENSTOCK_WORKFLOW_UNFINISHED_MAX"):
                await engine.start(flow)
            release.set()

    asyncio.run(scenario())
