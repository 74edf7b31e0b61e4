"""A document to a `Definition`: one name for every spelling, each field checked on its own.

Public documents of this kind come in several dialects; `document_fields` is the whole list of what
is accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any

from penstock.definition.document_fields import (
    ATTEMPTS_MAX,
    DAG_FIELDS,
    DEFAULTS_FIELDS,
    ID_CHARACTERS_MAX,
    MULTIPLIER_MAX,
    NODE_FIELDS,
    RETRY_FIELDS,
    WORKFLOW_FIELDS,
)
from penstock.definition.fields import CONTROL_CHARACTER, Reader, kind_of
from penstock.definition.model import (
    FALLBACK_HANDLERS,
    HANDLER_ALIASES,
    TRIGGER_RULES,
    Definition,
    Node,
    Retry,
)
from penstock.definition.problems import Problems, path_to, quoted

RETRY_MEANINGS = {
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
CONSTANT_DELAY = "delay_seconds"
"""The spelling of a delay that doesn't grow, unless a multiplier stands beside it."""
PARTS_DEPTH = 3
"""Where nodes stand, in a request too."""


def read(document: Any, problems: Problems, *, max_nodes: int = 100_000) -> Definition | None:
    """The definition that a document describes; mistakes are in `problems`.

    None when there is nothing that could be looked at further.
    """
    if not isinstance(document, dict):
        problems.error(
            "not_an_object", "", f"a workflow is an object with nodes, not {kind_of(document)}"
        )
        return None
    reader = Reader(document, "", problems)
    reader.unknown(WORKFLOW_FIELDS)

    path, raw_nodes = _raw_nodes(document, problems)
    if len(raw_nodes) > max_nodes:
        message = f"the workflow has {len(raw_nodes):,} nodes; the limit is {max_nodes:,}"
        problems.error("too_large", path, message)
        return None
    defaults = _defaults(document, problems)
    nodes: list[Node] = []
    for step, raw in raw_nodes:
        node = _node(raw, path_to(path, (step,)), defaults, problems)
        if node is not None:
            nodes.append(node)

    return Definition(
        name=reader.text("name", max_length=ID_CHARACTERS_MAX) or _name_from_content(document),
        nodes=nodes,
        description=reader.text("description", limit_controls=False),
        timeout_seconds=reader.seconds("timeout_seconds", "timeout"),
        on_failure=reader.choice("on_failure", ("fail_fast", "continue")) or "fail_fast",
        input_schema=reader.value("input_schema", (dict, bool)),
        input=reader.value("input", (dict,)) or {},
        labels=reader.value("labels", (dict,)) or {},
        document=document,
    )


def _raw_nodes(
    document: dict[str, Any], problems: Problems
) -> tuple[str, list[tuple[int | str, Any]]]:
    """The path of the nodes, and each with its index or, in a mapping of id to node, its key."""
    container = document
    path = "nodes"
    if document.get("dag") is not None:
        dag = Reader(document["dag"], "dag", problems)
        dag.unknown(DAG_FIELDS)
        if document.get("nodes") is not None:
            Reader(document, "", problems).ignored("nodes", "dag")
        if not isinstance(document["dag"], dict):
            return "dag.nodes", []
        container = dag.raw
        path = "dag.nodes"

    nodes = container.get("nodes")
    if nodes is None or nodes in ([], {}):
        problems.error("empty_workflow", path, 'a workflow needs at least one node in "nodes"')
        return path, []
    if isinstance(nodes, dict):
        keyed: list[tuple[int | str, Any]] = []
        for key, raw in nodes.items():
            keyed.append((key, {"id": key, **raw} if isinstance(raw, dict) else raw))
        return path, keyed
    if isinstance(nodes, list):
        return path, list(enumerate(nodes))
    problems.error("bad_value", path, f'"nodes" must be a list, not {kind_of(nodes)}')
    return path, []


def _defaults(document: dict[str, Any], problems: Problems) -> dict[str, Any]:
    raw = document.get("defaults")
    reader = Reader({} if raw is None else raw, "defaults", problems)
    reader.unknown(DEFAULTS_FIELDS)
    top = Reader(document, "", problems)
    retry = _retry_fields(reader)
    return {
        "retry": _retry_fields(top) if retry is None else retry,
        "timeout_seconds": reader.seconds("timeout_seconds", "timeout"),
        "queue": reader.text("queue", max_length=ID_CHARACTERS_MAX),
        "queue_timeout_seconds": reader.seconds("queue_timeout_seconds"),
    }


def _node(raw: Any, path: str, defaults: dict[str, Any], problems: Problems) -> Node | None:
    if not isinstance(raw, dict):
        problems.error(
            "bad_value", path, f'a node is an object with "id" and "handler", not {kind_of(raw)}'
        )
        return None
    node_id = raw.get("id")
    if not isinstance(node_id, str) or not _good_id(node_id):
        problems.error("bad_id", f"{path}.id", _bad_id_message(node_id))
        return None
    reader = Reader(raw, path, problems, node_id)
    reader.unknown(NODE_FIELDS)
    handler = reader.text("handler", "type", max_length=ID_CHARACTERS_MAX) or ""
    if not handler and not (raw.get("handler") or raw.get("type")):
        message = 'the node has no "handler"; name what it runs, for example "noop"'
        problems.error("missing_handler", f"{path}.handler", message, node_id)
    uses_type = raw.get("handler") is None and raw.get("type") is not None

    return Node(
        id=node_id,
        handler=HANDLER_ALIASES.get(handler, handler),
        path=path,
        handler_field="type" if uses_type else "handler",
        dependencies=_dependencies(reader),
        dependencies_field="depends_on" if raw.get("dependencies") is None else "dependencies",
        config=reader.value("config", (dict,)) or {},
        condition=_condition(reader),
        trigger_rule=reader.choice("trigger_rule", TRIGGER_RULES) or "all_success",
        retry=_retry(reader, defaults["retry"]),
        timeout_seconds=reader.seconds(
            "timeout_seconds", "timeout", default=defaults["timeout_seconds"]
        ),
        queue=reader.text("queue", max_length=ID_CHARACTERS_MAX) or defaults["queue"],
        queue_timeout_seconds=reader.seconds(
            "queue_timeout_seconds", default=defaults["queue_timeout_seconds"]
        ),
        optional=bool(reader.value("optional", (bool,))),
        dead_letter=reader.value("dead_letter", (bool,)),
        on_dependency_failure=reader.choice("on_dependency_failure", ("skip", "fail")) or "skip",
    )


def _good_id(node_id: str) -> bool:
    return 0 < len(node_id) <= ID_CHARACTERS_MAX and not CONTROL_CHARACTER.search(node_id)


def _bad_id_message(node_id: Any) -> str:
    if node_id is None:
        return 'the node has no "id"; give it a name that no other node has'
    if not isinstance(node_id, str):
        return f'"id" must be text, not {kind_of(node_id)}'
    if not node_id:
        return '"id" must not be empty'
    if len(node_id) > ID_CHARACTERS_MAX:
        return f'"id" has {len(node_id)} characters; the limit is {ID_CHARACTERS_MAX}'
    return '"id" must not contain control characters, such as line breaks'


def _dependencies(reader: Reader) -> tuple[str, ...]:
    name, value = reader.pick("dependencies", "depends_on")
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        reader.bad(name, 'must be a list of node ids, as in ["first", "second"]')
        return ()
    return tuple(dict.fromkeys(value))


def _condition(reader: Reader) -> str | None:
    value = reader.value("condition", (str, bool))
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or value.strip() else None


def _retry(reader: Reader, defaults: dict[str, Any] | None) -> Retry | None:
    """The node's policy.

    Fields that it doesn't name come from `defaults`, the fields of the workflow's `retry`.
    """
    own = _retry_fields(reader)
    if own is None and defaults is None:
        return None
    own = own or {}
    defaults = defaults or {}
    fields = {**defaults, **own}
    if own.get("constant") and "multiplier" not in own:
        fields.pop("multiplier", None)  # the defaults' one is about the defaults' delay
    if fields.pop("constant", False):
        fields.setdefault("multiplier", 1.0)
    return Retry(**fields)


def _retry_fields(reader: Reader) -> dict[str, Any] | None:
    """The fields of `Retry` that the document names.

    And `constant`: whether its delay is `delay_seconds`.
    """
    name, value = reader.pick("retry", "retry_policy", "retry_config")
    if value is None:
        return None
    inner = Reader(value, reader.path_of(name), reader.problems, reader.node_id, code="bad_retry")
    inner.unknown(RETRY_FIELDS)

    values: dict[str, Any] = {}
    spellings: dict[str, str] = {}
    for field in dict.fromkeys(RETRY_MEANINGS.values()):
        accepted = [name for name, meaning in RETRY_MEANINGS.items() if meaning == field]
        spelling, raw = inner.pick(*accepted)
        if raw is not None:
            values[field] = _retry_value(inner, spelling, field)
            spellings[field] = spelling
    if "max_retries" in values:
        _count_retries(inner, values)

    usable = {field: item for field, item in values.items() if item is not None}
    if "initial_delay_seconds" in usable:
        usable["constant"] = spellings["initial_delay_seconds"] == CONSTANT_DELAY
    _warn_of_a_low_maximum(inner, usable, spellings)
    return usable


def _warn_of_a_low_maximum(
    inner: Reader, values: dict[str, Any], spellings: dict[str, str]
) -> None:
    """A delay never grows beyond its maximum, but the first one is what the document says."""
    initial_seconds = values.get("initial_delay_seconds")
    seconds_max = values.get("max_delay_seconds")
    if initial_seconds is None or seconds_max is None or initial_seconds <= seconds_max:
        return
    name = spellings["max_delay_seconds"]
    other = spellings["initial_delay_seconds"]
    message = (
        f'"{name}" ({seconds_max:g}) is below "{other}" ({initial_seconds:g})'
        f" and has no effect: every delay is {initial_seconds:g} s"
    )
    inner.problems.warn("ignored_field", inner.path_of(name), message, inner.node_id)


def _count_retries(inner: Reader, values: dict[str, Any]) -> None:
    retries = values.pop("max_retries")
    if "max_attempts" not in values:
        values["max_attempts"] = None if retries is None else retries + 1
    elif retries is not None and values["max_attempts"] not in (None, retries + 1):
        inner.ignored("max_retries", "max_attempts")


def _retry_value(inner: Reader, spelling: str, field: str) -> Any:
    value = inner.raw[spelling]
    if field == "jitter_seconds" and isinstance(value, bool):
        return Retry().jitter_seconds if value else 0.0
    if field == "max_attempts":
        return inner.integer(spelling, minimum=1, maximum=ATTEMPTS_MAX)
    if field == "max_retries":
        return inner.integer(spelling, minimum=0, maximum=ATTEMPTS_MAX - 1)
    if field == "multiplier":
        return inner.number(spelling, minimum=1, maximum=MULTIPLIER_MAX)
    return inner.number(spelling, minimum=0)


def _name_from_content(document: dict[str, Any]) -> str:
    return f"workflow-{content_hash(document)[:12]}"


def content_hash(document: Any) -> str:
    hashed = hashlib.sha256()
    for part in _dumped(document, PARTS_DEPTH, sort_keys=True, separators=(",", ":")):
        hashed.update(part.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def dump_document(document: Any) -> bytes:
    """As `json.dumps`."""
    parts = _dumped(document, PARTS_DEPTH, sort_keys=False, separators=(", ", ": "))
    return "".join(parts).encode()


def _dumped(
    value: Any, depth: int, *, sort_keys: bool, separators: tuple[str, str]
) -> Iterator[str]:
    """What `json.dumps` makes of a value, node by node.

    Its encoder lets no other thread run until it is done.
    """
    between, colon = separators
    if depth and value and isinstance(value, dict):
        opening = "{"
        for key in sorted(value) if sort_keys else value:
            yield f"{opening}{json.dumps(key, ensure_ascii=False)}{colon}"
            yield from _dumped(value[key], depth - 1, sort_keys=sort_keys, separators=separators)
            opening = between
        yield "}"
    elif depth and value and isinstance(value, list):
        opening = "["
        for item in value:
            yield opening
            yield from _dumped(item, depth - 1, sort_keys=sort_keys, separators=separators)
            opening = between
        yield "]"
    else:
        yield json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=separators)


def check_handlers(nodes: list[Node], handlers: Collection[str], problems: Problems) -> None:
    names = sorted({*handlers, *HANDLER_ALIASES, *FALLBACK_HANDLERS})
    for node in nodes:
        if node.handler and node.handler not in handlers:
            hint = problems.did_you_mean(node.handler, names)
            hint = hint or "; register it with @penstock.handler, or allow handlers that come later"
            message = f"no handler is called {quoted(node.handler)}{hint}"
            problems.error("unknown_handler", f"{node.path}.{node.handler_field}", message, node.id)
