"""A document to a `Definition`: one name for every spelling, each field checked on its own.

Public documents of this kind come in several dialects; `document_fields` is the whole list of what
is accepted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from penstock.definition.children import ONE_ATTEMPT, read_child
from penstock.definition.document_fields import (
    ATTEMPTS_MAX,
    CATCH_FIELDS,
    CATCHES_MAX,
    DAG_FIELDS,
    DEFAULTS_FIELDS,
    ID_CHARACTERS_MAX,
    MULTIPLIER_MAX,
    NODE_FIELDS,
    REGION_DEPTH_MAX,
    RETRY_FIELDS,
    WORKFLOW_FIELDS,
)
from penstock.definition.error_patterns import CATEGORIES, is_own_category, is_text, pattern_fault
from penstock.definition.fields import CONTROL_CHARACTER, Reader, excerpt_of, kind_of
from penstock.definition.model import (
    CHILD_HANDLER,
    DEFAULT_CLEANUP_SECONDS,
    FALLBACK_HANDLERS,
    HANDLER_ALIASES,
    LOOP_HANDLER,
    MAP_HANDLER,
    TERMINATE,
    TRIGGER_RULES,
    WAITING_HANDLERS,
    Catch,
    Definition,
    Each,
    Node,
    Repeat,
    Retry,
    TriggerRule,
    every_node,
)
from penstock.definition.problems import Problems, path_to, quoted
from penstock.definition.read_regions import has_body, read_each, read_repeat
from penstock.definition.sugar import (
    SWITCH_HANDLER,
    Switch,
    add_notifications,
    apply_switches,
    finish_last,
    read_switch,
    take_notify,
)

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
    "on": "on",
    "not_on": "not_on",
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
    switches: list[Switch] = []
    for step, raw in raw_nodes:
        node = _node(raw, path_to(path, (step,)), defaults, problems, switches)
        if node is not None:
            nodes.append(node)
    apply_switches(nodes, switches, problems)
    finish_last(nodes, problems)
    add_notifications(nodes, problems)

    return Definition(
        name=reader.text("name", max_length=ID_CHARACTERS_MAX) or _name_from_content(document),
        nodes=nodes,
        description=reader.text("description", limit_controls=False),
        timeout_seconds=reader.seconds("timeout_seconds", "timeout"),
        cleanup_timeout_seconds=reader.seconds("cleanup_timeout_seconds")
        or DEFAULT_CLEANUP_SECONDS,
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


def _node(  # noqa: PLR0913, PLR0917 -- what is around it
    raw: Any,
    path: str,
    defaults: dict[str, Any],
    problems: Problems,
    switches: list[Switch],
    depth: int = 0,
) -> Node | None:
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
    each = read_each(reader)
    repeat = read_repeat(reader)
    if has_body(raw) or raw.get("nodes") is not None:
        return _node_with_body(reader, node_id, each, repeat, defaults, depth)
    switch = read_switch(reader, node_id)
    if switch is None:
        handler = _handler(reader)
        config, notify = take_notify(handler, reader.value("config", (dict,)) or {})
    else:
        handler = SWITCH_HANDLER
        config = switch[0]
        notify = None
        switches.append(switch[1])
    return Node(
        id=node_id,
        handler=handler,
        path=path,
        handler_field=_handler_field(reader),
        is_switch=switch is not None,
        config=config,
        notify=notify,
        child=read_child(reader, handler, config),
        retry=_retry_of(reader, handler, defaults),
        timeout_seconds=reader.seconds(
            "timeout_seconds",
            "timeout",
            # a limit that is meant for tasks isn't meant for people, nor for a child
            default=None if handler in WAITING_HANDLERS else defaults["timeout_seconds"],
        ),
        queue=reader.text("queue", max_length=ID_CHARACTERS_MAX) or defaults["queue"],
        queue_timeout_seconds=reader.seconds(
            "queue_timeout_seconds", default=defaults["queue_timeout_seconds"]
        ),
        **_flow_fields(reader),
    )


def _retry_of(reader: Reader, handler: str, defaults: dict[str, Any]) -> Retry | None:
    """How a node is retried; defaults are meant for tasks, and no child is one."""
    if handler == CHILD_HANDLER:
        return _retry(reader, ONE_ATTEMPT)
    return _retry(reader, defaults["retry"])


def _handler(reader: Reader) -> str:
    handler = reader.text("handler", "type", max_length=ID_CHARACTERS_MAX) or ""
    if not handler and not (reader.raw.get("handler") or reader.raw.get("type")):
        message = 'the node has no "handler"; name what it runs, for example "noop"'
        reader.problems.error("missing_handler", f"{reader.path}.handler", message, reader.node_id)
    return HANDLER_ALIASES.get(handler, handler)


def _handler_field(reader: Reader) -> str:
    uses_type = reader.raw.get("handler") is None and reader.raw.get("type") is not None
    return "type" if uses_type else "handler"


def _flow_fields(reader: Reader) -> dict[str, Any]:
    """When the node runs, and what its end means for others."""
    is_stated = reader.raw.get("dependencies") is not None
    return {
        "dependencies": _dependencies(reader),
        "dependencies_field": "dependencies" if is_stated else "depends_on",
        "catches": _catches(reader),
        "is_last": _is_last(reader),
        "condition": _condition(reader),
        "trigger_rule": "all_done" if reader.raw.get("finally") is True else _trigger_rule(reader),
        "optional": bool(reader.value("optional", (bool,))),
        "dead_letter": reader.value("dead_letter", (bool,)),
        "on_dependency_failure": reader.choice("on_dependency_failure", ("skip", "fail")) or "skip",
    }


def _node_with_body(  # noqa: PLR0913, PLR0917 -- what it is made of
    reader: Reader,
    node_id: str,
    each: Each | None,
    repeat: Repeat | None,
    defaults: dict[str, Any],
    depth: int,
) -> Node | None:
    """A map or a loop: what is around its body, and the body."""
    problems = reader.problems
    raw = reader.raw
    if not has_body(raw):
        message = (
            'a node has "nodes" only with "for_each", for each item of a list, or "repeat", in'
            " rounds; add one of them, or move the nodes to the list around"
        )
        problems.error("bad_value", reader.path_of("nodes"), message, node_id)
        return None
    if raw.get("for_each") is not None and raw.get("repeat") is not None:
        message = '"for_each" and "repeat" are in one node; put one of them on a node inside'
        problems.error("bad_value", reader.path_of("repeat"), message, node_id)
        return None
    if depth >= REGION_DEPTH_MAX:
        message = f"maps and loops are nested deeper than {REGION_DEPTH_MAX} levels"
        problems.error("too_deep", reader.path, message, node_id)
        return None
    collected = each.collect if each else repeat.carry if repeat else None
    node = Node(
        id=node_id,
        handler=MAP_HANDLER if raw.get("for_each") is not None else LOOP_HANDLER,
        path=reader.path,
        timeout_seconds=reader.seconds("timeout_seconds", "timeout"),
        each=each,
        repeat=repeat,
        **_flow_fields(reader),
    )
    if raw.get("nodes") is None:
        handler = _handler(reader)
        config, notify = take_notify(handler, reader.value("config", (dict,)) or {})
        node.is_single = collected is None and notify is None
        node.nodes = [
            Node(
                id=node_id,
                handler=handler,
                notify=notify,
                path=reader.path,
                handler_field=_handler_field(reader),
                config=config,
                child=read_child(reader, handler, config),
                retry=_retry_of(reader, handler, defaults),
                timeout_seconds=(
                    None if handler in WAITING_HANDLERS else defaults["timeout_seconds"]
                ),
                queue=reader.text("queue", max_length=ID_CHARACTERS_MAX) or defaults["queue"],
                queue_timeout_seconds=reader.seconds(
                    "queue_timeout_seconds", default=defaults["queue_timeout_seconds"]
                ),
                dead_letter=reader.value("dead_letter", (bool,)),
            )
        ]
        add_notifications(node.nodes, problems)
        _check_body(reader, node.nodes)
        return node
    for name in ("handler", "type"):
        if raw.get(name) is not None:
            message = f'the node has "nodes" and "{name}"; keep what runs for each item'
            problems.error("nodes_and_handler", reader.path_of(name), message, node_id)
    for name in ("config", "retry", "queue", "queue_timeout_seconds"):
        if raw.get(name) is not None:
            message = f'"{name}" has no effect on a node with "nodes"; put it on one of these'
            problems.warn("ignored_field", reader.path_of(name), message, node_id)
    node.nodes = _body_nodes(reader, defaults, depth)
    return node if node.nodes else None


def _body_nodes(reader: Reader, defaults: dict[str, Any], depth: int) -> list[Node]:
    raw_nodes = reader.raw["nodes"]
    path = reader.path_of("nodes")
    if raw_nodes in ([], {}):
        message = '"nodes" is empty; a body needs at least one node'
        reader.problems.error("empty_body", path, message, reader.node_id)
        return []
    keyed: list[tuple[int | str, Any]]
    if isinstance(raw_nodes, dict):
        keyed = [
            (key, {"id": key, **raw} if isinstance(raw, dict) else raw)
            for key, raw in raw_nodes.items()
        ]
    elif isinstance(raw_nodes, list):
        keyed = list(enumerate(raw_nodes))
    else:
        reader.bad("nodes", f"must be a list, not {kind_of(raw_nodes)}")
        return []
    switches: list[Switch] = []
    read = [
        _node(raw, path_to(path, (step,)), defaults, reader.problems, switches, depth + 1)
        for step, raw in keyed
    ]
    nodes = [node for node in read if node is not None]
    apply_switches(nodes, switches, reader.problems)
    finish_last(nodes, reader.problems)
    add_notifications(nodes, reader.problems)
    _check_body(reader, nodes)
    return nodes


def _check_body(reader: Reader, nodes: Iterable[Node]) -> None:
    """Refuse what decides about the whole execution: an item or a round ends by itself."""
    for node in nodes:
        message = f"{quoted(node.id)} is inside of {quoted(reader.node_id or '')}"
        if node.handler == TERMINATE:
            message += ", and terminate ends the whole execution; put it behind the map or loop"
            reader.problems.error(
                "not_in_body", f"{node.path}.{node.handler_field}", message, node.id
            )
        if node.catches and node.path != reader.path:
            message += ", and can't catch failures there; use on_item_failure or catch the map"
            reader.problems.error("not_in_body", f"{node.path}.catches", message, node.id)


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


def _trigger_rule(reader: Reader) -> TriggerRule:
    return reader.choice("trigger_rule", TRIGGER_RULES) or "all_success"


def _is_last(reader: Reader) -> bool:
    is_last = bool(reader.value("finally", (bool,)))
    if not is_last:
        return False
    rule = reader.choice("trigger_rule", TRIGGER_RULES)
    conflicts = {"trigger_rule": rule not in (None, "all_done"), "catches": "catches" in reader.raw}
    for name, is_conflict in conflicts.items():
        if is_conflict:
            message = f'"{name}" can\'t stand beside "finally", which means all_done'
            path = reader.path_of(name)
            reader.problems.error("conflicting_fields", path, message, reader.node_id)
    return True


def _catches(reader: Reader) -> tuple[Catch, ...]:
    value = reader.raw.get("catches")
    if value is None:
        return ()
    clauses = value if isinstance(value, list) else [value]
    if not clauses:
        return ()
    if len(clauses) > CATCHES_MAX:
        _bad_catch(reader, ("catches",), f"names {len(clauses)} nodes; the limit is {CATCHES_MAX}")
        return ()
    if reader.raw.get("trigger_rule") is not None:
        message = '"trigger_rule" can\'t stand beside "catches", which says when the node starts'
        path = reader.path_of("trigger_rule")
        reader.problems.error("conflicting_fields", path, message, reader.node_id)
    catches: dict[str, Catch] = {}
    for i, clause in enumerate(clauses):
        steps = ("catches", i) if isinstance(value, list) else ("catches",)
        catch = _catch(reader, clause, steps)
        if catch is not None and catch.node_id in catches:
            message = f'"catches" names {quoted(catch.node_id)} twice; join the patterns'
            path = path_to(reader.path, steps)
            reader.problems.error("duplicate_catch", path, message, reader.node_id)
        elif catch is not None:
            catches[catch.node_id] = catch
    return tuple(catches.values())


def _catch(reader: Reader, clause: Any, steps: tuple[str | int, ...]) -> Catch | None:
    if isinstance(clause, str):
        return Catch(clause)
    node_id = clause.get("node") if isinstance(clause, dict) else None
    if not isinstance(node_id, str):
        _bad_catch(reader, steps, 'must have node ids, or objects such as {"node": "fetch"}')
        return None
    path = path_to(reader.path, steps)
    inner = Reader(clause, path, reader.problems, reader.node_id, code="bad_catch")
    inner.unknown(CATCH_FIELDS)
    has_patterns = inner.raw.get("on") is not None
    return Catch(node_id, _patterns(inner, "on") if has_patterns else ())


def _bad_catch(reader: Reader, steps: tuple[str | int, ...], message: str) -> None:
    path = path_to(reader.path, steps)
    reader.problems.error("bad_catch", path, f'"catches" {message}', reader.node_id)


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


def _patterns(reader: Reader, name: str) -> tuple[str, ...]:
    """Error patterns: a list of them, or one."""
    value = reader.raw[name]
    patterns = value if isinstance(value, list) else [value]
    if not patterns:
        reader.bad(name, "must name at least one kind of error")
    for i, pattern in enumerate(patterns):
        path = path_to(reader.path, (name, i) if isinstance(value, list) else (name,))
        if not is_text(pattern):
            message = (
                f"{excerpt_of(pattern)} must be text such as timeout, http:503, http:5xx"
                " or ValueError"
            )
            reader.problems.error(reader.code, path, message, reader.node_id)
            continue
        fault = pattern_fault(pattern)
        hint = ""
        if fault is None and is_own_category(pattern):
            hint = reader.problems.did_you_mean(pattern, CATEGORIES)
            fault = "isn't known" if hint else None
        if fault is not None:
            message = f"{excerpt_of(pattern)} {fault}{hint}"
            reader.problems.error("bad_pattern", path, message, reader.node_id)
    return tuple(pattern for pattern in patterns if isinstance(pattern, str))


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
    if field in ("on", "not_on"):
        return _patterns(inner, spelling)
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
    for node in every_node(nodes):
        if node.handler and node.handler not in handlers:
            hint = problems.did_you_mean(node.handler, names)
            hint = hint or "; register it with @penstock.handler, or allow handlers that come later"
            message = f"no handler is called {quoted(node.handler)}{hint}"
            problems.error("unknown_handler", f"{node.path}.{node.handler_field}", message, node.id)
