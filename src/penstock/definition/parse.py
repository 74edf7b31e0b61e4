"""Parsing: text to plain JSON values, refusing what can't be a document.

This comes before anything else looks at a document.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from penstock.definition.problems import Problem, path_to
from penstock.errors import InvalidWorkflow

COMMENT_LINE = re.compile(r"^[ \t]*//.*$", re.MULTILINE)
STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{\]}]')
INT64 = range(-(2**63), 2**63)
FAULTS_MAX = 10
FUNCTION = "penstock.definition.parse:run"
PIECE_BYTES = 128 * 1024


class Limits(msgspec.Struct, frozen=True):
    max_bytes: int = 10 * 1024 * 1024
    max_nodes: int = 100_000
    max_depth: int = 64
    max_values: int = 2_000_000
    """Bounds what YAML aliases can unfold into, and how long everybody waits while a text is
    decoded.
    """


class RepeatedKeys(dict[str, Any]):
    """An object in which a key stood twice.

    It only lives until `check_values` has said where it is.
    """

    repeated: str = ""


def parse(text: str | bytes, *, form: str = "json", limits: Limits | None = None) -> Any:
    """Read `text` as `json`, `jsonc` (JSON with // comment lines) or `yaml`.

    Raises `InvalidWorkflow`.
    """
    limits = limits or Limits()
    text = _decode(text, limits)
    if not text.strip():
        refuse("empty_document", "the document is empty; a workflow is an object with nodes")
    if form == "yaml":
        from penstock.definition.yaml import parse_yaml  # noqa: PLC0415 -- PyYAML costs 50 ms

        value = parse_yaml(text, limits)
    else:
        value = _parse_json(COMMENT_LINE.sub("", text) if form == "jsonc" else text, limits)
    check_values(value, limits)
    return value


def run(parts: Sequence[bytes]) -> Iterator[bytes]:
    """The job of the sandbox: whether `parse` would take this JSON, and if not, why."""
    limits = msgspec.msgpack.decode(parts[1], type=Limits)
    try:
        parse(parts[0], limits=limits)
    except InvalidWorkflow as error:
        yield msgspec.msgpack.encode(error.problems)
    else:
        yield msgspec.msgpack.encode([])


def decode_in_pieces(text: bytes | msgspec.Raw) -> Any:
    """JSON that `run` has found good, decoded in a thread.

    A decoder holds the interpreter's lock until it is done. Between two pieces other threads get
    their turn.
    """
    view = memoryview(text)
    if len(view) <= PIECE_BYTES:
        return msgspec.json.decode(view)
    first = bytes(view[:PIECE_BYTES]).lstrip()[:1]
    if first == b"{":
        fields = msgspec.json.decode(view, type=dict[str, msgspec.Raw])
        return {name: decode_in_pieces(value) for name, value in fields.items()}
    if first == b"[":
        items = msgspec.json.decode(view, type=list[msgspec.Raw])
        return [decode_in_pieces(item) for item in items]
    return msgspec.json.decode(view)


def form_of(file_name: str) -> str:
    return "yaml" if file_name.lower().endswith((".yaml", ".yml")) else "jsonc"


def refuse(
    code: str, message: str, *, line: int | None = None, column: int | None = None, hint: str = ""
) -> NoReturn:
    """`line` and `column`: where in the text; the message says it too, before the hint."""
    if line is not None:
        position = f"line {line}" if column is None else f"line {line}, column {column}"
        message = f"{message} ({position})"
    message += hint
    problem = Problem(
        code,
        "",
        message,
        line=UNSET if line is None else line,
        column=UNSET if column is None else column,
    )
    raise InvalidWorkflow([problem])


def _decode(text: str | bytes, limits: Limits) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > limits.max_bytes:
        refuse("too_large", f"the document has {size:,} bytes; the limit is {limits.max_bytes:,}")
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8", "replace").removeprefix("\ufeff")
        refuse(
            "not_utf8",
            f"the document isn't UTF-8: byte {error.start} can't be read",
            line=before.count("\n") + 1,
            column=len(before) - before.rfind("\n"),
            hint="; save it as UTF-8",
        )


def _parse_json(text: str, limits: Limits, read_integer: Callable[[str], int] = int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_int=read_integer)
    except json.JSONDecodeError as error:
        comment = text[error.pos :].lstrip().startswith("//")
        hint = "; a // comment must have a line of its own, in a file" if comment else ""
        refuse(
            "malformed_json",
            f"not JSON: {error.msg}",
            line=error.lineno,
            column=error.colno,
            hint=hint,
        )
    except RecursionError:
        _refuse_depth(text, limits)
    except ValueError:
        # an integer of more than 4,300 digits: cut to one that is still too large, so that
        # check_values finds its place
        return _parse_json(text, limits, lambda digits: int(digits[:40]))


def _refuse_depth(text: str, limits: Limits) -> NoReturn:
    depth = 0
    offset = 0
    for token in STRING_OR_BRACKET.finditer(text):
        depth += (token[0] in "[{") - (token[0] in "]}")
        if depth > limits.max_depth + 1:
            offset = token.start()
            break
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    refuse("too_deep", f"nested deeper than {limits.max_depth} levels", line=line, column=column)


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    counts = Counter(key for key, _ in pairs)
    marked = RepeatedKeys(value)
    marked.repeated = next(key for key, count in counts.items() if count > 1)
    return marked


def check_values(value: Any, limits: Limits | None = None) -> None:
    """Refuse what JSON, a database or another program couldn't hold, and say where it is.

    Level by level, and a level is counted before it is built: YAML aliases can make a short text
    unfold without end.
    """
    limits = limits or Limits()
    levels: list[list[Any]] = [[value]]
    problems: list[Problem] = []
    count = 1
    while levels[-1] and len(problems) < FAULTS_MAX:
        parents = [
            (index, item)
            for index, item in enumerate(levels[-1])
            if isinstance(item, (dict, list)) and item
        ]
        count += sum(len(item) for _, item in parents)
        # before the keys of all these are looked at
        if count > limits.max_values:
            problems.append(
                Problem("too_large", "", f"the document has more than {limits.max_values:,} values")
            )
            break

        for index, item in enumerate(levels[-1]):
            fault = _fault(item)
            if fault is None:
                continue
            problems.append(_problem(levels, index, fault))
            if len(problems) == FAULTS_MAX:
                break

        if parents and len(levels) > limits.max_depth:
            message = f"nested deeper than {limits.max_depth} levels"
            problems.append(Problem("too_deep", _path(levels, parents[0][0]), message))
            break
        levels.append([child for _, item in parents for child in _children(item)])
    if problems:
        raise InvalidWorkflow(problems)


def _children(item: dict[str, Any] | list[Any]) -> Any:
    return item.values() if isinstance(item, dict) else item


FAULTS = {
    "null_character": "the character U+0000 isn't allowed; remove it",
    "lone_surrogate": "half of a surrogate pair isn't text; write the whole character",
    "not_finite": "NaN and infinity aren't JSON; use null or a number",
    "number_too_large": "an integer must fit in 64 bits; write larger ones as text, in quotes",
    "not_json": "only objects, lists, text, numbers, true, false and null are allowed, not {kind}",
    "key_not_text": "keys must be text, not {kind}; put the key in quotes",
    "duplicate_key": "the key {key!r:.100} stands twice in one object; remove one of them",
}


def _problem(levels: list[list[Any]], index: int, fault: str) -> Problem:
    item = levels[-1][index]
    path = _path(levels, index)
    key = None
    if fault == "duplicate_key":
        key = item.repeated
        path = path_to(path, (key,))
    elif fault == "key_not_text":
        item = next(name for name in item if not isinstance(name, str))
    message = FAULTS[fault].format(kind=f"a Python {type(item).__name__}", key=key)
    return Problem(fault, path, message)


def _path(levels: list[list[Any]], index: int) -> str:
    """Where the item stands that has this index in the last level."""
    steps: list[str | int] = []
    for level in reversed(levels[:-1]):
        for above, item in enumerate(level):
            size = len(item) if isinstance(item, (dict, list)) else 0
            if index < size:
                is_object = isinstance(item, dict)
                step = str(next(islice(item, index, None))) if is_object else index
                steps.append(step)
                index = above
                break
            index -= size
    return path_to("", reversed(steps))


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
        if isinstance(item, RepeatedKeys):
            return "duplicate_key"
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
