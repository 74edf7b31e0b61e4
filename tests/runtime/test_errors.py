"""Errors and clean-up in an engine with a real store: from the document to the result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.worker.context import Context
from penstock.worker.registry import Registry, handler

STORES = pytest.mark.parametrize("store", ["memory://", "sqlite"])


def run(store: str, tmp_path: Path, *nodes: dict[str, Any], **workflow: Any) -> penstock.Result:
    address = f"sqlite:///{tmp_path}/test.db" if store == "sqlite" else store
    return penstock.run({"name": "w", "nodes": list(nodes), **workflow}, store=address)


def failing(name: str, **fields: Any) -> dict[str, Any]:
    config = {"message": f"{name} broke"}
    return {"id": name, "handler": "fail", "config": config, "retry": {"max_attempts": 1}, **fields}


@STORES
def test_terminate_gives_the_output(store, tmp_path):
    result = run(
        store,
        tmp_path,
        {"id": "a", "handler": "echo", "config": {"n": 1}},
        {
            "id": "end",
            "handler": "terminate",
            "config": {"state": "COMPLETED", "output": {"n": "{{ a.n + 1 }}"}},
        },
        {"id": "never", "handler": "echo", "depends_on": ["end"]},
    )
    assert (result.state, result.output) == ("COMPLETED", {"n": 2})
    assert result.nodes["never"]["state"] == "SKIPPED"


@STORES
def test_terminate_may_fail(store, tmp_path):
    end = {
        "id": "end",
        "handler": "terminate",
        "config": {"state": "FAILED", "message": "enough"},
    }
    result = run(store, tmp_path, end)
    assert result.state == "FAILED"
    assert result.error is not None
    assert result.error["message"] == "enough"


@STORES
def test_a_caught_failure_completes_and_its_catcher_sees_the_error(store, tmp_path):
    result = run(
        store,
        tmp_path,
        failing("a"),
        {
            "id": "c",
            "handler": "echo",
            "catches": [{"node": "a", "on": ["handler"]}],
            "config": {"why": "{{ nodes.a.error.message }}", "state": "{{ nodes.a.state }}"},
        },
    )
    assert result.state == "COMPLETED"
    assert result.output == {"c": {"why": "a broke", "state": "FAILED"}}


@STORES
def test_clean_up_runs_after_a_cancel(store, tmp_path):
    address = f"sqlite:///{tmp_path}/test.db" if store == "sqlite" else store
    registry = Registry()
    started = asyncio.Event()
    clean = asyncio.Event()

    @handler("waits", registry=registry)
    async def waits(config: dict[str, Any], ctx: Context) -> None:
        started.set()
        await asyncio.Event().wait()

    @handler("cleans", registry=registry)
    async def cleans(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await clean.wait()
        return config

    document = {
        "name": "w",
        "nodes": [
            {"id": "work", "handler": "waits"},
            {
                "id": "clean",
                "handler": "cleans",
                "finally": True,
                "config": {"state": "{{ execution.state }}", "work": "{{ nodes.work.state }}"},
            },
        ],
    }

    async def scene() -> None:
        async with penstock.Engine(address, registry=registry) as engine:
            execution = await engine.start(document)
            await started.wait()
            await execution.cancel()
            await _until_clean_up(engine, execution.id)
            view = (await engine.status(execution.id)).view
            assert view["state"] == "RUNNING"
            assert view["ending"]["state"] == "CANCELLED"
            clean.set()
            result = await execution.result()
            assert result.state == "CANCELLED"
            assert result.nodes["clean"]["output"] == {"state": "CANCELLED", "work": "CANCELLED"}

    _run(scene())


async def _until_clean_up(engine: penstock.Engine, execution_id: str) -> None:
    async for event in engine.execution_events(execution_id):
        if event["node_id"] == "clean" and event["to"] == "QUEUED":
            return


def _run(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 60))


@STORES
def test_an_expression_that_is_dear_is_worked_out_in_the_sandbox(store, tmp_path):
    result = run(
        store,
        tmp_path,
        {"id": "a", "handler": "echo", "config": {"items": list(range(90))}},
        {
            "id": "b",
            "handler": "echo",
            "config": {"n": "{{ a.items.filter(x, a.items.exists(y, y == x + 87)).size() }}"},
        },
    )
    assert result.state == "COMPLETED", result.error
    assert result.output == {"b": {"n": 3}}


@STORES
def test_one_that_computes_for_too_long_fails_its_node(store, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_EXPRESSION_SECONDS", "0.3")
    result = run(
        store,
        tmp_path,
        {"id": "a", "handler": "echo", "config": {"s": "a" * 200_000}},
        {
            "id": "b",
            "handler": "echo",
            "config": {"n": "{{ a.s.matches('((a|b|c|d){1,50}){1,20}y') }}"},
        },
    )
    assert result.state == "FAILED"
    assert result.error is not None
    assert (result.error["category"], result.error["node_id"]) == ("config", "b")
    assert "more than 0.3 s" in result.error["message"]


def test_a_retry_runs_a_handled_node_again_and_what_comes_after_it(tmp_path: Path):
    nodes = [
        {"id": "before", "handler": "echo"},
        failing("a", depends_on=["before"]),
        {"id": "c", "handler": "echo", "catches": ["a"]},
        {"id": "d", "handler": "echo", "depends_on": ["c"]},
    ]

    async def scene() -> None:
        async with penstock.Engine("memory://") as engine:
            execution = await engine.start({"name": "w", "nodes": nodes})
            assert (await execution.result()).state == "COMPLETED"
            plan = await engine.service.retries.preview(execution.id)
            assert plan.reused == ["before"]
            assert [(run.node_id, run.reason) for run in plan.runs] == [
                ("a", "failed"),
                ("c", "comes after a, which runs again"),
                ("d", "comes after c, which runs again"),
            ]

    _run(scene())


@STORES
def test_a_switch_runs_one_branch(store, tmp_path):
    result = run(
        store,
        tmp_path,
        {"id": "order", "handler": "echo", "config": {"kind": "b"}},
        {"id": "s", "switch": "order.kind", "cases": {"a": ["x"], "default": ["y"]}},
        {"id": "x", "handler": "echo", "config": {"n": 1}},
        {"id": "y", "handler": "echo", "config": {"n": 2}},
    )
    assert result.state == "COMPLETED"
    assert result.output == {"y": {"n": 2}}
    assert result.nodes["s"]["output"] == {"result": "b"}
