"""Random workflows: once as the model's nodes, and as the document that says the same."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

from penstock.definition.plan import Plan, compile_document
from tests.engine.choices import Choices
from tests.engine.model import (
    Catch,
    Condition,
    Kind,
    Model,
    Node,
    Position,
    Reference,
    Rule,
    StateOf,
    Sum,
)

TASK_OUTPUTS: list[dict[str, Any]] = [
    {"value": 1, "result": True}, {"value": 5, "result": False}, {"value": 5}, {"other": 0},
    {"list": [{"value": 1}, {"value": 5, "result": False}, 2]}, {"list": [], "value": 1},
]  # fmt: skip
ITEMS: tuple[Any, ...] = ({"value": 1, "result": True}, {"value": 5, "result": False}, {"x": 0})
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
WAITING_KINDS: tuple[Kind, ...] = (*KINDS[:4], "wait", "signal", "signal", "approval")
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
SIGNAL_NAMES = ("go", "stop")
OPERATORS = ("==", "!=", ">", ">=", "<", "<=")


@dataclass(frozen=True, repr=False)
class Workflow:
    nodes: tuple[Node, ...]
    fail_fast: bool
    timeout: float | None
    cleanup_timeout: float
    input_value: dict[str, Any]
    plan: Plan

    def __repr__(self) -> str:
        lines = (f"    {node.name}: {_unusual(node)}" for node in self.nodes)
        workflow = (
            f"fail_fast={self.fail_fast}, timeout={self.timeout},"
            f" cleanup_timeout={self.cleanup_timeout}, input_value={self.input_value}"
        )
        return "\n".join((f"Workflow({workflow})", *lines))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # noqa: FBT001 -- Hypothesis'
        printer.text(repr(self))

    def model(self, backstop: float, reused: dict[str, Any]) -> Model:
        return Model(
            self.nodes,
            fail_fast=self.fail_fast,
            timeout=self.timeout,
            cleanup_timeout=self.cleanup_timeout,
            input_value=self.input_value,
            backstop=backstop,
            reused=reused,
        )


def _unusual(node: Node) -> dict[str, Any]:
    usual = Node(node.name)
    names = [
        name for name in Node.__dataclass_fields__ if getattr(node, name) != getattr(usual, name)
    ]
    shown = {name: getattr(node, name) for name in names}
    if node.body:
        shown["body"] = {inner.name: _unusual(inner) for inner in node.body}
    return shown


def random_workflow(
    choose: Choices,
    nodes_max: int,
    *,
    queue_timeouts: bool = False,
    terminates: bool = False,
    catches: bool = False,
    maps: bool = False,
    loops: bool = False,
    waits: bool = False,
) -> Workflow:
    kinds = WAITING_KINDS if waits else KINDS
    if terminates:
        kinds = (*kinds, "terminate")
    nodes: list[Node] = []
    for i in range(1 + choose.below(nodes_max)):
        name = f"n{i}"
        if (maps or loops) and choose.one_in(3):
            region_kinds = WAITING_KINDS if waits else KINDS
            node = _random_region(name, nodes, choose, region_kinds, 3, loops=loops, maps=maps)
        else:
            node = _random_node(name, nodes, choose, kinds, queue_timeouts=queue_timeouts)
        if catches and node.parents and not choose.one_in(3):
            node = replace(node, catches=_random_catches(node.parents, choose))
        nodes.append(node)
    fail_fast, timeout = choose.any_of(*BOTH, *BOTH[:1]), choose.any_of(None, None, None, 30.0)
    cleanup_timeout = choose.any_of(300.0, 300.0, 6.0)
    return Workflow(
        tuple(nodes),
        fail_fast,
        timeout,
        cleanup_timeout,
        choose.any_of(*GIVEN),
        _plan(nodes, timeout, cleanup_timeout, fail_fast=fail_fast),
    )


def _random_region(
    name: str,
    before: list[Node],
    choose: Choices,
    kinds: tuple[Kind, ...],
    depth: int,
    *,
    maps: bool,
    loops: bool,
    around: tuple[str, ...] = (),
) -> Node:
    """A map or a loop; its body may refer to the item, and to what comes before the map."""
    parents = choose.some_of([node.name for node in before], choose.any_of(1, 0, 2))
    visible = (*_ancestors(parents, before), *around)
    is_loop = loops and (not maps or choose.one_in(2))
    names = tuple(dict.fromkeys(("previous" if is_loop else "item", *visible)))
    single = choose.one_in(4)
    body: list[Node] = []
    if single:
        inner = _random_node(name, [], choose, kinds, queue_timeouts=False, around=names)
        body.append(replace(inner, rule="all_success", optional=False, condition=None))
        timeout = math.inf if inner.kind in {"wait", "signal", "approval"} else 300.0
        body[0] = replace(body[0], fails_with_dependency=False, timeout=timeout)
        if inner.kind == "signal":
            limit = choose.any_of(2, 9)
            body[0] = replace(body[0], config=inner.config | {"timeout_seconds": limit})
    for i in range(0 if single else 1 + choose.below(3)):
        inner_name = f"{name}{'abc'[i]}"
        if depth and choose.one_in(4):
            arguments: Any = {"maps": maps, "loops": loops, "around": names}
            body.append(_random_region(inner_name, body, choose, kinds, depth - 1, **arguments))
        else:
            body.append(
                _random_node(inner_name, body, choose, kinds, queue_timeouts=False, around=names)
            )
    region = Node(
        name=name,
        kind="loop" if is_loop else "map",
        parents=tuple(parents),
        rule=choose.any_of(*RULES),
        optional=choose.one_in(6),
        fails_with_dependency=choose.one_in(3),
        condition=_random_condition(list(visible), choose),
        body=tuple(body),
        single=single,
        region_timeout=choose.any_of(None, None, None, 7.0),
    )
    if is_loop:
        return _random_loop(region, visible, choose)
    return _random_map(region, visible, choose, items_max=5 if depth > 1 else 2)


def _random_map(region: Node, around: tuple[str, ...], choose: Choices, items_max: int) -> Node:
    source = None
    if around and choose.one_in(3):
        source = Reference(choose.any_of(*around), "list", choose.any_of([], [2, {"value": 1}], 0))
    count = min(items_max, choose.any_of(2, 1, 3, 0, 5))
    collected = None
    if choose.one_in(4):
        names = ["item", *(node.name for node in region.body)]
        collected = Reference(choose.any_of(*names), "value", choose.any_of(5, 5, None))
    return replace(
        region,
        # a single node with `collect` is a body of one node
        single=region.single and collected is None,
        items=tuple(choose.any_of(*ITEMS) for _ in range(count)),
        source=source,
        key=choose.any_of(None, None, None, None, Reference("item", "value", "none")),
        collect=collected,
        result=choose.any_of("list", "list", "list", "counts", "none"),
        max_parallel=choose.any_of(1, 2, 9),
        policy=choose.any_of("fail_fast", "continue", "skip", "collect"),
        max_failures=choose.any_of(None, None, 0, 1),
        item_timeout=choose.any_of(None, None, None, 4.0),
    )


def _random_loop(region: Node, around: tuple[str, ...], choose: Choices) -> Node:
    names = [node.name for node in region.body]
    until: Condition | int = choose.any_of(1, 2, 3)
    if choose.one_in(3):
        reference = Reference(choose.any_of(*names), "result", choose.any_of(*BOTH, None))
        until = Condition(reference, choose.any_of(*BOTH))
    carried = None
    if choose.one_in(4):
        reference_to = choose.any_of("previous", *names)
        carried = Reference(reference_to, "value", choose.any_of(5, 5, None))
    initial: Any = choose.any_of(None, {"value": 5}, {"result": True})
    if around and choose.one_in(6):
        initial = Reference(choose.any_of(*around), "value", choose.any_of(5, None))
    return replace(
        region,
        single=region.single and carried is None,
        until=until,
        max_rounds=choose.any_of(2, 1, 3),
        every=choose.any_of(0.0, 0.0, 1.0, 3.0),
        multiplier=choose.any_of(1.0, 2.0),
        most_every=choose.any_of(None, 4.0),
        exhaustion=choose.any_of("fail", "continue"),
        round_failure=choose.any_of("fail", "continue"),
        collect=carried,
        initial=initial,
    )


def _random_node(
    name: str,
    before: list[Node],
    choose: Choices,
    kinds: tuple[Kind, ...],
    *,
    queue_timeouts: bool,
    around: tuple[str, ...] = (),
) -> Node:
    parents = choose.some_of([node.name for node in before], choose.any_of(1, 2, 0, 3))
    own = _ancestors(parents, before)
    ancestors = [*own, *around]
    kind = choose.any_of(*kinds)
    return Node(
        name=name,
        kind=kind,
        parents=tuple(parents),
        rule=choose.any_of(*RULES),
        optional=choose.one_in(6),
        fails_with_dependency=choose.one_in(3),
        condition=_random_condition(ancestors, choose),
        config=_random_config(kind, ancestors, own, choose),
        max_attempts=choose.any_of(1, 2, 3),
        initial_delay=choose.any_of(1.0, 2.0, 0.0),
        queue_timeout=choose.any_of(None, 3.0) if queue_timeouts else None,
        retried=choose.any_of((), (), (), ("http",), ("handler", "timeout")),
        not_retried=choose.any_of((), (), (), ("http",), ("lost", "timeout")),
    )


def _random_catches(parents: tuple[str, ...], choose: Choices) -> tuple[Catch, ...]:
    caught = choose.some_of(list(parents), 1 + choose.below(len(parents)))
    return tuple(
        Catch(parent, choose.any_of((), (), ("http",), ("handler", "config"))) for parent in caught
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


def _random_config(
    kind: str, ancestors: list[str], own: list[str], choose: Choices
) -> dict[str, Any]:
    if kind == "terminate":
        state = choose.any_of("COMPLETED", "FAILED")
        return {"state": state, "output": _random_value(ancestors, own, choose)}
    if kind == "decision":
        value_a, operator = _random_value(ancestors, own, choose), choose.any_of(*OPERATORS)
        return {
            "value_a": value_a,
            "operator": operator,
            "value_b": choose.any_of(1, 5, 5, 5, "text"),
        }
    if kind == "wait":
        seconds = (
            choose.any_of(0, 2, 9) if choose.one_in(2) else _random_value(ancestors, own, choose)
        )
        return {"seconds": seconds}
    if kind == "approval":
        return {
            "title": "May I?",
            "needed": choose.any_of(1, 2),
            "expires_seconds": choose.any_of(2, 9),
            "on_expire": choose.any_of("reject", "approve", "fail"),
            "on_reject": choose.any_of("continue", "fail"),
        }
    if kind == "signal":
        options = {
            "name": choose.any_of(*SIGNAL_NAMES),
            "correlation": choose.any_of(None, None, "a"),
            "count": choose.any_of(None, None, 2),
            "timeout_seconds": choose.any_of(None, 2, 9),
            "on_timeout": choose.any_of("continue", None),
        }
        return {key: value for key, value in options.items() if value is not None}
    return {"value": _random_value(ancestors, own, choose)} if choose.one_in(2) else {}


def _random_value(ancestors: list[str], own: list[str], choose: Choices) -> Any:
    """`own`: the ancestors in the same body, which may be asked how they have ended."""
    if not ancestors or choose.one_in(3):
        return choose.any_of(1, 5)
    if choose.one_in(8) and "item" in ancestors:
        return Position("index")
    if choose.one_in(8) and "previous" in ancestors:
        return Position("round")
    if own and choose.one_in(6):
        return StateOf(choose.any_of(*own))
    if choose.one_in(6):
        return Sum(choose.any_of(*ancestors), choose.any_of(*ancestors))
    return Reference(choose.any_of(*ancestors), "value", choose.any_of(0, 5, 1, 5, "text", None))


def _plan(
    nodes: list[Node], timeout: float | None, cleanup_timeout: float, *, fail_fast: bool
) -> Plan:
    document = {
        "name": "random",
        "on_failure": "fail_fast" if fail_fast else "continue",
        "timeout_seconds": timeout,
        "cleanup_timeout_seconds": cleanup_timeout,
        "nodes": [_written(node) for node in nodes],
    }
    return compile_document(document).plan


def _written(node: Node) -> dict[str, Any]:
    if node.is_region:
        return _written_region(node)
    return {
        "id": node.name,
        "handler": "noop" if node.kind == "task" else node.kind,
        "dependencies": list(node.parents),
        "trigger_rule": None if node.catches else node.rule,
        "catches": _written_catches(node),
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
            "on": list(node.retried) or None,
            "not_on": list(node.not_retried) or None,
        },
        "timeout_seconds": node.timeout,
        "queue_timeout_seconds": node.queue_timeout,
    }


def _written_region(node: Node) -> dict[str, Any]:
    inner = [_written(inner) for inner in node.body]
    if node.single or (len(node.body) == 1 and node.body[0].name == node.name):
        own = inner[0]
        body = {name: own[name] for name in ("handler", "config", "retry")}
    else:
        body = {"nodes": inner}
    written = {
        "id": node.name,
        "dependencies": list(node.parents),
        "trigger_rule": None if node.catches else node.rule,
        "catches": _written_catches(node),
        "optional": node.optional,
        "on_dependency_failure": "fail" if node.fails_with_dependency else "skip",
        "condition": _written_condition(node.condition),
        "timeout_seconds": node.region_timeout,
        **body,
    }
    return written | (_written_loop(node) if node.kind == "loop" else _written_map(node))


def _written_map(node: Node) -> dict[str, Any]:
    return {
        "for_each": list(node.items) if node.source is None else _written_value(node.source),
        "max_parallel": node.max_parallel,
        "on_item_failure": node.policy,
        "max_failures": node.max_failures,
        "key": _written_value(node.key),
        "collect": _written_value(node.collect),
        "output": node.result,
        "item_timeout_seconds": node.item_timeout,
    }


def _written_loop(node: Node) -> dict[str, Any]:
    until = node.until
    repeat = {
        "until": f"round >= {until}" if isinstance(until, int) else _written_condition(until),
        "max_rounds": node.max_rounds,
        "every_seconds": node.every,
        "multiplier": node.multiplier,
        "most_every_seconds": node.most_every,
        "on_exhausted": node.exhaustion,
        "on_round_failure": node.round_failure,
        "initial": _written_value(node.initial),
        "carry": _written_value(node.collect),
    }
    return {"repeat": {key: value for key, value in repeat.items() if value is not None}}


def _written_catches(node: Node) -> list[dict[str, Any]]:
    return [{"node": catch.node, "on": list(catch.categories) or None} for catch in node.catches]


def _written_condition(condition: Condition | None) -> str | None:
    if condition is None:
        return None
    if condition.reference.fallback is None:
        reference = condition.reference
        return f"{reference.node}.{reference.key} == {json.dumps(condition.wanted)}"
    return f"{_written_value(condition.reference)} == {condition.wanted}"


def _written_value(value: Any) -> Any:
    if isinstance(value, StateOf):
        return f"{{{{ nodes.{value.node}.state }}}}"
    if isinstance(value, Position):
        return f"{{{{ {value.name} }}}}"
    if isinstance(value, Sum):
        return f"{{{{ {value.left}.value + {value.right}.value }}}}"
    if not isinstance(value, Reference):
        return value
    fallback = "" if value.fallback is None else f" ?? {json.dumps(value.fallback)}"
    return f"{{{{ {value.node}.{value.key}{fallback} }}}}"
