"""A document to a `Definition`: one name for every spelling, each field checked on its own.

Public documents of this kind come in several dialects; the tables below are the whole list of what is accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from penstock.definition.fields import CONTROL_CHARACTER, Reader
from penstock.definition.model import (
    HANDLER_ALIASES,
    TRIGGER_RULES,
    Definition,
    Node,
    Retry,
)
from penstock.definition.problems import Problems, did_you_mean

WORKFLOW_FIELDS = {
    "name", "description", "timeout_seconds", "timeout", "on_failure", "input_schema", "input", "defaults", "dag",
    "nodes", "labels", "metadata", "created_by", "version", "retry", "retry_policy", "retry_config",
}  # fmt: skip
NODE_FIELDS = {
    "id", "handler", "type", "dependencies", "depends_on", "config", "condition", "trigger_rule", "retry",
    "retry_policy", "retry_config", "timeout_seconds", "timeout", "queue", "queue_timeout_seconds", "optional",
    "on_dependency_failure", "labels", "metadata", "description", "created_by", "name",
}  # fmt: skip
DEFAULTS_FIELDS = {"retry", "retry_policy", "retry_config", "timeout_seconds", "timeout", "queue",
                   "queue_timeout_seconds"}  # fmt: skip
RETRY_FIELDS = {
    "max_attempts": "max_attempts",
    "max_retries": "max_retries",
    "initial_delay_seconds": "initial_delay_seconds",
    "delay_seconds": "initial_delay_seconds",
    "initial_backoff_seconds": "initial_delay_seconds",
    "initial_delay": "initial_delay_seconds",
    "multiplier": "multiplier",
    "backoff_multiplier": "multiplier",
    "exponential_base": "multiplier",
    "max_delay_seconds": "max_delay_seconds",
    "max_backoff_seconds": "max_delay_seconds",
    "max_delay": "max_delay_seconds",
    "jitter_seconds": "jitter_seconds",
    "jitter": "jitter_seconds",
}
MAX_ID_LENGTH = 256


def read(document: Any, problems: Problems, *, max_nodes: int = 100_000) -> Definition | None:
    """None when there is nothing that could be looked at further; mistakes are in `problems` either way."""
    if not isinstance(document, dict):
        problems.error("not_an_object", "", f"a workflow is an object with nodes, not {_kind(document)}")
        return None
    reader = Reader(document, "", problems)
    reader.unknown(WORKFLOW_FIELDS)
    raw_nodes, path = _raw_nodes(document, problems)
    if len(raw_nodes) > max_nodes:
        problems.error("too_large", path, f"{len(raw_nodes):,} nodes; the limit is {max_nodes:,}")
        return None
    defaults = _defaults(document, problems)
    nodes = [node for i, raw in enumerate(raw_nodes) if (node := _node(raw, f"{path}[{i}]", defaults, problems))]
    return Definition(
        name=reader.text("name", max_length=MAX_ID_LENGTH) or _name_from_content(document),
        nodes=nodes,
        description=reader.text("description", limit_controls=False),
        timeout_seconds=reader.seconds("timeout_seconds", "timeout"),
        on_failure=reader.choice("on_failure", ("fail_fast", "continue")) or "fail_fast",
        input_schema=reader.value("input_schema", (dict, bool)),
        input=reader.value("input", (dict,)) or {},
        labels=reader.value("labels", (dict,)) or {},
        document=document,
    )


def _raw_nodes(document: dict[str, Any], problems: Problems) -> tuple[list[Any], str]:
    dag, path = document.get("dag"), "dag.nodes"
    if dag is None:
        dag, path = document, "nodes"
    elif not isinstance(dag, dict):
        problems.error("bad_value", "dag", f'"dag" must be an object with "nodes", not {_kind(dag)}')
        return [], path
    nodes = dag.get("nodes")
    if isinstance(nodes, dict):
        # a mapping of id to node: the same list, written by hand in YAML
        nodes = [{"id": key, **value} if isinstance(value, dict) else value for key, value in nodes.items()]
    if nodes is None or nodes == []:
        problems.error("empty_workflow", path, 'a workflow needs at least one node in "nodes"')
        return [], path
    if not isinstance(nodes, list):
        problems.error("bad_value", path, f'"nodes" must be a list, not {_kind(nodes)}')
        return [], path
    return nodes, path


def _defaults(document: dict[str, Any], problems: Problems) -> dict[str, Any]:
    reader = Reader(document.get("defaults") or {}, "defaults", problems)
    reader.unknown(DEFAULTS_FIELDS)
    top = Reader(document, "", problems)
    return {
        "retry": _retry(reader, None) or _retry(top, None),
        "timeout_seconds": reader.seconds("timeout_seconds", "timeout"),
        "queue": reader.text("queue"),
        "queue_timeout_seconds": reader.seconds("queue_timeout_seconds"),
    }


def _node(raw: Any, path: str, defaults: dict[str, Any], problems: Problems) -> Node | None:
    if not isinstance(raw, dict):
        problems.error("bad_value", path, f"a node is an object, not {_kind(raw)}")
        return None
    node_id = raw.get("id")
    if not isinstance(node_id, str) or not _good_id(node_id):
        problems.error("bad_id", f"{path}.id", _bad_id_message(node_id))
        return None
    reader = Reader(raw, path, problems, node_id)
    reader.unknown(NODE_FIELDS)
    handler = reader.text("handler", "type", max_length=MAX_ID_LENGTH) or ""
    if not handler:
        problems.error("missing_handler", f"{path}.handler", 'the node has no "handler"', node_id)
    return Node(
        id=node_id,
        handler=HANDLER_ALIASES.get(handler, handler),
        path=path,
        dependencies=_dependencies(reader),
        config=reader.value("config", (dict,)) or {},
        condition=_condition(reader),
        trigger_rule=reader.choice("trigger_rule", TRIGGER_RULES) or "all_success",
        retry=_retry(reader, defaults["retry"]),
        timeout_seconds=reader.seconds("timeout_seconds", "timeout", default=defaults["timeout_seconds"]),
        queue=reader.text("queue", max_length=MAX_ID_LENGTH) or defaults["queue"],
        queue_timeout_seconds=reader.seconds("queue_timeout_seconds", default=defaults["queue_timeout_seconds"]),
        optional=bool(reader.value("optional", (bool,))),
        on_dependency_failure=reader.choice("on_dependency_failure", ("skip", "fail")) or "skip",
    )


def _good_id(node_id: str) -> bool:
    return 0 < len(node_id) <= MAX_ID_LENGTH and not CONTROL_CHARACTER.search(node_id)


def _bad_id_message(node_id: Any) -> str:
    if node_id is None:
        return 'the node has no "id"'
    if not isinstance(node_id, str):
        return f'"id" must be text, not {_kind(node_id)}'
    if not node_id:
        return '"id" must not be empty'
    if len(node_id) > MAX_ID_LENGTH:
        return f'"id" has {len(node_id)} characters; the limit is {MAX_ID_LENGTH}'
    return '"id" must not contain control characters'


def _dependencies(reader: Reader) -> tuple[str, ...]:
    name, value = reader.pick("dependencies", "depends_on")
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        reader.bad(name, "must be a list of node ids")
        return ()
    return tuple(dict.fromkeys(value))


def _condition(reader: Reader) -> str | None:
    value = reader.value("condition", (str, bool))
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or value.strip() else None


def _retry(reader: Reader, default: Retry | None) -> Retry | None:
    name, value = reader.pick("retry", "retry_policy", "retry_config")
    if value is None:
        return default
    if not isinstance(value, dict):
        reader.bad(name, f"must be an object, not {_kind(value)}")
        return default
    inner = Reader(value, f"{reader.path}.{name}" if reader.path else name, reader.problems, reader.node_id)
    inner.unknown(set(RETRY_FIELDS))
    found: dict[str, Any] = {}
    for spelling, field in RETRY_FIELDS.items():
        if value.get(spelling) is not None:
            found[field] = _retry_value(inner, spelling, field)
    if "max_retries" in found:
        retries = found.pop("max_retries")
        found.setdefault("max_attempts", None if retries is None else retries + 1)
    kept = {field: item for field, item in found.items() if item is not None}
    base = default or Retry()
    return Retry(**{**{name: getattr(base, name) for name in Retry.__struct_fields__}, **kept})


def _retry_value(inner: Reader, spelling: str, field: str) -> Any:
    value = inner.raw[spelling]
    if field == "jitter_seconds" and isinstance(value, bool):
        return Retry().jitter_seconds if value else 0.0
    if field in ("max_attempts", "max_retries"):
        return inner.integer(spelling, least=1 if field == "max_attempts" else 0, most=1000)
    least = 1.0 if field == "multiplier" else 0.0
    return inner.number(spelling, least=least)


def _name_from_content(document: dict[str, Any]) -> str:
    return f"workflow-{content_hash(document)[:12]}"


def content_hash(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _kind(value: Any) -> str:
    names: list[tuple[type | tuple[type, ...], str]] = [
        (type(None), "null"), (bool, "true or false"), (str, "text"), ((int, float), "a number"), (list, "a list"),
    ]  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "an object")


def check_handlers(nodes: list[Node], known: Callable[[str], bool], names: list[str], problems: Problems) -> None:
    for node in nodes:
        if node.handler and not known(node.handler):
            hint = did_you_mean(node.handler, names) or "; register it with @penstock.handler or name its module"
            message = f"no handler is called {node.handler!r}{hint}"
            problems.error("unknown_handler", f"{node.path}.handler", message, node.id)
