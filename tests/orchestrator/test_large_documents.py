"""A document that takes long to compile doesn't hold up other executions of its partition."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from penstock.definition.plan import compile_document
from penstock.engine.events import CancelRequested, ExecutionStarted
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.recovery import recover
from penstock.stores import plan_cache
from tests.orchestrator.desk import Desk, TieredDesk, node
from tests.waiting import until

LARGE = [node("a", description="x" * plan_cache.SLOW_BYTES)]
SMALL = [node("a")]


@contextmanager
def compiling_stopped(error: Exception | None = None) -> Iterator[threading.Event]:
    """Large documents are compiled when the event is set, or fail then."""
    goes_on = threading.Event()

    def compile_later(document: dict[str, Any], **options: Any) -> Any:
        if document["name"] == "large":
            assert goes_on.wait(30)
            if error is not None:
                raise error
        return compile_document(document, **options)

    with patch.object(plan_cache, "compile_document", compile_later):
        try:
            yield goes_on
        finally:
            goes_on.set()


async def begun(desk: Desk) -> tuple[str, PartitionOwner]:
    """One whose plan is being compiled."""
    large = await desk.start(LARGE, name="large")
    owner = await desk.own()
    await desk.drain(owner)
    assert await desk.fetch() == []
    return large, owner


async def go_on(desk: Desk, owner: PartitionOwner, goes_on: threading.Event) -> None:
    goes_on.set()
    await until(lambda: not owner._beginning, "the document is compiled")
    await desk.drain(owner)


def run(
    scenario: Callable[[Desk, threading.Event], Awaitable[None]], error: Exception | None = None
) -> None:
    async def both() -> None:
        for desk in (Desk(), TieredDesk()):
            with compiling_stopped(error) as goes_on:
                await scenario(desk, goes_on)

    asyncio.run(both())


def test_others_go_on_meanwhile_and_it_runs_when_its_plan_is_there() -> None:
    async def scenario(desk: Desk, goes_on: threading.Event) -> None:
        large, owner = await begun(desk)
        small = await desk.start(SMALL, name="small")
        assert [task.execution_id for task in await desk.work(owner)] == [small]
        await go_on(desk, owner, goes_on)
        assert [task.execution_id for task in await desk.work(owner)] == [large]

    run(scenario)


def test_a_second_execution_of_it_waits_for_the_same_plan() -> None:
    async def scenario(desk: Desk, goes_on: threading.Event) -> None:
        large, owner = await begun(desk)
        second = await desk.record_intent(await desk.workflow(LARGE, name="large"))
        await desk.stores.hot.append([ExecutionStarted(second)])
        await desk.drain(owner)
        assert len(owner._waits) == 2
        await go_on(desk, owner, goes_on)
        assert {task.execution_id for task in await desk.work(owner)} == {large, second}

    run(scenario)


def test_a_cancel_meanwhile_is_not_lost() -> None:
    async def scenario(desk: Desk, goes_on: threading.Event) -> None:
        large, owner = await begun(desk)
        await desk.stores.hot.append([CancelRequested(large)])
        await desk.drain(owner)
        await go_on(desk, owner, goes_on)
        ended = [commands for changes in desk.changes for commands in changes if commands.finished]
        assert [(end.execution_id, end.record and end.record.state) for end in ended] == [
            (large, "CANCELLED")
        ]

    run(scenario)


def test_an_owner_that_dies_meanwhile_is_followed_by_one_that_starts_it() -> None:
    async def scenario(desk: Desk, goes_on: threading.Event) -> None:
        large, owner = await begun(desk)
        for task in owner._waits:
            task.cancel()
        await desk.stores.hot.release(owner.lease)
        following = await desk.own("owner-2")
        await recover(desk.stores, desk.plans, 0, following.lease.position)
        await desk.drain(following)
        await go_on(desk, following, goes_on)
        assert [task.execution_id for task in await desk.work(following)] == [large]

    run(scenario)


def test_a_plan_that_can_not_be_compiled_fails_the_execution_once() -> None:
    async def scenario(desk: Desk, goes_on: threading.Event) -> None:
        _, owner = await begun(desk)
        await go_on(desk, owner, goes_on)
        assert owner._beginning == {}
        assert [
            commands.finished for changes in desk.changes for commands in changes if commands.record
        ] == [True]

    run(scenario, error=RuntimeError("this version can't compile it"))
