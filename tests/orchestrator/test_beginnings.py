"""How the owner loads an execution that hasn't begun, or hasn't recorded all that it reuses."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from penstock.engine import handling
from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import (
    Blob,
    CancelRequested,
    ExecutionBroke,
    ExecutionStarted,
    PauseRequested,
)
from penstock.engine.states import ExecutionState
from penstock.stores.base import Intent, ReusedOutput
from tests.orchestrator.desk import Desk, diamond, node

NAME = "the-retry"


async def record_intent(desk: Desk, nodes: list[dict[str, Any]], *reused: ReusedOutput) -> None:
    plan = await desk.workflow(nodes)
    record = ExecutionRecord(NAME, plan.name, plan.version, ExecutionState.PENDING, b"{}", desk.now)
    await desk.stores.cold.executions.record_intents(
        [Intent(record, retry_of="execution-0", reused=list(reused))]
    )


async def retry(desk: Desk, nodes: list[dict[str, Any]], *reused: ReusedOutput) -> None:
    await record_intent(desk, nodes, *reused)
    await desk.stores.hot.append([ExecutionStarted(NAME)])


def test_what_the_intent_reuses_does_not_run() -> None:
    async def scenario() -> None:
        desk = Desk()
        blob = await desk.stores.blobs.put(b'{"x":1}')
        await retry(
            desk,
            diamond(),
            ReusedOutput("a", b"{}"),
            ReusedOutput("b", blob),
            ReusedOutput("gone", b"{}"),
        )
        tasks = await desk.work(await desk.own())
        assert [task.node_id for task in tasks] == ["c", "d"]
        stored = await desk.stored(NAME)
        assert stored.record.state == ExecutionState.COMPLETED
        assert stored.outputs["b"] == blob
        assert isinstance(stored.outputs["b"], Blob)
        assert [run.node_id for run in stored.runs.values() if run.reason == "kept"] == ["a", "b"]

    asyncio.run(scenario())


def test_an_owner_that_dies_between_the_commits_leaves_nothing_that_was_reused_to_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = Desk()
        names = [f"n{i}" for i in range(7)]
        chain = [node(name, *names[i - 1 : i]) for i, name in enumerate(names)]
        await retry(
            desk, [*chain, node("last", names[-1])], *[ReusedOutput(name, b"{}") for name in names]
        )
        still_reused = []
        for turn in range(9):
            owner = await desk.own(f"owner-{turn}", seconds=0.0)
            await owner.step()
            still_reused.append((await desk.stored(NAME)).record.reused > 0)
            desk.now += 1
        assert still_reused[:4] == [True, True, True, False]
        assert [task.node_id for task in await desk.fetch()] == ["last"]

    monkeypatch.setattr(handling, "COMMIT_WEIGHT", 2)
    asyncio.run(scenario())


def test_the_intent_is_read_only_while_something_in_it_is_needed() -> None:
    async def scenario() -> None:
        desk = Desk()
        await retry(desk, diamond(), ReusedOutput("a", b"{}"))
        read = _count_intents(desk)
        await desk.drain(await desk.own("owner-1", seconds=0.0))
        desk.now += 1
        assert [task.node_id for task in await desk.work(await desk.own("owner-2"))] == [
            "b",
            "c",
            "d",
        ]
        assert read == [[NAME]]

    asyncio.run(scenario())


def test_the_intents_of_a_whole_batch_are_read_at_once() -> None:
    async def scenario() -> None:
        desk = Desk()
        names = [await desk.start([node("a")]) for _ in range(20)]
        read = _count_intents(desk)
        assert len(await desk.work(await desk.own())) == 20
        assert [sorted(execution_ids) for execution_ids in read] == [sorted(names)]

    asyncio.run(scenario())


def test_one_intent_that_cannot_be_read_stops_none_of_the_others() -> None:
    async def scenario() -> None:
        desk = Desk()
        names = [await desk.start([node("a")]) for _ in range(4)]
        desk.stores.cold.executions._intents[names[1]] = b"not an intent"
        assert len(await desk.work(await desk.own())) == 3
        states = [await desk.state(name) for name in names]
        assert states == ["COMPLETED", "PENDING", "COMPLETED", "COMPLETED"]

    asyncio.run(scenario())


def _count_intents(desk: Desk) -> list[list[str]]:
    """What is asked for, from now on."""
    read: list[list[str]] = []
    real = desk.stores.cold.executions.intents

    async def intents(execution_ids: Collection[str]) -> dict[str, Intent]:
        read.append(list(execution_ids))
        return await real(execution_ids)

    desk.stores.cold.executions.intents = intents  # type: ignore[method-assign]
    return read


def test_an_execution_cancelled_before_it_began_ends_without_running_anything() -> None:
    async def scenario() -> None:
        desk = Desk()
        await record_intent(desk, diamond())
        await desk.stores.hot.append([CancelRequested(NAME), ExecutionStarted(NAME)])
        assert await desk.work(await desk.own()) == []
        stored = await desk.stored(NAME)
        assert [(line.node_id, line.before, line.after) for line in stored.history] == [
            *[(name, "PENDING", "CANCELLED") for name in "abcd"],
            ("", "PENDING", "CANCELLED"),
        ]
        assert stored.record.started_at is None

    asyncio.run(scenario())


def test_a_start_in_a_later_batch_than_the_cancel_changes_nothing() -> None:
    async def scenario() -> None:
        desk = Desk()
        await record_intent(desk, diamond(), ReusedOutput("a", b"{}"))
        owner = await desk.own()
        await desk.stores.hot.append([CancelRequested(NAME)])
        await desk.drain(owner)
        await desk.stores.hot.append([ExecutionStarted(NAME)])
        assert await desk.work(owner) == []
        assert await desk.states(NAME) == dict(
            zip("abcd", ["COMPLETED"] + ["CANCELLED"] * 3, strict=True)
        )
        assert await desk.state(NAME) == "CANCELLED"

    asyncio.run(scenario())


def test_no_other_event_makes_an_execution_begin() -> None:
    async def scenario() -> None:
        desk = Desk()
        await record_intent(desk, diamond())
        await desk.stores.hot.append(
            [PauseRequested(NAME), ExecutionBroke(NAME, "no"), CancelRequested("never-was")]
        )
        assert await desk.work(await desk.own()) == []
        assert await desk.state(NAME) == "PENDING"
        assert await desk.stores.hot.load([NAME, "never-was"]) == {}

    asyncio.run(scenario())
