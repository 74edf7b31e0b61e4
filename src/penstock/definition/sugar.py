"""Sugar: fields that are read as others. `switch` becomes conditions, `finally` a trigger rule.

Both are gone once a document is read; nothing after it knows them.

A `switch` is a node whose output is the value that it looks at, and the nodes of its cases get a
condition on that. `finally` without dependencies comes after everything else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.definition.fields import Reader
from penstock.definition.model import NOTIFY, NOTIFY_SUFFIX, Node
from penstock.definition.problems import Problems, path_to, quoted

SWITCH_HANDLER = "transform"
DEFAULT = "default"
NOTIFY_SECONDS = 30.0
"""How long one attempt to tell others may take."""
NOTIFIED_KEYS = ("title", "text", "form", "approvers", "expires_seconds")
"""What others are told of an approval."""
FINALLY_MAX = 10
"""Nodes with `finally` and without dependencies: each comes after every sink."""


class Switch(msgspec.Struct):
    """A switch as it is written, until its cases are conditions."""

    node_id: str
    path: str
    cases: dict[str, tuple[str, ...]]


def read_switch(reader: Reader, node_id: str) -> tuple[dict[str, Any], Switch] | None:
    """The config of a switch, and its cases; None if the node is none."""
    source = reader.raw.get("switch")
    cases = reader.raw.get("cases")
    if source is None:
        if cases is not None:
            _cases(reader, cases)
            _conflict(reader, "cases", '"cases" has no meaning without "switch"')
        return None
    if not isinstance(source, str) or not source.strip():
        reader.bad("switch", "must be a CEL expression, such as order.kind")
        return None
    for name in ("handler", "type", "config"):
        if reader.raw.get(name) is not None:
            _conflict(reader, name, f'"{name}" can\'t stand beside "switch"')
    template = source if "{{" in source else f"{{{{ {source} }}}}"
    return {"value": template}, Switch(node_id, reader.path, _cases(reader, cases))


def _cases(reader: Reader, cases: Any) -> dict[str, tuple[str, ...]]:
    if cases is None or cases == {}:
        message = 'a switch needs "cases": an object that maps values to node ids'
        reader.problems.error("missing_cases", reader.path, message, reader.node_id)
        return {}
    if not isinstance(cases, dict):
        reader.bad("cases", "must be an object that maps values to node ids")
        return {}
    read: dict[str, tuple[str, ...]] = {}
    for value, node_ids in cases.items():
        listed = [node_ids] if isinstance(node_ids, str) else node_ids
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            reader.bad("cases", f"must map {quoted(value)} to a list of node ids")
            continue
        read[value] = tuple(listed)
    return read


def _conflict(reader: Reader, name: str, message: str) -> None:
    reader.problems.error("conflicting_fields", reader.path_of(name), message, reader.node_id)


def apply_switches(nodes: Iterable[Node], switches: Iterable[Switch], problems: Problems) -> None:
    """Put the conditions of all cases on their nodes."""
    by_id = {node.id: node for node in nodes}
    for switch in switches:
        chosen: dict[str, list[str]] = {}
        for value, node_ids in switch.cases.items():
            for i, node_id in enumerate(node_ids):
                if node_id not in by_id or node_id == switch.node_id:
                    path = path_to(switch.path, ("cases", value, i))
                    hint = problems.did_you_mean(node_id, by_id)
                    message = f"the case names {quoted(node_id)}, which isn't another node{hint}"
                    problems.error("unknown_case", path, message, switch.node_id)
                else:
                    chosen.setdefault(node_id, []).append(value)
        for node_id, values in chosen.items():
            _put_condition(by_id[node_id], switch, values)


def _put_condition(node: Node, switch: Switch, values: list[str]) -> None:
    looked_at = f"nodes[{json.dumps(switch.node_id, ensure_ascii=False)}].result"
    named = [value for value in values if value != DEFAULT]
    conditions: list[str] = []
    if named:
        conditions.append(f"{looked_at} in {_literals(named)}")
    if DEFAULT in values:
        others = [value for value in switch.cases if value != DEFAULT]
        conditions.append(f"!({looked_at} in {_literals(others)})")
    condition = " || ".join(conditions)
    if node.condition is not None:
        condition = f"({node.condition}) && ({condition})"
    node.condition = condition
    if switch.node_id not in node.dependencies:
        node.dependencies = (*node.dependencies, switch.node_id)


def _literals(values: Iterable[str]) -> str:
    """The values as a list in CEL: `1` means the text and the number."""
    literals: list[str] = []
    for value in values:
        literals.append(json.dumps(value, ensure_ascii=False))
        if _is_scalar(value):
            literals.append(value)
    return f"[{', '.join(literals)}]"


def _is_scalar(text: str) -> bool:
    if text in ("true", "false", "null"):
        return True
    try:
        number = json.loads(text)
    except ValueError:
        return False
    return isinstance(number, (int, float)) and abs(number) < 2**53


def finish_last(nodes: list[Node], problems: Problems) -> None:
    """Let nodes with `finally` that name no dependencies come after everything else."""
    last = [node for node in nodes if node.is_last and not (node.dependencies or node.catches)]
    if len(last) > FINALLY_MAX:
        message = (
            f"more than {FINALLY_MAX} nodes with finally name no dependencies;"
            " let them name the nodes that they come after"
        )
        problems.error("too_many_finally", last[FINALLY_MAX].path, message, last[FINALLY_MAX].id)
        return
    if not last:
        return
    after = _after_last(nodes)
    others = [node for node in nodes if node.id not in after]
    parents = {parent for node in others for parent in _parents(node)}
    sinks = tuple(node.id for node in others if node.id not in parents)
    for node in last:
        node.dependencies = sinks


def _after_last(nodes: Iterable[Node]) -> set[str]:
    """Nodes with `finally`, and all that come after one."""
    children: dict[str, list[str]] = {}
    for node in nodes:
        for parent in _parents(node):
            children.setdefault(parent, []).append(node.id)
    after: set[str] = set()
    left = [node.id for node in nodes if node.is_last]
    while left:
        node_id = left.pop()
        if node_id not in after:
            after.add(node_id)
            left += children.get(node_id, [])
    return after


def take_notify(handler: str, config: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The config of a node without `notify`, and that of an approval."""
    if handler != "approval" or config.get("notify") is None:
        return config, None
    return {name: value for name, value in config.items() if name != "notify"}, config["notify"]


def add_notifications(nodes: list[Node], problems: Problems) -> None:
    """Beside each approval with `notify`, put a node that starts when it does, and tells others.

    It is a task like any other, so that it is retried and seen. Nothing comes after it, and its
    failure is a dead letter that fails nothing else.
    """
    ids = {node.id for node in nodes}
    for node in list(nodes):
        if node.notify is None:
            continue
        path = path_to(node.path, ("config", "notify"))
        name = f"{node.id}{NOTIFY_SUFFIX}"
        if name in ids:
            message = f"a node is called {quoted(name)}, as the notification is; rename that"
            problems.error("name_taken", path, message, node.id)
            continue
        if node.catches:
            message = '"notify" can\'t stand beside "catches"; put the approval behind such a node'
            problems.error("conflicting_fields", path, message, node.id)
            continue
        config = {key: node.config[key] for key in NOTIFIED_KEYS if key in node.config}
        nodes.append(
            Node(
                id=name,
                handler=NOTIFY,
                path=node.path,
                dependencies=node.dependencies,
                dependencies_field=node.dependencies_field,
                condition=node.condition,
                trigger_rule=node.trigger_rule,
                config={**config, "notify": node.notify},
                timeout_seconds=NOTIFY_SECONDS,
                optional=True,
                dead_letter=True,
            )
        )
        problems.twins[name] = path


def _parents(node: Node) -> list[str]:
    return [*node.dependencies, *(catch.node_id for catch in node.catches)]
