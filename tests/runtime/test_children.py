"""Workflows that run other workflows, in a real engine: through restarts, and at any depth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine, ExecutionHandle, Workflow
from penstock.contract.waiting import until
from penstock.stores.memory import MemoryStores


def billing(name: str = "billing") -> Workflow:
    flow = Workflow(name, input={"sum": 1, "currency": "EUR"})
    flow.node("pay", "echo", paid="{{ input.sum }}", currency="{{ input.currency }}")
    return flow


def order(reference: str = "billing", **fields: Any) -> Workflow:
    flow = Workflow("order")
    bill = flow.workflow("bill", reference, {"sum": 5}, **fields)
    flow.node("tell", "echo", paid=bill["pay"]["paid"])
    return flow


def waiting() -> Workflow:
    """A child that ends when somebody says so."""
    flow = Workflow("billing")
    flow.node("pay", "echo", paid=flow.signal("paid")["amount"])
    return flow


Use = Callable[[Engine], Awaitable[None]]


def on_each_store(use: Use, folder: Path, store: str) -> None:
    async def main() -> None:
        clock = asyncio.get_running_loop().time
        address = MemoryStores(clock) if store == "memory" else f"sqlite:///{folder}/store.db"
        async with Engine(address) as engine:
            await use(engine)

    asyncio.run(main())


async def started(engine: Engine, workflow: str) -> list[dict[str, Any]]:
    return [row async for row in engine.executions(workflow=workflow)]


async def child_of(engine: Engine, execution: ExecutionHandle, node_id: str = "bill") -> str:
    """The id of the child that a node waits for, as soon as there is one."""
    found: list[str] = []

    async def has_child() -> bool:
        stored = await engine.stores.cold.executions.execution(execution.id)
        run = None if stored is None else stored.runs.get(node_id)
        if run is None or run.more is None or run.more.child is None:
            return False
        found.append(run.more.child)
        return await engine.stores.cold.executions.intent(run.more.child) is not None

    await until(has_child)
    return found[-1]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_the_output_of_a_child_is_that_of_its_node(store: str, tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(billing())
        result = await engine.result((await engine.start(order())).id)
        assert result.nodes["bill"]["output"] == {"pay": {"paid": 5, "currency": "EUR"}}
        assert result.output == {"tell": {"paid": 5}}

    on_each_store(use, tmp_path, store)


def test_children_of_children_end_with_the_deepest(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(billing())
        for depth in range(3):
            flow = Workflow(f"level-{depth}")
            flow.workflow("down", f"level-{depth - 1}" if depth else "billing", {"sum": depth})
            await engine.put_workflow(flow)
        execution = await engine.start("level-2")
        result = await engine.result(execution.id)
        assert result.completed
        tree = await execution.tree()
        assert "truncated" not in tree
        shown = [(item["depth"], item["workflow"], item["node_id"]) for item in tree["items"]]
        assert shown == [
            (0, "level-2", None),
            (1, "level-1", "down"),
            (2, "level-0", "down"),
            (3, "billing", "down"),
        ]
        assert tree["items"][1]["parent_id"] == execution.id
        below = await engine.tree(tree["items"][2]["execution_id"])
        assert [item["depth"] for item in below["items"]] == [0, 1]
        assert below["items"][0]["parent_id"] is None
        assert result.output["down"]["down"]["down"]["pay"]["paid"] == 0
        (deepest,) = await started(engine, "billing")
        stored = await engine.stores.cold.executions.execution(deepest["execution_id"])
        assert stored is not None
        parent = stored.record.parent
        assert parent is not None
        assert (parent.root_id, parent.depth) == (execution.id, 3)

    on_each_store(use, tmp_path, "sqlite")


def test_a_child_that_cannot_be_started_fails_its_node_and_says_why(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer", "minimum": 10}}}

    async def use(engine: Engine) -> None:
        strict = Workflow("strict", input_schema=schema)
        strict.node("pay", "noop")
        await engine.put_workflow(strict)
        flow = Workflow("dynamic")
        flow.workflow("bill", "{{ input.name }}", {"sum": "{{ input.sum }}"})
        await engine.put_workflow(flow)
        for name, words in (("nobody", "no workflow 'nobody'"), ("strict", "input_schema")):
            execution = await engine.start("dynamic", {"name": name, "sum": 3})
            result = await engine.result(execution.id)
            assert result.error is not None
            assert result.error["category"] == "config"
            assert words in result.error["message"]
        assert await started(engine, "strict") == []
        execution = await engine.start("dynamic", {"name": "strict", "sum": 30})
        assert (await engine.result(execution.id)).completed

    on_each_store(use, tmp_path, "sqlite")


def test_an_input_with_what_no_database_stores_fails_the_node(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(billing())
        flow = Workflow("order")
        parsed = flow.node("parsed", "transform", input='"a\\u0000b"', transform_type="json_parse")
        flow.workflow("bill", "billing", {"sum": parsed})
        result = await engine.result((await engine.start(flow)).id)
        assert result.nodes["parsed"]["state"] == "COMPLETED"
        assert result.error is not None
        assert result.error["node_id"] == "bill"
        assert await started(engine, "billing") == []

    on_each_store(use, tmp_path, "sqlite")


def test_a_child_that_fails_is_followed_by_another_one(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        broken = Workflow("billing")
        broken.node("pay", "fail", message="no money", retry={"max_attempts": 1})
        await engine.put_workflow(broken)
        retry = {"max_attempts": 2, "delay_seconds": 0.01, "jitter": 0}
        execution = await engine.start(order(retry=retry))
        result = await engine.result(execution.id)
        assert result.error is not None
        assert result.error["category"] == "child"
        assert "no money" in result.error["message"]
        assert len(await started(engine, "billing")) == 2

    on_each_store(use, tmp_path, "sqlite")


def test_an_alias_means_the_same_in_all_of_a_tree(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(billing())
        await engine.set_alias("billing", "stable", 1)
        flow = Workflow("order")
        go = flow.signal("go")
        flow.workflow("bill", "billing@stable", after=go)
        execution = await engine.start(flow)
        second = billing()
        second.node("more", "noop")
        await engine.put_workflow(second)
        await engine.set_alias("billing", "stable", 2)
        await execution.signal("go")
        await engine.result(execution.id)
        (child,) = await started(engine, "billing")
        assert child["version"] == 1

    on_each_store(use, tmp_path, "sqlite")


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_cancel_pause_and_resume_reach_the_child(store: str, tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(waiting())
        execution = await engine.start(order())
        child = await child_of(engine, execution)

        async def state_is(state: str) -> bool:
            return (await engine.status(child)).state == state

        await until(lambda: state_is("RUNNING"))
        await execution.pause()
        await until(lambda: state_is("PAUSED"))
        await execution.resume()
        await until(lambda: state_is("RUNNING"))
        await execution.cancel()
        await until(lambda: state_is("CANCELLED"))
        assert (await engine.result(execution.id)).state == "CANCELLED"

    on_each_store(use, tmp_path, store)


def test_a_child_that_nobody_waits_for_outlives_its_parent(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(waiting())
        flow = Workflow("order")
        flow.workflow("bill", "billing", wait=False)
        result = await engine.result((await engine.start(flow)).id)
        child = result.nodes["bill"]["output"]["execution_id"]
        await engine.signal(child, "paid", {"amount": 3})
        assert (await engine.result(child)).output == {"pay": {"paid": 3}}

    on_each_store(use, tmp_path, "sqlite")


def test_parent_and_child_survive_a_restart(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/store.db"

    async def main() -> None:
        async with Engine(address) as engine:
            await engine.put_workflow(waiting())
            execution = await engine.start(order())
            child = await child_of(engine, execution)
        async with Engine(address) as engine:
            assert (await engine.status(execution.id)).nodes["bill"]["state"] == "WAITING"
            await engine.signal(child, "paid", {"amount": 3})
            result = await engine.result(execution.id)
            assert result.output == {"tell": {"paid": 3}}
            assert len(await started(engine, "billing")) == 1

    asyncio.run(main())


def test_a_large_output_of_a_child_reaches_its_parent(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        flow = Workflow("billing")
        flow.node("pay", "echo", text="x" * 300_000)
        flow.node("note", "echo", text="small")
        await engine.put_workflow(flow)
        parent = Workflow("order")
        bill = parent.workflow("bill", "billing")
        parent.node("tell", "echo", small=bill["note"]["text"])
        result = await engine.result((await engine.start(parent)).id)
        assert result.nodes["tell"]["output"] == {"small": "small"}
        assert len(result.nodes["bill"]["output"]["pay"]["text"]) == 300_000

    on_each_store(use, tmp_path, "sqlite")


def test_many_children_of_a_map_run_at_once(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(billing())
        flow = Workflow("order")
        with flow.each("each", list(range(150))) as item:
            flow.workflow("bill", "billing", {"sum": item})
        result = await engine.result((await engine.start(flow)).id)
        assert result.completed
        assert len(await started(engine, "billing")) == 150

    on_each_store(use, tmp_path, "sqlite")


def test_parent_and_child_name_each_other_and_say_what_is_waited_for(tmp_path: Path) -> None:
    async def use(engine: Engine) -> None:
        await engine.put_workflow(waiting())
        execution = await engine.start(order())
        child = await child_of(engine, execution)
        why = await engine.why(execution.id, "bill")
        assert (why["reason"], why["text"]) == ("child", f"it waits for its child {child}")
        assert (await engine.status(execution.id)).nodes["bill"]["child"] == child
        view = (await engine.status(child)).view
        parent = {"execution_id": execution.id, "node_id": "bill"}
        assert view["parent"] == {**parent, "root_id": execution.id, "depth": 1}
        assert "parent" not in (await engine.status(execution.id)).view

    on_each_store(use, tmp_path, "sqlite")
