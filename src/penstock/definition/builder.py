"""`Workflow`: the same document, built in Python. A reference to a node makes the dependency."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.definition.document_fields import WORKFLOW_FIELDS
from penstock.definition.handler_configs import HANDLER_CONFIGS
from penstock.definition.model import Retry
from penstock.spelling import near_miss

NODE_ARGUMENTS = (
    "after",
    "condition",
    "config",
    "dead_letter",
    "on_dependency_failure",
    "optional",
    "queue",
    "queue_timeout_seconds",
    "retry",
    "timeout_seconds",
    "trigger_rule",
)
NEAR_MISSES = {
    "timeout": "timeout_seconds",
    "queue_timeout": "queue_timeout_seconds",
    "retries": "retry",
    "max_retries": "retry",
    "max_attempts": "retry",
    "retry_policy": "retry",
    "retry_config": "retry",
}
"""Other names for a node's fields, in documents or elsewhere."""
WORKFLOW_NEAR_MISSES = {
    "retries": "retry",
    "max_retries": "retry",
    "max_attempts": "retry",
    "inputs": "input",
    "schema": "input_schema",
    "on_error": "on_failure",
    "execution_timeout": "timeout_seconds",
}
"""Other names for a workflow's fields."""
CONFIG_NAMES = frozenset(name for shape in HANDLER_CONFIGS.values() for name in shape.names)
"""Keys of built-in handlers, however near they are to the name of a field."""


class Ref:
    """The output of a node, or a part of it: `user["data"]["name"]`.

    Use it anywhere in another node's config.
    """

    def __init__(self, node_id: str, path: tuple[str | int, ...] = ()) -> None:
        self.node_id = node_id
        self.path = path

    def __getitem__(self, key: str | int) -> Ref:
        return Ref(self.node_id, (*self.path, key))

    def __iter__(self) -> Any:
        raise TypeError(
            "a reference isn't known until the workflow runs, so it can't be looped over"
        )

    def __str__(self) -> str:
        steps = "".join(f"[{json.dumps(key, ensure_ascii=False)}]" for key in self.path)
        return f"{{{{ nodes[{json.dumps(self.node_id, ensure_ascii=False)}]{steps} }}}}"

    __repr__ = __str__


class Text(msgspec.Struct, frozen=True):
    template: str
    references: tuple[Ref, ...]


def text(template: str, *references: Ref) -> Text:
    """`text("Dear {}", user["name"])`: text with references filled in when the node starts."""
    if template.count("{}") != len(references):
        raise ValueError(
            f"{template!r} has {template.count('{}')} places {{}} for {len(references)} references"
        )
    return Text(template, references)


class Workflow:
    """Collects nodes; `document()` is the JSON that the same workflow would be in a file."""

    def __init__(self, name: str, **fields: Any) -> None:
        """`fields` are those of a document, such as `timeout_seconds`, `on_failure` and `input`."""
        for field in fields:
            _refuse_workflow_near_miss(field)
        self.name = name
        self._fields = fields
        self._nodes: dict[str, dict[str, Any]] = {}

    def node(  # noqa: PLR0913 -- the fields of a node; everything else is its config
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        handler: Any,
        /,
        *,
        after: Any = (),
        condition: str | None = None,
        trigger_rule: str | None = None,
        retry: Retry | Mapping[str, Any] | None = None,
        timeout_seconds: float | None = None,
        queue: str | None = None,
        queue_timeout_seconds: float | None = None,
        optional: bool = False,
        dead_letter: bool | None = None,
        on_dependency_failure: str | None = None,
        config: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> Ref:
        """Add a node and return a reference to its output.

        `after` names nodes to wait for without using them.
        """
        if id in self._nodes:
            raise ValueError(f"the workflow {self.name!r} already has a node {id!r}")
        for name in values:
            _refuse_near_miss(name)
        dependencies: dict[str, None] = {}
        plain = _plain({**(config or {}), **values}, dependencies)
        dependencies.update(dict.fromkeys(_node_ids(after)))
        fields = {
            "condition": condition,
            "trigger_rule": trigger_rule,
            "retry": _retry(retry),
            "timeout_seconds": timeout_seconds,
            "queue": queue,
            "queue_timeout_seconds": queue_timeout_seconds,
            "optional": optional or None,
            "dead_letter": dead_letter,
            "on_dependency_failure": on_dependency_failure,
        }
        self._nodes[id] = {
            "id": id,
            "handler": _handler_name(handler),
            "dependencies": list(dependencies),
            "config": plain,
        }
        self._nodes[id].update((key, value) for key, value in fields.items() if value is not None)
        return Ref(id)

    def document(self) -> dict[str, Any]:
        """The workflow as a document, as it would stand in a JSON file."""
        return {"name": self.name, **self._fields, "dag": {"nodes": list(self._nodes.values())}}


def _refuse_workflow_near_miss(name: str) -> None:
    """A keyword that was surely meant as a field of the workflow."""
    if name in ("nodes", "dag"):
        raise TypeError("add the nodes of a workflow with its method node()")
    meant = None
    if name not in WORKFLOW_FIELDS:
        meant = near_miss(name, WORKFLOW_FIELDS, WORKFLOW_NEAR_MISSES)
    if meant is not None:
        raise TypeError(f"Workflow() has no field {name!r}; did you mean {meant}=…?")


def _refuse_near_miss(name: str) -> None:
    """A keyword that was surely meant as a field of the node is no key of its config."""
    if name in ("dependencies", "depends_on"):
        raise TypeError(
            "name the nodes to wait for in after=[…];"
            " a reference in the config makes its dependency itself"
        )
    names = () if name in CONFIG_NAMES else NODE_ARGUMENTS
    field = near_miss(name, names, NEAR_MISSES)
    if field is not None and field != name:
        raise TypeError(
            f"node() has no field {name!r}; did you mean {field}=…?"
            f" A key of the config with this name goes into config={{{name!r}: …}}"
        )


def _handler_name(handler: Any) -> str:
    name = handler if isinstance(handler, str) else getattr(handler, "handler_name", None)
    if name is None:
        raise TypeError(
            f"{handler!r} isn't a handler;"
            " decorate it with @penstock.handler, or give a handler's name"
        )
    return str(name)


def _node_ids(after: Any) -> list[str]:
    is_single = isinstance(after, (str, Ref)) or not isinstance(after, Iterable)
    nodes = (after,) if is_single else after
    node_ids = [node.node_id if isinstance(node, Ref) else str(node) for node in nodes]
    # a set has no order of its own, and the same workflow must always be the same document
    return sorted(node_ids) if isinstance(after, (set, frozenset)) else node_ids


def _retry(retry: Retry | Mapping[str, Any] | None) -> Any:
    return msgspec.to_builtins(retry) if isinstance(retry, Retry) else retry


def _plain(value: Any, dependencies: dict[str, None]) -> Any:
    """The value with each reference as `{{ … }}`; `dependencies` gets the nodes they name."""
    if isinstance(value, Ref):
        dependencies[value.node_id] = None
        return str(value)
    if isinstance(value, Text):
        filled, *pieces = value.template.split("{}")
        for reference, piece in zip(value.references, pieces, strict=True):
            filled += f"{_plain(reference, dependencies)}{piece}"
        return filled
    if isinstance(value, Mapping):
        return {key: _plain(item, dependencies) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, dependencies) for item in value]
    return value
