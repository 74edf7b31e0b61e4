"""Text to plain JSON values, refusing what can't be a document: the gate before anything is looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from penstock.definition.problems import Problem
from penstock.errors import InvalidWorkflow

COMMENT_LINE = re.compile(r"^[ \t]*//.*$", re.MULTILINE)
INT64 = range(-(2**63), 2**63)


class Limits(msgspec.Struct, frozen=True):
    max_bytes: int = 10 * 1024 * 1024
    max_nodes: int = 100_000
    max_depth: int = 64
    max_values: int = 5_000_000
    """Bounds what YAML aliases can unfold into."""


def parse(text: str | bytes, *, form: str = "json", limits: Limits | None = None) -> Any:
    """Read `text` as `json`, `jsonc` (JSON with // comment lines) or `yaml`. Raises `InvalidWorkflow`."""
    limits = limits or Limits()
    text = _decode(text, limits)
    if form == "yaml":
        from penstock.definition.yaml import parse_yaml  # noqa: PLC0415 -- PyYAML costs 50 ms

        value = parse_yaml(text, limits)
    else:
        value = _parse_json(COMMENT_LINE.sub("", text) if form == "jsonc" else text)
    check_values(value, limits)
    return value


def form_of(file_name: str) -> str:
    return "yaml" if file_name.lower().endswith((".yaml", ".yml")) else "jsonc"


def refuse(code: str, message: str, path: str = "") -> NoReturn:
    raise InvalidWorkflow([Problem(code, path, message)])


def _decode(text: str | bytes, limits: Limits) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > limits.max_bytes:
        refuse("too_large", f"the document has {size:,} bytes; the limit is {limits.max_bytes:,}")
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse("not_utf8", f"the document isn't UTF-8: byte {error.start} can't be read")


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        refuse("malformed_json", f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except RecursionError:
        refuse("too_deep", "the document is nested far too deeply")
    except ValueError as error:  # an integer of more than 4,300 digits
        refuse("number_too_large", f"a number can't be read: {error}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                refuse("duplicate_key", f"the key {key!r} stands twice in one object; remove one of them", key)
            seen.add(key)
    return value


def _constant(name: str) -> NoReturn:
    refuse("not_finite", f"{name} isn't JSON; use null or a number")


def check_values(value: Any, limits: Limits | None = None) -> None:
    """Refuse what JSON, a database or another program couldn't hold. The path is worked out only for a mistake."""
    limits = limits or Limits()
    if _all_fine(value, limits):
        return
    for path, item, depth in _walk(value):
        fault = "too_deep" if depth > limits.max_depth else _fault(item)
        if fault:
            refuse(fault, FAULTS[fault].format(depth=limits.max_depth), path)
    refuse("too_large", f"the document unfolds into more than {limits.max_values:,} values")


FAULTS = {
    "too_deep": "nested deeper than {depth} levels",
    "null_character": "the character U+0000 isn't allowed",
    "lone_surrogate": "half of a surrogate pair isn't text; write the whole character",
    "not_finite": "NaN and infinity aren't JSON; use null or a number",
    "number_too_large": "an integer must fit in 64 bits; write larger ones as a string",
    "not_json": "only objects, lists, text, numbers, true, false and null are allowed",
    "key_not_text": "keys must be text; put it in quotes",
}


def _fault(item: Any) -> str | None:  # noqa: PLR0911 -- one line per kind of value
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, str):
        if "\0" in item:
            return "null_character"
        return None if item.isascii() or not _has_surrogate(item) else "lone_surrogate"
    if isinstance(item, int):
        return None if item in INT64 else "number_too_large"
    if isinstance(item, float):
        return None if item - item == 0 else "not_finite"
    if isinstance(item, dict):
        return next((fault for key in item if (fault := _key_fault(key))), None)
    return None if isinstance(item, list) else "not_json"


def _key_fault(key: Any) -> str | None:
    return _fault(key) if isinstance(key, str) else "key_not_text"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _all_fine(value: Any, limits: Limits) -> bool:
    level: list[Any] = [value]
    count = 0
    for _ in range(limits.max_depth + 1):
        count += len(level)
        if count > limits.max_values or any(_fault(item) for item in level):
            return False
        level = [child for item in level if isinstance(item, (dict, list)) for child in _children(item)]
        if not level:
            return True
    return False


def _children(item: dict[str, Any] | list[Any]) -> Any:
    return item.values() if isinstance(item, dict) else item


def _walk(value: Any) -> Iterator[tuple[str, Any, int]]:
    stack: list[tuple[str, Any, int]] = [("", value, 0)]
    while stack:
        path, item, depth = stack.pop()
        yield path, item, depth
        if isinstance(item, dict):
            stack.extend((f"{path}.{key}" if path else str(key), child, depth + 1) for key, child in item.items())
        elif isinstance(item, list):
            stack.extend((f"{path}[{index}]", child, depth + 1) for index, child in enumerate(item))
