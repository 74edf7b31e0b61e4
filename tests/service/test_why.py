"""Why a node isn't running: the exact reason, in every state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine, Workflow, handler
from penstock.config import Settings
from penstock.contract.waiting import until
from penstock.errors import NotFound
from penstock.stores.base import TasksAhead
from penstock.stores.memory.task_queue import MemoryTaskQueue
from penstock.views.why import Why

Ask = Callable[[str], Coroutine[Any, Any, Why]]


@handler("why_doomed")
async def doomed(_config: dict[str, Any]) -> None:
    raise ValueError("no luck")


@handler("why_heavy", queue="why_big")
async def heavy(_config: dict[str, Any]) -> None:
    await asyncio.Event().wait()


def _two_naps() -> Workflow:
    flow = Workflow("naps")
    for name in ("first", "second"):
        flow.node(name, "sleep", seconds=60)
    return flow


def explain(
    folder: Path,
    flow: Workflow,
    check: Callable[[Ask, Any], Coroutine[Any, Any, None]],
    settings: Settings | None = None,
) -> None:
    """Run `check` with a function that asks about nodes of a running execution."""

    async def main() -> None:
        async with Engine(f"sqlite:///{folder}/store.db", settings=settings) as engine:
            execution = await engine.start(flow)

            async def ask(node_id: str) -> Why:
                return await engine.service.explanations.why(execution.id, node_id)

            await check(ask, execution)
            await execution.cancel()

    asyncio.run(main())


async def until_reason(ask: Ask, node_id: str, reason: str) -> Why:
    last: list[Why] = []

    async def is_so() -> bool:
        last[:] = [await ask(node_id)]
        return last[0].reason == reason

    await until(is_so)
    return last[0]


def test_nodes_that_wait_say_for_what(tmp_path: Path) -> None:
    flow = Workflow("waits")
    flow.wait("nap", seconds=3600)
    paid = flow.signal("paid", "paid", "refused", correlation="order-7")
    flow.approval("release", "Send?", config={"needed": 2})
    flow.node("ship", "echo", after=paid)

    async def check(ask: Ask, execution: Any) -> None:
        nap = await until_reason(ask, "nap", "time")
        assert (nap.state, nap.until is not None) == ("WAITING", True)
        signal = await ask("paid")
        assert (signal.reason, signal.names) == ("signal", ["paid", "refused"])
        text = "it waits for the signal paid or refused with the correlation 'order-7'"
        assert signal.text == text
        release = await ask("release")
        assert release.text == "it waits for a decision ('Send?'); 0 of 2 have approved"
        ship = await ask("ship")
        assert (ship.reason, ship.text) == ("dependencies", "it waits for paid (WAITING)")
        assert [parent.node_id for parent in ship.waits_for] == ["paid"]

        await execution.pause()
        await execution.signal("paid")
        await until_reason(ask, "ship", "paused")
        assert (await ask("paid")).reason == "ended"
        with pytest.raises(NotFound):
            await ask("nobody")

    explain(tmp_path, flow, check)


def test_a_node_between_two_attempts_says_when_and_why(tmp_path: Path) -> None:
    flow = Workflow("retries")
    flow.node(
        "bad",
        doomed,
        retry={"max_attempts": 3, "initial_delay_seconds": 600, "max_delay_seconds": 600},
    )

    async def check(ask: Ask, _execution: Any) -> None:
        bad = await until_reason(ask, "bad", "retry")
        assert bad.text.startswith("attempt 2 of 3 starts at 2")
        assert bad.text.endswith("no luck")

    explain(tmp_path, flow, check)


def test_a_task_behind_others_says_how_many_wait_and_how_many_are_ahead(tmp_path: Path) -> None:
    flow = Workflow("busy")
    for name in ("first", "second", "third", "fourth"):
        flow.node(name, "sleep", seconds=60)

    async def check(ask: Ask, execution: Any) -> None:
        await until_reason(ask, "first", "running")
        second = await until_reason(ask, "second", "queued")
        assert (second.queue, second.tasks_waiting, second.position) == ("sleep", 3, 1)
        next_one = "it waits for a free worker; it is the next one in the queue 'sleep'"
        assert second.text == next_one
        third = await ask("third")
        assert third.position == 2
        one = "it waits for a free worker; 1 task is ahead of it in the queue 'sleep'"
        assert third.text == one
        fourth = await ask("fourth")
        assert fourth.position == 3
        assert "; 2 tasks are ahead of it" in fourth.text
        await execution.pause()
        await until_reason(ask, "third", "paused")

    settings = Settings.load({"worker_concurrency": 1}, environ={})
    explain(tmp_path, flow, check, settings)


def test_a_task_far_back_in_its_queue_says_how_many_are_ahead_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ahead(*_: Any) -> TasksAhead:
        return TasksAhead(10_003, is_exact=False)

    monkeypatch.setattr(MemoryTaskQueue, "tasks_ahead", ahead)

    async def check(ask: Ask, _execution: Any) -> None:
        second = await until_reason(ask, "second", "queued")
        assert second.position is None
        assert "; at least 10,003 tasks are ahead of it in the queue 'sleep'" in second.text

    settings = Settings.load({"worker_concurrency": 1}, environ={})
    explain(tmp_path, _two_naps(), check, settings)


def test_a_task_that_a_worker_has_just_taken_has_no_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nowhere(*_: Any) -> None:
        return None

    monkeypatch.setattr(MemoryTaskQueue, "tasks_ahead", nowhere)

    async def check(ask: Ask, _execution: Any) -> None:
        second = await until_reason(ask, "second", "queued")
        assert second.position is None
        assert second.text == "it waits for a free worker of the queue 'sleep'"

    settings = Settings.load({"worker_concurrency": 1}, environ={})
    explain(tmp_path, _two_naps(), check, settings)


def test_a_task_has_its_place_in_the_queue_that_its_handler_asks_for_now(tmp_path: Path) -> None:
    """The plan knows only the handler's name."""
    flow = Workflow("routed")
    for name in ("first", "second"):
        flow.node(name, "why_heavy")

    async def check(ask: Ask, _execution: Any) -> None:
        await until_reason(ask, "first", "running")
        second = await until_reason(ask, "second", "queued")
        assert (second.queue, second.position, second.tasks_waiting) == ("why_big", 1, 1)

    settings = Settings.load({"worker_concurrency": 1}, environ={})
    explain(tmp_path, flow, check, settings)


def test_maps_and_loops_say_what_is_under_way_and_what_has_no_room_yet(tmp_path: Path) -> None:
    flow = Workflow("regions")
    with flow.each("each", [1, 2, 3], max_parallel=2):
        flow.signal("go")
        flow.node("then", "echo", after="go")
    with flow.repeat("poll", until="false", max_rounds=9, every_seconds=3600):
        flow.node("look", "echo")

    async def check(ask: Ask, _: Any) -> None:
        assert (await until_reason(ask, "each[1].go", "signal")).node_id == "each[1].go"
        under_way = await ask("each")
        assert under_way.reason == "items"
        assert under_way.text == "0 of 3 items have ended; 2 are open: each[0], each[1]"
        assert (await ask("each[0]")).text == "it is under way: each[0].go (WAITING)"
        inside = await ask("each[0].then")
        assert [item.node_id for item in inside.waits_for or []] == ["each[0].go"]

        unopened = await ask("each[2].go")
        assert (unopened.reason, unopened.node_id) == ("item_limit", "each[2].go")
        assert "at most 2 are open at once (max_parallel)" in unopened.text
        with pytest.raises(NotFound, match="each has 3 items"):
            await ask("each[3].go")

        pause = await until_reason(ask, "poll", "time")
        assert pause.until is not None
        assert pause.text.startswith("round 1 has ended; the next begins at")
        assert (await ask("poll[2]")).reason == "time"

    explain(tmp_path, flow, check)
