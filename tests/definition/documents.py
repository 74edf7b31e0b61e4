"""What these tests build and judge documents with."""

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import pytest

from penstock.definition import Problem, compile_document
from penstock.definition.handler_configs import ConfigRules
from penstock.definition.plan import Compiled, Plan
from penstock.definition.template import Missing
from penstock.errors import InvalidWorkflow


def node(name: str, *dependencies: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "handler": "noop", "dependencies": list(dependencies), **fields}


def workflow(*nodes: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "w", **fields, "nodes": list(nodes)}


def compiled(*nodes: Any, strict: bool = False, **fields: Any) -> Compiled:
    return compile_document(workflow(*nodes, **fields), strict=strict)


def plan_of(*nodes: Any, **fields: Any) -> Plan:
    """The plan of a workflow whose handlers need no sensible configs."""
    rules = ConfigRules(is_lenient=True)
    return compile_document(workflow(*nodes, **fields), config_rules=rules).plan


def problems_of(document: Any, **options: Any) -> list[Problem]:
    with pytest.raises(InvalidWorkflow) as refused:
        compile_document(document, **options)
    return refused.value.problems


def problem_of(*nodes: Any, **fields: Any) -> Problem:
    """The one problem of a workflow with these nodes."""
    problems = problems_of(workflow(*nodes, **fields))
    assert len(problems) == 1, problems
    return problems[0]


class Outputs:
    """Where references look, in a test."""

    def __init__(
        self,
        outputs: Mapping[str, Any],
        input_value: Any = None,
        aliases: Mapping[str, Mapping[str, str]] | None = None,
        outcomes: Mapping[str, Mapping[str, Any]] | None = None,
        ending: Mapping[str, Any] | None = None,
    ) -> None:
        self._outcomes = outcomes or {}
        self.ending = ending or {"state": "COMPLETED", "error": None}
        self._outputs = outputs
        self._input_value = input_value
        self._aliases = aliases or {}

    def output(self, node_id: str) -> Any:
        if node_id not in self._outputs and node_id in self._outcomes:
            raise Missing(f"{node_id!r} has no output")
        return self._outputs[node_id]

    def outcome(self, node_id: str) -> Mapping[str, Any]:
        return self._outcomes.get(node_id, {"state": "COMPLETED", "error": None})

    def aliases(self, node_id: str) -> Mapping[str, str]:
        return self._aliases.get(node_id, {})

    @property
    def input(self) -> Any:
        return {} if self._input_value is None else self._input_value

    @property
    def execution(self) -> Mapping[str, Any]:
        return {"id": "the-execution", "workflow": "the-workflow", "version": 3}


def work(function: Callable[[], Any]) -> int:
    """How many lines and calls a function runs, which doesn't depend on the machine."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return steps


def assert_linear(task: Callable[[int], Callable[[], Any]], small: int) -> None:
    """Eight times the size may hardly be more than eight times the work of `task(size)`."""
    task(small)()  # imports and caches are paid for once
    assert work(task(8 * small)) < 10 * work(task(small))
