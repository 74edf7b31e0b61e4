"""What of a document about its children is refused, by what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock import Engine
from penstock.definition import Problem
from penstock.errors import InvalidWorkflow
from penstock.service.workflows import Workflows


def calls(name: str, *references: str, **fields: Any) -> dict[str, Any]:
    """A workflow with a child for each reference."""
    nodes = [
        {"id": f"n{i}", "handler": "workflow", "config": {"workflow": reference}, **fields}
        for i, reference in enumerate(references)
    ]
    return {"name": name, "nodes": nodes or [{"id": "a", "handler": "noop"}]}


def with_workflows(scenario: Callable[[Workflows], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Engine("memory://") as engine:
            await scenario(engine.service.workflows)

    asyncio.run(main())


async def problem_of(workflows: Workflows, document: dict[str, Any]) -> Problem:
    with pytest.raises(InvalidWorkflow) as refused:
        await workflows.put(document)
    (problem,) = refused.value.problems
    return problem


def test_a_workflow_that_is_not_stored_is_refused_with_the_nearest_name() -> None:
    async def scenario(workflows: Workflows) -> None:
        await workflows.put(calls("billing"))
        problem = await problem_of(workflows, calls("order", "biling"))
        assert (problem.code, problem.path) == ("unknown_workflow", "nodes[0].config.workflow")
        assert "did you mean 'billing'?" in problem.message
        assert (await problem_of(workflows, calls("order", "zzz"))).message.endswith(
            "submit it first"
        )
        assert (await problem_of(workflows, calls("order", "billing@9"))).code == "unknown_workflow"
        await workflows.put(calls("order", "zzz"), allow_unknown_workflows=True)
        await workflows.put(calls("order", "billing@1", "billing"))

    with_workflows(scenario)


def test_an_input_that_never_fits_is_refused_and_one_with_references_is_not() -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}

    async def scenario(workflows: Workflows) -> None:
        await workflows.put({**calls("billing"), "input_schema": schema})
        bad = calls("order", "billing", config={"workflow": "billing", "input": {"sum": "x"}})
        problem = await problem_of(workflows, bad)
        assert (problem.code, problem.path) == ("bad_child_input", "nodes[0].config.input")
        assert (await problem_of(workflows, calls("order", "billing"))).code == "bad_child_input"
        for value in (3, "{{ input.sum }}"):
            config = {"workflow": "billing", "input": {"sum": value}}
            await workflows.put(calls("order", "billing", config=config))

    with_workflows(scenario)


def test_workflows_that_run_each_other_in_a_circle_are_refused_unless_they_say_how_deep() -> None:
    async def scenario(workflows: Workflows) -> None:
        assert (await problem_of(workflows, calls("self", "self"))).code == "workflow_cycle"
        await workflows.put(calls("self", "self", max_depth=3))
        assert (await problem_of(workflows, calls("self", "self"))).code == "workflow_cycle"

        await workflows.put(calls("a"))
        await workflows.put(calls("b", "a"))
        await workflows.put(calls("c", "b"))
        problem = await problem_of(workflows, calls("a", "c"))
        assert problem.code == "workflow_cycle"
        assert "'a' → 'c' → 'b' → 'a'" in problem.message
        await workflows.put(calls("a", "c", max_depth=5))

    with_workflows(scenario)


def test_children_of_children_that_go_too_deep_are_refused() -> None:
    async def scenario(workflows: Workflows) -> None:
        await workflows.put(calls("level-0"))
        for level in range(1, 9):
            await workflows.put(calls(f"level-{level}", f"level-{level - 1}"))
        problem = await problem_of(workflows, calls("level-9", "level-8"))
        assert problem.code == "too_deep"
        assert "9 levels" in problem.message
        await workflows.put(calls("level-9", "level-8", max_depth=12))

    with_workflows(scenario)
