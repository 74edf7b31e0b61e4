"""`Workflow`: the same document, built in Python. A reference to a node makes the dependency."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from penstock.definition.document_fields import WORKFLOW_FIELDS
from penstock.definition.handler_configs import HANDLER_CONFIGS
from penstock.definition.model import Retry
from penstock.definition.template import PLAIN_NAME
from penstock.spelling import near_miss

NODE_ARGUMENTS = (
    "after",
    "catches",
    "condition",
    "config",
    "dead_letter",
    "finally_",
    "on_dependency_failure",
    "optional",
    "queue",
    "queue_timeout_seconds",
    "retry",
    "timeout_seconds",
    "trigger_rule",
)
REGION_ARGUMENTS = (
    "condition",
    "on_dependency_failure",
    "optional",
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

    @property
    def state(self) -> Outcome:
        """How the node has ended, such as `FAILED`.

        `ref["state"]` is a key of its output.
        """
        return Outcome(self.node_id, ("state",))

    @property
    def error(self) -> Outcome:
        """The error with which the node has failed: `ref.error["message"]`."""
        return Outcome(self.node_id, ("error",))

    def __iter__(self) -> Any:
        raise TypeError(
            "a reference isn't known until the workflow runs, so it can't be looped over"
        )

    def __str__(self) -> str:
        steps = "".join(f"[{json.dumps(key, ensure_ascii=False)}]" for key in self.path)
        return f"{{{{ nodes[{json.dumps(self.node_id, ensure_ascii=False)}]{steps} }}}}"

    __repr__ = __str__


class Outcome(Ref):
    """How a node has ended, or a part of it."""

    def __getitem__(self, key: str | int) -> Outcome:
        return Outcome(self.node_id, (*self.path, key))

    @property
    def _name(self) -> str:
        if PLAIN_NAME.fullmatch(self.node_id):
            return f"nodes.{self.node_id}"
        return f"nodes[{json.dumps(self.node_id, ensure_ascii=False)}]"

    def __str__(self) -> str:
        steps = "".join(f".{key}" for key in self.path)
        return f"{{{{ {self._name}{steps} }}}}"

    __repr__ = __str__


class Text(msgspec.Struct, frozen=True):
    template: str
    references: tuple[Ref, ...]
    is_expression: bool = False


def text(template: str, *references: Ref) -> Text:
    """`text("Dear {}", user["name"])`: text with references filled in when the node starts."""
    _check_places(template, references)
    return Text(template, references)


def expression(source: str, *references: Ref) -> Text:
    """`expression("{} * 1.2", price["amount"])`: a CEL expression, computed when the node starts.

    It keeps its type: a number stays one.
    """
    _check_places(source, references)
    return Text(source, references, is_expression=True)


def _check_places(template: str, references: tuple[Ref, ...]) -> None:
    if template.count("{}") != len(references):
        raise ValueError(
            f"{template!r} has {template.count('{}')} places {{}} for {len(references)} references"
        )


class ItemRef(Ref):
    """The item of a map, or a part of it: `page["url"]`. In a loop: what the last round gave."""

    def __init__(self, name: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__("", path)
        self.name = name

    def __getitem__(self, key: str | int) -> ItemRef:
        return ItemRef(self.name, (*self.path, key))

    def __str__(self) -> str:
        steps = "".join(f"[{json.dumps(key, ensure_ascii=False)}]" for key in self.path)
        return f"{{{{ {self.name}{steps} }}}}"

    __repr__ = __str__


class Workflow:
    """Collects nodes; `document()` is the JSON that the same workflow would be in a file."""

    def __init__(self, name: str, **fields: Any) -> None:
        """`fields` are those of a document, such as `timeout_seconds`, `on_failure` and `input`."""
        for field in fields:
            _refuse_workflow_near_miss(field)
        self.name = name
        self._fields = fields
        self._nodes: dict[str, dict[str, Any]] = {}
        self._bodies: list[dict[str, Any]] = []
        """The maps and loops that are being built, the innermost last."""

    def node(  # noqa: PLR0913 -- the fields of a node; everything else is its config
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        handler: Any,
        /,
        *,
        after: Any = (),
        catches: Any = (),
        finally_: bool = False,
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

        `after` names nodes to wait for without using them, `catches` those whose failures it
        handles: `[fetch, {"node": parse, "on": ["ValueError"]}]`.
        """
        self._check_id(id)
        for name in values:
            _refuse_near_miss(name)
        dependencies: dict[str, None] = {}
        plain = _plain({**(config or {}), **values}, dependencies)
        dependencies.update(dict.fromkeys(_node_ids(after)))
        fields = {
            "catches": _catches(catches) or None,
            "finally": finally_ or None,
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
        written = {
            "id": id,
            "handler": _handler_name(handler),
            "dependencies": self._own(dependencies),
            "config": plain,
        }
        written.update((key, value) for key, value in fields.items() if value is not None)
        self._add(written)
        return Ref(id)

    def switch(
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        value: Any,
        /,
        cases: Mapping[str, Any],
        *,
        after: Any = (),
    ) -> Ref:
        """Add a node that chooses by a value which of the nodes in its `cases` run.

        `value` is a reference or a CEL expression; the nodes of `cases` may be added later.
        """
        self._check_id(id)
        dependencies: dict[str, None] = {}
        source = _plain(value, dependencies)
        dependencies.update(dict.fromkeys(_node_ids(after)))
        self._add(
            {
                "id": id,
                "switch": source,
                "cases": {name: _node_ids(nodes) for name, nodes in cases.items()},
                "dependencies": self._own(dependencies),
            }
        )
        return Ref(id)

    def ref(self, id: str) -> Ref:  # noqa: A002 -- what it is called in the document
        """A reference to the output of a node by its id, such as a map's."""
        return Ref(id)

    @contextmanager
    def each(  # noqa: PLR0913 -- the fields of a map
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        items: Any,
        /,
        *,
        as_: str = "item",
        key: str | None = None,
        max_parallel: int | None = None,
        on_item_failure: str | None = None,
        max_failures: float | str | None = None,
        output: str | None = None,
        item_timeout_seconds: float | None = None,
        **fields: Any,
    ) -> Iterator[ItemRef]:
        """The nodes that are added inside run once for each item of a list.

        `with flow.each("each", found["items"], as_="page") as page:` gives a reference to the item.
        Outside, `Ref("each")` is the list of the items' outputs; see `collect`.
        """
        dependencies: dict[str, None] = {}
        region = {
            "id": id,
            "for_each": _plain(items, dependencies),
            "as": None if as_ == "item" else as_,
            "key": key,
            "max_parallel": max_parallel,
            "on_item_failure": on_item_failure,
            "max_failures": max_failures,
            "output": output,
            "item_timeout_seconds": item_timeout_seconds,
        }
        with self._body(region, dependencies, fields):
            yield ItemRef(as_)

    @contextmanager
    def repeat(  # noqa: PLR0913 -- the fields of a loop
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        /,
        *,
        until: str,
        max_rounds: int,
        every_seconds: float | None = None,
        multiplier: float | None = None,
        most_every_seconds: float | None = None,
        initial: Any = None,
        keep_rounds: int | None = None,
        on_exhausted: str | None = None,
        on_round_failure: str | None = None,
        **fields: Any,
    ) -> Iterator[ItemRef]:
        """The nodes that are added inside run in rounds, until a condition holds.

        Gives a reference to what the last round carried on; see `collect`.
        """
        dependencies: dict[str, None] = {}
        repeat = {
            "until": until,
            "max_rounds": max_rounds,
            "every_seconds": every_seconds,
            "multiplier": multiplier,
            "most_every_seconds": most_every_seconds,
            "initial": _plain(initial, dependencies),
            "keep_rounds": keep_rounds,
            "on_exhausted": on_exhausted,
            "on_round_failure": on_round_failure,
        }
        written = {name: value for name, value in repeat.items() if value is not None}
        with self._body({"id": id, "repeat": written}, dependencies, fields):
            yield ItemRef("previous")

    def collect(self, value: Any) -> None:
        """What is made of each item; inside of `repeat`, what a round carries on to the next."""
        if not self._bodies:
            raise ValueError("collect() belongs inside of each() or repeat()")
        region = self._bodies[-1]
        collected = _plain(value, {})
        if "repeat" in region:
            region["repeat"]["carry"] = collected
        else:
            region["collect"] = collected

    @contextmanager
    def _body(
        self, region: dict[str, Any], dependencies: dict[str, None], fields: dict[str, Any]
    ) -> Iterator[None]:
        self._check_id(region["id"])
        dependencies.update(dict.fromkeys(_node_ids(fields.pop("after", ()))))
        unknown = [name for name in fields if name not in REGION_ARGUMENTS]
        if unknown:
            raise TypeError(f"a map or a loop has no field {unknown[0]!r}")
        region["dependencies"] = self._own(dependencies)
        region["nodes"] = []
        region.update(fields)
        self._bodies.append(region)
        try:
            yield
        finally:
            self._bodies.pop()
        self._add({name: value for name, value in region.items() if value is not None})

    def _check_id(self, node_id: str) -> None:
        if any(node["id"] == node_id for node in self._siblings()):
            raise ValueError(f"the workflow {self.name!r} already has a node {node_id!r}")

    def _siblings(self) -> Iterable[dict[str, Any]]:
        return self._bodies[-1]["nodes"] if self._bodies else self._nodes.values()

    def _own(self, dependencies: Iterable[str]) -> list[str]:
        """Dependencies among the nodes of one body: a reference to others makes its own."""
        if not self._bodies:
            return [node_id for node_id in dependencies if node_id]
        own = {node["id"] for node in self._siblings()}
        return [node_id for node_id in dependencies if node_id in own]

    def _add(self, node: dict[str, Any]) -> None:
        if self._bodies:
            self._bodies[-1]["nodes"].append(node)
        else:
            self._nodes[node["id"]] = node

    def wait(
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        /,
        *,
        seconds: Any = None,
        until: Any = None,
        timezone: Any = None,
        **fields: Any,
    ) -> Ref:
        """Add a node that waits for a time; `fields` are those of any node."""
        config = {"seconds": seconds, "until": until, "timezone": timezone}
        return self.node(id, "wait", config=_present(config), **fields)

    def signal(  # noqa: PLR0913 -- the keys of its config
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        /,
        *names: str,
        correlation: Any = None,
        schema: Any = None,
        count: int | None = None,
        timeout_seconds: float | None = None,
        on_timeout: str | None = None,
        **fields: Any,
    ) -> Ref:
        """Add a node that waits for a signal of one of these names; without any, of its id."""
        config = {
            "correlation": correlation,
            "schema": schema,
            "count": count,
            "timeout_seconds": timeout_seconds,
            "on_timeout": on_timeout,
        }
        config |= {"names": list(names)} if len(names) > 1 else {"name": names[0] if names else id}
        return self.node(id, "signal", config=_present(config), **fields)

    def approval(
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        /,
        title: Any,
        text: Any = None,
        *,
        config: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Ref:
        """Add a node that waits for a decision; `config` has the rest of what an approval has."""
        approval = _present({"title": title, "text": text, **(config or {})})
        return self.node(id, "approval", config=approval, **fields)

    def workflow(  # noqa: PLR0913 -- what a node says about its child
        self,
        id: str,  # noqa: A002 -- what it is called in the document
        workflow: Any,
        /,
        input: Any = None,  # noqa: A002 -- what it is called in the document
        *,
        wait: bool = True,
        on_parent_end: str | None = None,
        max_depth: int | None = None,
        **fields: Any,
    ) -> Ref:
        """Add a node that runs another workflow, such as `billing@stable`, as its child.

        The child's output is the node's. `fields` are those of any node.
        """
        config = _present({"workflow": workflow, "input": input})
        ref = self.node(id, "workflow", config=config, **fields)
        about_child = {
            "wait": None if wait else False,
            "on_parent_end": on_parent_end,
            "max_depth": max_depth,
        }
        self._last_added().update(_present(about_child))
        return ref

    def _last_added(self) -> dict[str, Any]:
        if self._bodies:
            last: dict[str, Any] = self._bodies[-1]["nodes"][-1]
            return last
        return self._nodes[next(reversed(self._nodes))]

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


def _present(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if value is not None}


def _refuse_near_miss(name: str) -> None:
    """A keyword that was surely meant as a field of the node is no key of its config."""
    if name == "for_each":
        raise TypeError("a map in Python is 'with flow.each(id, items) as item:' around its nodes")
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


def _catches(catches: Any) -> list[Any]:
    is_single = isinstance(catches, (str, Ref, Mapping)) or not isinstance(catches, Iterable)
    clauses = (catches,) if is_single else catches
    return [
        {**clause, "node": _node_ids(clause["node"])[0]}
        if isinstance(clause, Mapping)
        else _node_ids(clause)[0]
        for clause in clauses
    ]


def _retry(retry: Retry | Mapping[str, Any] | None) -> Any:
    if not isinstance(retry, Retry):
        return retry
    fields = msgspec.to_builtins(retry)
    return {name: value for name, value in fields.items() if value != ()}


def _plain(value: Any, dependencies: dict[str, None]) -> Any:
    """The value with each reference as `{{ … }}`; `dependencies` gets the nodes they name."""
    if isinstance(value, Ref):
        if value.node_id:  # an item makes no dependency
            dependencies[value.node_id] = None
        return str(value)
    if isinstance(value, Text):
        filled, *pieces = value.template.split("{}")
        for reference, piece in zip(value.references, pieces, strict=True):
            written = str(_plain(reference, dependencies))
            if value.is_expression:
                written = written.removeprefix("{{ ").removesuffix(" }}")
            filled += f"{written}{piece}"
        return f"{{{{ {filled} }}}}" if value.is_expression else filled
    if isinstance(value, Mapping):
        return {key: _plain(item, dependencies) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, dependencies) for item in value]
    return value
