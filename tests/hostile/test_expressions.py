"""Whatever a document has evaluated: its own node fails, and nobody else notices."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.config import Settings
from penstock.engine.states import ExecutionState
from penstock.runtime import Engine
from penstock.stores.base import ControlRequest
from tests.hostile.expressions import (
    CONDITIONS,
    LONG_TEXT,
    MANY_VALUES,
    NESTED_COUNTS,
    TEMPLATES,
    TRANSFORMS,
    Hostile,
)
from tests.hostile.watching import watched_loop
from tests.waiting import until

MIB = 1024 * 1024
SETTINGS = Settings(expression_seconds=0.2, expression_memory_bytes=128 * MIB)
BLOCKED_SECONDS_MAX = 0.25  # without the sandbox it is seconds; 0.1 s is what a quiet machine shows
GROWTH_BYTES_MAX = 300 * MIB
INNOCENT = {
    "name": "innocent",
    "nodes": [
        {"id": "a", "handler": "echo", "config": {"n": 1}},
        {"id": "b", "handler": "noop", "dependencies": ["a"], "condition": "a.n == 1"},
        {
            "id": "c",
            "handler": "transform",
            "dependencies": ["a", "b"],
            "config": {"expression": "a.n + 1"},
        },
    ],
}


def as_condition(hostile: Hostile) -> dict[str, Any]:
    return {
        "name": "hostile",
        "nodes": [{"id": "n", "handler": "noop", "condition": hostile.source}],
    }


def as_template(hostile: Hostile) -> dict[str, Any]:
    node = {"id": "n", "handler": "noop", "config": {"x": f"{{{{ {hostile.source} }}}}"}}
    return {"name": "hostile", "nodes": [{"id": "a", "handler": "input"}, node]}


def as_transform(hostile: Hostile) -> dict[str, Any]:
    node = {
        "id": "n",
        "handler": "transform",
        "dependencies": ["a"],
        "config": {"expression": hostile.source},
    }
    return {"name": "hostile", "nodes": [{"id": "a", "handler": "input"}, node]}


async def judged(document: dict[str, Any], input_value: dict[str, Any], limit: str) -> None:
    process = psutil.Process()
    before = process.memory_info().rss
    async with Engine("memory://", settings=SETTINGS) as engine, watched_loop() as watch:
        hostile = await engine.start(document, input_value)
        innocent = await (await engine.start(INNOCENT)).result()
        assert innocent.completed, innocent.error
        ended = await hostile.result()
        if ended.error is not None:
            assert re.search(limit, ended.error["message"]), ended.error
            assert ended.error["category"] in {"condition", "config", "expression"}
            assert len(ended.error["message"]) < 1000
        assert watch.blocked_seconds < BLOCKED_SECONDS_MAX
    assert process.memory_info().rss - before < GROWTH_BYTES_MAX


@pytest.mark.parametrize("hostile", CONDITIONS, ids=[case.name for case in CONDITIONS])
def test_a_hostile_condition_costs_only_its_own_node(hostile: Hostile):
    asyncio.run(judged(as_condition(hostile), hostile.input, hostile.limit))


@pytest.mark.parametrize("hostile", TRANSFORMS, ids=[case.name for case in TRANSFORMS])
def test_a_hostile_transform_costs_only_its_own_node(hostile: Hostile):
    asyncio.run(judged(as_transform(hostile), hostile.input, hostile.limit))


@pytest.mark.parametrize("hostile", TEMPLATES, ids=[case.name for case in TEMPLATES])
def test_a_hostile_template_costs_only_its_own_node(hostile: Hostile):
    asyncio.run(judged(as_template(hostile), hostile.input, hostile.limit))


@pytest.mark.parametrize("source", ["input.v[{}] == 1", "input.k{} == 1 && size(input.v) > 1"])
def test_200_conditions_over_300_000_values_convert_them_once(source: str):
    nodes = [{"id": f"n{i}", "handler": "noop", "condition": source.format(i)} for i in range(200)]
    input_value = {"v": MANY_VALUES, **{f"k{i}": 1 for i in range(200)}}

    async def work() -> None:
        async with Engine("memory://", settings=Settings()) as engine, watched_loop() as watch:
            result = await (
                await engine.start({"name": "many", "nodes": nodes}, input_value)
            ).result()
            assert result.completed, result.error
            assert watch.blocked_seconds < BLOCKED_SECONDS_MAX

    asyncio.run(work())


@pytest.mark.parametrize("control_request", ["cancel", "pause"])
def test_an_execution_can_be_controlled_while_its_condition_is_evaluated(
    control_request: ControlRequest,
):
    endless = Hostile("endless", f"input.s.matches('{NESTED_COUNTS}')", {"s": LONG_TEXT})

    async def work() -> None:
        async with Engine("memory://", settings=Settings(expression_seconds=60.0)) as engine:
            handle = await engine.start(as_condition(endless), endless.input)
            async with asyncio.timeout(60):
                await until(psutil.Process().children)
                if control_request == "pause":
                    await handle.pause()
                await handle.cancel()
                result = await handle.result()
            assert result.state == ExecutionState.CANCELLED

    asyncio.run(work())


def test_an_overrun_is_recorded_and_never_tried_again(tmp_path: Path):
    hostile = CONDITIONS[0]
    before = set(psutil.Process().children())  # servers of other tests
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def fail() -> str:
        async with Engine(store, settings=SETTINGS) as engine:
            handle = await engine.start(as_condition(hostile), hostile.input)
            assert not (await handle.result()).completed
            return handle.execution_id

    async def look(execution_id: str) -> None:
        async with Engine(store, settings=SETTINGS) as engine:
            result = await engine.execution(execution_id).result()
            assert result.error is not None
            assert "computing time" in result.error["message"]
            assert set(psutil.Process().children()) <= before

    asyncio.run(look(asyncio.run(fail())))


def test_a_document_of_nothing_but_overruns_is_given_up_after_three():
    nodes = [
        {
            "id": f"n{i}",
            "handler": "noop",
            "condition": f"input.s.matches('{NESTED_COUNTS}{i}')",
            "optional": True,
        }
        for i in range(500)
    ]

    async def work() -> None:
        async with Engine("memory://", settings=SETTINGS) as engine:
            document = {"name": "many", "nodes": nodes, "on_failure": "continue"}
            result = await (await engine.start(document, {"s": LONG_TEXT})).result()
            messages = [node["error"]["message"] for node in result.nodes.values()]
            assert sum("computing time" in message for message in messages) == 3
            assert sum("so it wasn't tried" in message for message in messages) == 497

    asyncio.run(work())
