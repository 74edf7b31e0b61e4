"""Conditions and configs that are evaluated beside the owner's loop.

Whatever happens to the owner meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from unittest.mock import patch

import pytest

from penstock.engine.events import Blob, CancelRequested, PauseRequested, ResumeRequested
from penstock.engine.handling import PREPARE_AGAIN_SECONDS
from penstock.orchestrator import preparer
from penstock.orchestrator.owner import PartitionOwner
from penstock.sandbox import InlineSandbox, Job, Overrun
from tests.orchestrator.desk import Desk, node

COSTLY = "input.text.matches('a+')"
TEXT = {"text": "aaa"}


class SlowSandbox(InlineSandbox):
    """Does nothing until it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.may_go_on = asyncio.Event()
        self.overruns = 0

    async def asked(self, times: int) -> None:
        async with asyncio.timeout(10):
            while len(self.jobs) < times:  # noqa: ASYNC110 -- a few turns of the loop
                await asyncio.sleep(0)

    async def run(self, job: Job) -> AsyncIterator[bytes]:
        self.jobs.append(job)
        await self.may_go_on.wait()
        if self.overruns:
            self.overruns -= 1
            raise Overrun("it took too long")
        async for answer in super().run(job):
            yield answer


class SlowDesk(Desk):
    def __init__(self) -> None:
        super().__init__()
        self.sandbox: SlowSandbox = SlowSandbox()

    async def let_go(self, owner: PartitionOwner) -> None:
        """What was asked is answered, and the owner has heard of it."""
        self.sandbox.may_go_on.set()
        under_way = {
            task for tasks in owner._preparer._under_way.values() for task in tasks.values()
        }
        await asyncio.gather(*under_way)
        await self.drain(owner)


def at_desk(work: Callable[[SlowDesk], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await work(SlowDesk())

    asyncio.run(run())


def test_other_executions_go_on_while_a_condition_is_evaluated():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        slow = await desk.start([node("a", condition=COSTLY), node("b", "a")], TEXT)
        other = await desk.start([node("a")], name="other")
        await desk.work(owner)
        assert await desk.state(other) == "COMPLETED"
        assert await desk.states(slow) == {}
        await desk.let_go(owner)
        await desk.work(owner)
        assert await desk.states(slow) == {"a": "COMPLETED", "b": "COMPLETED"}

    at_desk(work)


@pytest.mark.parametrize(("text", "state"), [("aaa", "COMPLETED"), ("b", "SKIPPED")])
def test_the_verdict_is_recorded(text: str, state: str):
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        name = await desk.start([node("a", condition=COSTLY)], {"text": text})
        await desk.drain(owner)
        await desk.let_go(owner)
        await desk.work(owner)
        assert await desk.states(name) == {"a": state}

    at_desk(work)


def test_an_overrun_fails_the_node_for_good():
    async def work(desk: SlowDesk) -> None:
        desk.sandbox.overruns = 1
        owner = await desk.own(seconds=1.0)
        name = await desk.start([node("a", condition=COSTLY)], TEXT)
        await desk.drain(owner)
        await desk.let_go(owner)
        stored = await desk.stored(name)
        assert stored.record.state == "FAILED"
        error = stored.runs["a"].failures[-1].error
        assert error.category == "condition"
        assert error.message == f'the condition "{COSTLY}" can\'t be evaluated: it took too long'
        desk.now += 2 * PREPARE_AGAIN_SECONDS
        await desk.drain(await desk.own("owner-2"))
        assert len(desk.sandbox.jobs) == 1

    at_desk(work)


def test_a_dead_owners_evaluation_is_begun_again_by_the_next():
    async def work(desk: SlowDesk) -> None:
        first = await desk.own(seconds=1.0)
        name = await desk.start([node("a", condition=COSTLY)], TEXT)
        await desk.drain(first)
        await desk.sandbox.asked(1)
        await first._preparer.close()  # it is gone, and what it asked for with it
        desk.now += PREPARE_AGAIN_SECONDS
        second = await desk.own("owner-2")
        await desk.drain(second)
        await desk.sandbox.asked(2)
        await desk.let_go(second)
        await desk.work(second)
        assert await desk.state(name) == "COMPLETED"

    at_desk(work)


def test_the_timer_does_not_ask_twice():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        name = await desk.start([node("a", condition=COSTLY)], TEXT)
        await desk.drain(owner)
        for _ in range(3):
            desk.now += PREPARE_AGAIN_SECONDS
            await desk.drain(owner)
        assert len(desk.sandbox.jobs) == 1
        await desk.let_go(owner)
        await desk.work(owner)
        assert await desk.state(name) == "COMPLETED"

    at_desk(work)


def test_an_execution_that_left_memory_meanwhile_gets_its_verdict():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        name = await desk.start([node("a", condition=COSTLY)], TEXT)
        await desk.drain(owner)
        owner._cache.clear()
        desk.now += PREPARE_AGAIN_SECONDS
        await desk.drain(owner)  # it is loaded again, and asks again
        await desk.sandbox.asked(1)
        await desk.let_go(owner)
        await desk.work(owner)
        assert await desk.state(name) == "COMPLETED"
        assert len(desk.sandbox.jobs) == 1

    at_desk(work)


def test_a_cancelled_execution_has_nothing_evaluated_any_more():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        name = await desk.start([node("a", condition=COSTLY)], TEXT)
        await desk.drain(owner)
        (task,) = owner._preparer._under_way[name].values()
        await desk.stores.hot.append([CancelRequested(name)])
        await desk.drain(owner)
        assert await desk.states(name) == {"a": "CANCELLED"}
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert not owner._preparer._under_way

    at_desk(work)


def test_a_verdict_that_comes_during_a_pause_counts_after_it():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        name = await desk.start([node("a", condition=COSTLY)], TEXT)
        await desk.drain(owner)
        await desk.stores.hot.append([PauseRequested(name)])
        await desk.drain(owner)
        await desk.let_go(owner)
        assert await desk.fetch() == []
        await desk.stores.hot.append([ResumeRequested(name)])
        await desk.work(owner)
        assert await desk.state(name) == "COMPLETED"
        assert len(desk.sandbox.jobs) == 1

    at_desk(work)


def test_a_failing_execution_skips_what_is_being_evaluated():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        bad = node("bad", condition="input.missing == 1")
        name = await desk.start([node("a", condition=COSTLY), bad], TEXT)
        await desk.drain(owner)
        await desk.let_go(owner)
        assert await desk.states(name) == {"a": "SKIPPED", "bad": "FAILED"}

    at_desk(work)


def test_only_the_one_that_overruns_is_to_blame():
    async def work(desk: SlowDesk) -> None:
        desk.sandbox.overruns = 1  # of the batch; each of them alone is fine
        owner = await desk.own()
        name = await desk.start([node(f"n{i}", condition=COSTLY) for i in range(3)], TEXT)
        await desk.drain(owner)
        await desk.let_go(owner)
        await desk.work(owner)
        assert set((await desk.states(name)).values()) == {"COMPLETED"}

    at_desk(work)


def test_after_some_overruns_an_execution_is_not_tried_any_more():
    async def work(desk: SlowDesk) -> None:
        desk.sandbox.overruns = 1000
        owner = await desk.own()
        nodes = [node(f"n{i}", condition=COSTLY) for i in range(20)]
        name = await desk.start(nodes, TEXT, on_failure="continue")
        await desk.drain(owner)
        await desk.let_go(owner)
        assert set((await desk.states(name)).values()) == {"FAILED"}
        assert len(desk.sandbox.jobs) == 1 + preparer.OVERRUNS_MAX

    at_desk(work)


def test_a_config_out_of_a_large_output_is_resolved_beside_the_loop():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        name = await desk.start(
            [node("a"), node("b", "a", config={"x": "{{ a.items[2] }}", "y": "n: {{ a.n }}"})]
        )
        await desk.drain(owner)
        large = b'{"n":7,"items":[0,1,{"k":"v"}],"rest":"' + b"x" * 2_000_000 + b'"}'
        await desk.succeed(await desk.fetch(), large)
        await desk.drain(owner)
        assert await desk.states(name) == {"a": "COMPLETED"}
        await desk.let_go(owner)
        (task,) = await desk.fetch()
        assert task.config == b'{"x":{"k":"v"},"y":"n: 7"}'

    at_desk(work)


def test_a_decision_over_a_large_output_is_made_beside_the_loop():
    async def work(desk: SlowDesk) -> None:
        owner = await desk.own()
        config = {"value_a": "{{ a.list }}", "operator": "contains", "value_b": 5}
        decision = {"id": "b", "handler": "decision", "dependencies": ["a"], "config": config}
        name = await desk.start([node("a"), decision])
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'{"list":[' + b"1," * 300_000 + b"5]}")
        await desk.drain(owner)
        await desk.let_go(owner)
        assert (await desk.stored(name)).outputs["b"] == b'{"result":true}'

    at_desk(work)


def test_a_large_config_is_kept_before_the_owner_commits():
    """While an owner commits, all other executions of its partition wait."""

    async def work() -> None:
        desk = Desk(inline_max_bytes=1000)
        put, putting = desk.stores.blobs.put, []

        async def note(data: bytes) -> Blob:
            putting.append(asyncio.current_task())
            return await put(data)

        with patch.object(desk.stores.blobs, "put", note):
            owner = await desk.own()
            name = await desk.start(
                [node("a", config={"x": "{{ input.text }}"})], {"text": "x" * 1_000_000}
            )
            await desk.drain(owner)
            await asyncio.gather(*owner._preparer._under_way[name].values())
            await desk.drain(owner)
        [task] = await desk.fetch()
        assert isinstance(task.config, Blob)
        assert putting
        assert asyncio.current_task() not in putting

    asyncio.run(work())
