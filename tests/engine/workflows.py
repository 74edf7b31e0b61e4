"""Random workflows: once as the model's nodes, and as the document that says the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.definition.plan import Plan, compile_document
from tests.engine.choices import Choices
from tests.engine.model import Condition, Kind, Model, Node, Reference, Rule

TASK_OUTPUTS: list[dict[str, Any]] = [
    {"value": 1, "result": True}, {"value": 5, "result": False}, {"value": 5}, {"other": 0},
]  # fmt: skip
GIVEN: list[dict[str, Any]] = [{}, {"value": 9}, {"result": True}]
KINDS: tuple[Kind, ...] = (
    "task",
    "task",
    "task",
    "task",
    "task",
    "decision",
    "decision",
    "output",
    "input",
)
RULES: tuple[Rule, ...] = (
    "all_success",
    "all_success",
    "none_failed",
    "all_done",
    "one_success",
    "one_success",
    "one_failed",
    "one_failed",
)
BOTH = (True, False)
OPERATORS = ("==", "!=", ">", ">=", "<", "<=")


@dataclass(frozen=True, repr=False)
class Workflow:
    nodes: tuple[Node, ...]
    fail_fast: bool
    timeout: float | None
    input_value: dict[str, Any]
    plan: Plan

    def __repr__(self) -> str:
        lines = (f"    {node.name}: {_unusual(node)}" for node in self.nodes)
        workflow = (
            f"fail_fast={self.fail_fast}, timeout={self.timeout}, input_value={self.input_value}"
        )
        return "\n".join((f"Workflow({workflow})", *lines))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 -- Hypothesis'
        printer.text(repr(self))

    def model(self, backstop: float, reused: dict[str, Any]) -> Model:
        return Model(
            self.nodes,
            fail_fast=self.fail_fast,
            timeout=self.timeout,
            input_value=self.input_value,
            backstop=backstop,
            reused=reused,
        )


def _unusual(node: Node) -> dict[str, Any]:
    usual = Node(node.name)
    names = [
        name for name in Node.__dataclass_fields__ if getattr(node, name) != getattr(usual, name)
    ]
    return {name: getattr(node, name) for name in names}


def random_workflow(choose: Choices, nodes_max: int, *, queue_timeouts: bool = False) -> Workflow:
    nodes: list[Node] = []
    for i in range(1 + choose.below(nodes_max)):
        nodes.append(_random_node(f"n{i}", nodes, choose, queue_timeouts=queue_timeouts))
    fail_fast, timeout = choose.any_of(*BOTH, *BOTH[:1]), choose.any_of(None, None, None, 30.0)
    return Workflow(
        tuple(nodes),
        fail_fast,
        timeout,
        choose.any_of(*GIVEN),
        _plan(nodes, timeout, fail_fast=fail_fast),
    )


def _random_node(name: str, before: list[Node], choose: Choices, *, queue_timeouts: bool) -> Node:
    parents = choose.some_of([node.name for node in before], choose.any_of(1, 2, 0, 3))
    ancestors = _ancestors(parents, before)
    kind = choose.any_of(*KINDS)
    return Node(
        name=name,
        kind=kind,
        parents=tuple(parents),
        rule=choose.any_of(*RULES),
        optional=choose.one_in(6),
        fails_with_dependency=choose.one_in(3),
        condition=_random_condition(ancestors, choose),
        config=_random_config(kind, ancestors, choose),
        max_attempts=choose.any_of(1, 2, 3),
        initial_delay=choose.any_of(1.0, 2.0, 0.0),
        queue_timeout=choose.any_of(None, 3.0) if queue_timeouts else None,
    )


def _ancestors(parents: list[str], before: list[Node]) -> list[str]:
    ids = set(parents)
    for node in reversed(before):
        if node.name in ids:
            ids.update(node.parents)
    return sorted(ids)


def _random_condition(ancestors: list[str], choose: Choices) -> Condition | None:
    if not ancestors or not choose.one_in(4):
        return None
    reference = Reference(choose.any_of(*ancestors), "result", choose.any_of(*BOTH, *BOTH, None))
    return Condition(reference, choose.any_of(*BOTH))


def _random_config(kind: str, ancestors: list[str], choose: Choices) -> dict[str, Any]:
    if kind == "decision":
        value_a, operator = _random_value(ancestors, choose), choose.any_of(*OPERATORS)
        return {
            "value_a": value_a,
            "operator": operator,
            "value_b": choose.any_of(1, 5, 5, 5, "text"),
        }
    return {"value": _random_value(ancestors, choose)} if choose.one_in(2) else {}


def _random_value(ancestors: list[str], choose: Choices) -> Any:
    if not ancestors or choose.one_in(3):
        return choose.any_of(1, 5)
    return Reference(choose.any_of(*ancestors), "value", choose.any_of(0, 5, 1, 5, "text", None))


def _plan(nodes: list[Node], timeout: float | None, *, fail_fast: bool) -> Plan:
    document = {
        "name": "random",
        "on_failure": "fail_fast" if fail_fast else "continue",
        "timeout_seconds": timeout,
        "nodes": [_written(node) for node in nodes],
    }
    return compile_document(document).plan


def _written(node: Node) -> dict[str, Any]:
    return {
        "id": node.name,
        "handler": "noop" if node.kind == "task" else node.kind,
        "dependencies": list(node.parents),
        "trigger_rule": node.rule,
        "optional": node.optional,
        "on_dependency_failure": "fail" if node.fails_with_dependency else "skip",
        "condition": _written_condition(node.condition),
        "config": {key: _written_value(value) for key, value in node.config.items()},
        "retry": {
            "max_attempts": node.max_attempts,
            "initial_delay_seconds": node.initial_delay,
            "multiplier": node.multiplier,
            "max_delay_seconds": node.max_delay,
            "jitter_seconds": 0,
        },
        "timeout_seconds": node.timeout,
        "queue_timeout_seconds": node.queue_timeout,
    }


def _written_condition(condition: Condition | None) -> str | None:
    if condition is None:
        return None
    if condition.reference.fallback is None:
        reference = condition.reference
        return f"{reference.node}.{reference.key} == {json.dumps(condition.wanted)}"
    return f"{_written_value(condition.reference)} == {condition.wanted}"


def _written_value(value: Any) -> Any:
    if not isinstance(value, Reference):
        return value
    fallback = "" if value.fallback is None else f" ?? {json.dumps(value.fallback)}"
    return f"{{{{ {value.node}.{value.key}{fallback} }}}}"
