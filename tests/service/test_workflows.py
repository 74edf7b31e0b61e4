"""Definitions: what a reference means, right after somebody has changed it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import penstock
from penstock.definition.model import HandlerDefaults
from penstock.errors import InvalidWorkflow
from penstock.runtime.timing import EngineTiming
from penstock.service.timing import ServiceTiming
from penstock.service.workflows import Workflows


def document(word: str, name: str = "flow") -> dict[str, Any]:
    return {"name": name, "nodes": [{"id": "a", "handler": "echo", "config": {"word": word}}]}


def with_workflows(scenario: Any, timing: ServiceTiming | None = None) -> None:
    async def main() -> None:
        times = EngineTiming(service=timing or ServiceTiming())
        async with penstock.Engine("memory://", timing=times) as engine:
            await scenario(engine, engine.service.workflows)

    asyncio.run(main())


def test_a_read_that_began_before_an_alias_moved_is_not_remembered() -> None:
    async def scenario(engine: penstock.Engine, workflows: Workflows) -> None:
        for word in ("first", "second"):
            await workflows.put(document(word))
        await workflows.set_alias("flow", "stable", {1: 100})
        real = engine.stores.cold.definitions.aliases
        reading = asyncio.Event()
        go_on = asyncio.Event()

        async def slow(name: str) -> Any:
            versions = await real(name)
            reading.set()
            await go_on.wait()
            return versions

        engine.stores.cold.definitions.aliases = slow  # type: ignore[method-assign]
        early = asyncio.create_task(workflows.find("flow@stable"))
        await reading.wait()
        engine.stores.cold.definitions.aliases = real  # type: ignore[method-assign]
        await workflows.set_alias("flow", "stable", {2: 100})
        go_on.set()
        await early
        assert await workflows.find("flow@stable") == ("flow", 2)

    with_workflows(scenario)


def test_documents_that_are_started_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.service.workflows.COMPILED_BYTES_MAX", 300_000)

    async def scenario(_engine: penstock.Engine, workflows: Workflows) -> None:
        for number in range(10):
            plan = await workflows.plan(document("x" * 100_000, f"flow-{number}"))
            assert await workflows.plan(document("x" * 100_000, f"flow-{number}")) is plan
        assert len(workflows._compiled) == 2

    with_workflows(scenario)


def test_a_document_that_is_too_large_is_refused_however_few_nodes_it_has() -> None:
    async def scenario(_engine: penstock.Engine, workflows: Workflows) -> None:
        with pytest.raises(InvalidWorkflow, match="the limit is 10,485,760"):
            await workflows.check(document("x" * 11_000_000))

    with_workflows(scenario)


def works(handler: str) -> dict[str, Any]:
    return {"name": handler, "nodes": [{"id": "a", "handler": handler}]}


def test_a_worker_that_has_just_come_is_known_at_once() -> None:
    async def scenario(engine: penstock.Engine, workflows: Workflows) -> None:
        for name in ("first", "second"):
            with pytest.raises(InvalidWorkflow, match=name):
                await workflows.put(works(name))
            await engine.stores.cold.definitions.remember_handlers(
                {name: HandlerDefaults(queue="gpu")}
            )
            assert (await workflows.put(works(name))).plan.nodes[0].queue == "gpu"

    with_workflows(scenario)


def test_what_handlers_ask_for_is_read_once_in_a_while_and_not_for_each_document() -> None:
    async def scenario(engine: penstock.Engine, workflows: Workflows) -> None:
        real, reads = engine.stores.cold.definitions.known_handlers, []

        async def counted() -> Any:
            reads.append(1)
            return await real()

        engine.stores.cold.definitions.known_handlers = counted  # type: ignore[method-assign]
        for number in range(20):
            await workflows.put(document(f"word {number}"))
            await workflows.check(works(f"later-{number}"), allow_unknown_handlers=True)
        assert len(reads) == 1
        workflows._registered_at = float("-inf")
        await engine.stores.cold.definitions.remember_handlers(
            {"echo": HandlerDefaults(queue="gpu")}
        )
        assert (await workflows.put(document("again"))).plan.nodes[0].queue == "gpu"

    with_workflows(scenario, ServiceTiming(definitions_fresh_seconds=3600.0))
