"""YAML as a way to write JSON.

No tags, no dates, no `yes` for true, numbers as in JSON, no duplicate keys.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml
from yaml.reader import ReaderError

from penstock.definition.parse import Limits, refuse, unique_keys

BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TAG = "tag:yaml.org,2002:"
MERGES_MAX = 1_000_000
ALLOWED_TAGS = {None, "!", f"{TAG}str", f"{TAG}map", f"{TAG}seq"}
PLAIN_WORDS = {
    "bool": (r"(?:true|True|TRUE|false|False|FALSE)", "tTfF"),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    "float": (
        (
            r"[-+]?(?:(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
            r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
        ),
        "-+.0123456789",
    ),
}
"""What isn't text though it has no quotes, beside null.

Older YAML also makes numbers of `12:30`, `010` and `1_000`.
"""


class JsonLoader(BaseLoader):  # type: ignore[misc]  # the C loader where there is one
    """A safe loader that makes only what JSON has."""

    merges_left = 0
    """How many keys may still be copied for `<<`: a short text could copy the same ones a million
    times.
    """


JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag in (f"{TAG}null", f"{TAG}merge")]
    for first, rules in BaseLoader.yaml_implicit_resolvers.items()
}
for kind, (pattern, first_characters) in PLAIN_WORDS.items():
    JsonLoader.add_implicit_resolver(
        f"{TAG}{kind}", re.compile(rf"^(?:{pattern})$"), list(first_characters)
    )


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    pairs: list[tuple[str, Any]] = []
    for key_node, value_node in node.value:
        value = loader.construct_object(value_node, deep=True)
        if key_node.tag == f"{TAG}merge":
            merged = {**_merge(loader, value, key_node, len(merged)), **merged}
        else:
            pairs.append((_key(loader, key_node), value))
    own = unique_keys(pairs)
    return {**merged, **own} if merged and type(own) is dict else own


def _merge(loader: Any, value: Any, key_node: yaml.Node, already: int) -> dict[str, Any]:
    """The keys of `<<: *base` or `<<: [*first, *second]`.

    An earlier one wins, and what the mapping says itself wins over all.
    """
    bases = value if isinstance(value, list) else [value]
    if not all(isinstance(base, dict) for base in bases):
        refuse(
            "malformed_yaml",
            "not YAML: << needs a mapping or a list of mappings",
            line=_line(key_node),
        )
    loader.merges_left -= already + sum(len(base) for base in bases)
    if loader.merges_left < 0:
        refuse(
            "too_large",
            "the document has too many values once every << is merged",
            line=_line(key_node),
        )
    merged: dict[str, Any] = {}
    for base in reversed(bases):
        merged.update(base)
    return merged


def _key(loader: Any, key_node: yaml.Node) -> str:
    key = loader.construct_object(key_node, deep=True)
    if isinstance(key, dict):
        refuse(
            "malformed_yaml",
            'not YAML: text that begins with {{ must be in quotes: "{{ node.field }}"',
            line=_line(key_node),
        )
    if not isinstance(key, str):
        refuse(
            "key_not_text",
            f"the key {key!r:.100} must be text; put it in quotes",
            line=_line(key_node),
        )
    return key


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    # Python refuses to read more than 4,300 digits; 40 are enough to be refused with a place by
    # check_values
    return int(loader.construct_scalar(node)[:40])


JsonLoader.add_constructor(f"{TAG}map", _mapping)
JsonLoader.add_constructor(f"{TAG}int", _integer)


def parse_yaml(text: str, limits: Limits) -> Any:
    try:
        _check_events(text, limits)
        return _load(text, limits)
    except yaml.YAMLError as error:
        _refuse_malformed(error, text)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        refuse(
            "lone_surrogate",
            "half of a surrogate pair isn't text; write the whole character",
            line=line,
        )


def _load(text: str, limits: Limits) -> Any:
    loader = JsonLoader(text)
    loader.merges_left = min(MERGES_MAX, limits.max_values)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _check_events(text: str, limits: Limits) -> None:
    """Before anything is built: the C loader's own recursion would end the process, not raise."""
    depth = 0
    for event in yaml.parse(text, Loader=BaseLoader):
        if getattr(event, "tag", None) not in ALLOWED_TAGS:
            tag = event.tag.replace(TAG, "!!")
            refuse(
                "malformed_yaml",
                f"not YAML as used here: remove the tag {tag:.100}",
                line=_event_line(event),
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > limits.max_depth + 1:
                refuse(
                    "too_deep",
                    f"nested deeper than {limits.max_depth} levels",
                    line=_event_line(event),
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _event_line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _refuse_malformed(error: yaml.YAMLError, text: str) -> NoReturn:
    if isinstance(error, ReaderError):
        code = error.character if isinstance(error.character, int) else ord(error.character)
        line = text.count("\n", 0, error.position) + 1
        refuse("malformed_yaml", f"not YAML: the character U+{code:04X} isn't allowed", line=line)

    mark = getattr(error, "problem_mark", None)
    parts = [getattr(error, "context", None), getattr(error, "problem", None)]
    message = f"not YAML: {', '.join(part for part in parts if part) or str(error)}"
    if mark is None:
        refuse("malformed_yaml", message)
    refuse(
        "malformed_yaml",
        message,
        line=mark.line + 1,
        column=mark.column + 1,
        hint=_hint(mark, text),
    )


def _hint(mark: Any, text: str) -> str:
    line = "".join(text.splitlines()[mark.line : mark.line + 1])
    if line[mark.column : mark.column + 1] == "\t":
        return "; indent with spaces, not with tabs"
    return "; text with {{ must be in quotes" if "{{" in line else ""
