"""Random workflows: once as the model's nodes, and as the document that says the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from penstock.definition.plan import Plan, compile_document
from tests.engine.model import Condition, Kind, Model, Node, Reference, Rule

TASK_OUTPUTS: list[dict[str, Any]] = [{"value": 1}, {"value": 5, "result": True}, {"result": False}, {"other": 0}]
GIVEN: list[dict[str, Any]] = [{}, {"value": 9}, {"result": True}]
KINDS: tuple[Kind, ...] = ("task", "task", "task", "task", "decision", "decision", "output", "input")
RULES: tuple[Rule, ...] = ("all_success", "all_success", "none_failed", "all_done", "one_success", "one_failed")
OPERATORS = ("==", "!=", ">", ">=", "<", "<=")
MOST_NODES = 8


@dataclass(frozen=True, repr=False)
class Workflow:
    nodes: tuple[Node, ...]
    fail_fast: bool
    timeout: float | None
    given: dict[str, Any]
    plan: Plan

    def __repr__(self) -> str:
        lines = (f"    {node.name}: {_unusual(node)}" for node in self.nodes)
        workflow = f"fail_fast={self.fail_fast}, timeout={self.timeout}, given={self.given}"
        return "\n".join((f"Workflow({workflow})", *lines))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 -- Hypothesis calls it
        printer.text(repr(self))

    def model(self, backstop: float) -> Model:
        return Model(self.nodes, fail_fast=self.fail_fast, timeout=self.timeout, given=self.given, backstop=backstop)


def _unusual(node: Node) -> dict[str, Any]:
    usual = Node(node.name)
    names = [name for name in Node.__dataclass_fields__ if getattr(node, name) != getattr(usual, name)]
    return {name: getattr(node, name) for name in names}


@st.composite
def workflows(draw: st.DrawFn, *, queue_timeouts: bool = False) -> Workflow:
    nodes: list[Node] = []
    for i in range(draw(st.integers(1, MOST_NODES))):
        nodes.append(draw(_nodes(f"n{i}", nodes, queue_timeouts=queue_timeouts)))
    fail_fast = draw(st.booleans())
    timeout = draw(st.sampled_from((None, None, None, 30.0)))
    return Workflow(
        tuple(nodes), fail_fast, timeout, draw(st.sampled_from(GIVEN)), _plan(nodes, timeout, fail_fast=fail_fast)
    )


@st.composite
def _nodes(draw: st.DrawFn, name: str, before: list[Node], *, queue_timeouts: bool) -> Node:
    names = [node.name for node in before]
    parents = draw(_some_of(names))
    ancestors = _ancestors(parents, before)
    kind = draw(st.sampled_from(KINDS))
    return Node(
        name=name,
        kind=kind,
        parents=tuple(parents),
        rule=draw(st.sampled_from(RULES)),
        optional=draw(st.sampled_from((False, False, False, True))),
        fails_with_dependency=draw(st.sampled_from((False, False, True))),
        condition=draw(_conditions(ancestors)),
        config=draw(_configs(kind, ancestors)),
        max_attempts=draw(st.integers(1, 3)),
        initial_delay=draw(st.sampled_from((0.0, 1.0, 2.0))),
        queue_timeout=draw(st.sampled_from((None, 3.0))) if queue_timeouts else None,
    )


@st.composite
def _some_of(draw: st.DrawFn, names: list[str]) -> list[str]:
    count = min(len(names), draw(st.sampled_from((1, 2, 0, 3))))
    return draw(st.lists(st.sampled_from(names), unique=True, min_size=count, max_size=count)) if count else []


def _ancestors(parents: list[str], before: list[Node]) -> list[str]:
    found = set(parents)
    for node in reversed(before):
        if node.name in found:
            found.update(node.parents)
    return sorted(found)


@st.composite
def _conditions(draw: st.DrawFn, ancestors: list[str]) -> Condition | None:
    if not ancestors or draw(st.integers(0, 2)):
        return None
    fallback = draw(st.sampled_from((None, True, False)))
    return Condition(Reference(draw(st.sampled_from(ancestors)), "result", fallback), draw(st.booleans()))


@st.composite
def _configs(draw: st.DrawFn, kind: str, ancestors: list[str]) -> dict[str, Any]:
    if kind == "decision":
        b = draw(st.sampled_from((1, 5, "text")))
        return {"value_a": draw(_values(ancestors)), "operator": draw(st.sampled_from(OPERATORS)), "value_b": b}
    return {"value": draw(_values(ancestors))} if draw(st.booleans()) else {}


@st.composite
def _values(draw: st.DrawFn, ancestors: list[str]) -> Any:
    if not ancestors or not draw(st.integers(0, 2)):
        return draw(st.sampled_from((1, 5, "text")))
    return Reference(draw(st.sampled_from(ancestors)), "value", draw(st.sampled_from((None, 0, 5, "text"))))


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
            "max_attempts": node.max_attempts, "initial_delay_seconds": node.initial_delay,
            "multiplier": node.multiplier, "max_delay_seconds": node.max_delay, "jitter_seconds": 0,
        },
        "timeout_seconds": node.timeout,
        "queue_timeout_seconds": node.queue_timeout,
    }  # fmt: skip


def _written_condition(condition: Condition | None) -> str | None:
    if condition is None:
        return None
    if condition.reference.fallback is None:
        return f"{condition.reference.node}.{condition.reference.key} == {json.dumps(condition.wanted)}"
    return f"{_written_value(condition.reference)} == {condition.wanted}"


def _written_value(value: Any) -> Any:
    if not isinstance(value, Reference):
        return value
    fallback = "" if value.fallback is None else f" ?? {json.dumps(value.fallback)}"
    return f"{{{{ {value.node}.{value.key}{fallback} }}}}"
