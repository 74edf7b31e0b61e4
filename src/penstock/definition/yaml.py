"""YAML as a way to write JSON: no tags, no dates, no `yes` for true, no duplicate keys."""

from __future__ import annotations

import re
from typing import Any

import yaml

from penstock.definition.parse import Limits, refuse

BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class JsonLoader(BaseLoader):  # type: ignore[misc]  # the C loader where there is one
    """A safe loader that makes only what JSON has."""


JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if not tag.endswith((":timestamp", ":bool", ":value"))]
    for first, rules in BaseLoader.yaml_implicit_resolvers.items()
}
JsonLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    value: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            refuse("key_not_text", f"the key {key!r} must be text; put it in quotes (line {_line(key_node)})")
        if key in value:
            refuse("duplicate_key", f"the key {key!r} stands twice in one mapping (line {_line(key_node)})", key)
        value[key] = loader.construct_object(value_node, deep=True)
    return value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


JsonLoader.add_constructor("tag:yaml.org,2002:map", _mapping)


def parse_yaml(text: str, limits: Limits) -> Any:
    try:
        _check_depth(text, limits)
        return yaml.load(text, Loader=JsonLoader)  # noqa: S506 -- JsonLoader is a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        refuse("malformed_yaml", f"not YAML: {getattr(error, 'problem', None) or error}{place}")
    except RecursionError:
        refuse("too_deep", "the document is nested far too deeply")


def _check_depth(text: str, limits: Limits) -> None:
    """Before anything is built: the C loader's own recursion would end the process, not raise."""
    depth = 0
    for event in yaml.parse(text, Loader=BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > limits.max_depth + 1:
                line = event.start_mark.line + 1 if event.start_mark else 0
                refuse("too_deep", f"nested deeper than {limits.max_depth} levels (line {line})")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
