"""`{{ node.field }}`: a closed grammar of look-ups, compiled once. Nothing is ever evaluated.

    text      = { plain | "{{" reference "}}" }
    reference = root { "." key | "[" index "]" | "[" JSON string "]" } [ "??" JSON literal ]
    root      = a node's id (the longest known one wins) | input | params | execution | secrets

A string that is exactly one reference keeps the JSON type of what it found. What came from an output is data: it is
never read as a template again. Secrets stay names here; only the worker knows their values, so a resolved config
carries, beside the visible text, the places where the worker must fill one in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import msgspec

from penstock.definition.problems import Problems, did_you_mean

MAX_REFERENCE_LENGTH = 2000
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
STEP = re.compile(r"""\s*(?:\.\s*([^.\[\]{}()|"'`=!?<>&+*,;]+)|\[\s*(?:(\d+)|("(?:[^"\\]|\\.)*"))\s*\])\s*""")
BLANKS = re.compile(r"\s*")
EXECUTION_FIELDS = ("id", "workflow", "version")


class Reference(msgspec.Struct, frozen=True):
    kind: str
    """`node`, `input`, `execution` or `secret`."""
    name: str
    path: tuple[str, ...]
    text: str
    has_fallback: bool = False
    fallback: Any = None


class Missing(Exception):
    """A reference that finds nothing. Its text is shown to the user."""


class Scope(Protocol):
    """Where references look. Values are plain JSON."""

    def output(self, node_id: str) -> Any: ...
    def aliases(self, node_id: str) -> Mapping[str, str]: ...
    @property
    def input(self) -> Any: ...
    @property
    def execution(self) -> Mapping[str, Any]: ...


class TemplateError(ValueError):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


Text = list[str | Reference]


def parse_text(text: str, known: Collection[str]) -> Text:
    """The plain pieces and references of one string, in order. Raises `TemplateError`."""
    pieces: Text = []
    position = 0
    while (start := text.find("{{", position)) >= 0:
        if start > position:
            pieces.append(text[position:start])
        reference, position = _parse_reference(text, start + 2, known)
        pieces.append(reference)
    if position < len(text):
        pieces.append(text[position:])
    return pieces


def _parse_reference(text: str, start: int, known: Collection[str]) -> tuple[Reference, int]:
    end = text.find("}}", start)
    if end < 0:
        raise TemplateError("malformed_template", f"{_excerpt(text, start - 2)} has no closing }}}}")
    body, fallback, has_fallback = text[start:end], None, False
    mark = body.find("??")
    if mark >= 0:
        # the literal may itself contain "}}", so it is read from the whole text
        fallback, end = _parse_fallback(text, start + mark + 2)
        body, has_fallback = body[:mark], True
    if len(body) > MAX_REFERENCE_LENGTH:
        raise TemplateError("malformed_template", f"a reference of {len(body):,} characters is too long")
    shown = "{{ " + body.strip() + " }}"
    kind, name, rest = _root(body.strip(), shown, known)
    path = _parse_path(rest, shown)
    _check_root(kind, path, shown)
    if kind == "secret":
        name, path = path[0], ()
    return Reference(kind, name, path, shown, has_fallback, fallback), end + 2


def _parse_fallback(text: str, start: int) -> tuple[Any, int]:
    start = BLANKS.match(text, start).end()  # type: ignore[union-attr]  # matches always
    try:
        value, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text, start)
    except (ValueError, RecursionError):
        shown = _excerpt(text, start)
        raise TemplateError(
            "malformed_template", f'after ?? comes a JSON literal such as "text", not {shown}'
        ) from None
    end = BLANKS.match(text, end).end()  # type: ignore[union-attr]
    if not text.startswith("}}", end):
        raise TemplateError("malformed_template", f"expected }}}} after the fallback, not {_excerpt(text, end)}")
    return value, end


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _excerpt(text: str, start: int) -> str:
    piece = text[start : start + 40]
    return repr(piece + ("…" if len(text) > start + 40 else ""))


def _root(body: str, shown: str, known: Collection[str]) -> tuple[str, str, str]:
    """Kind, name and the rest. Tries the longest prefix that could be an id first."""
    if not body:
        raise TemplateError("malformed_template", "{{ }} is empty; name a node, as in {{ node.field }}")
    ends = [len(body), *(i for i in range(len(body) - 1, 0, -1) if body[i] in ".[")]
    for end in ends:
        name = body[:end].strip()
        if name in known and name != "secrets":
            return "node", name, body[end:]
    first = re.split(r"[.\[]", body, maxsplit=1)[0].strip()
    kinds = {"input": "input", "params": "input", "execution": "execution", "secrets": "secret"}
    if first in kinds:
        return kinds[first], first, body[body.index(first) + len(first) :]
    if first == "nodes":
        return _named_node(body, shown, known)
    hint = did_you_mean(first, known)
    raise TemplateError("unknown_reference", f"{shown} refers to {first!r}, which isn't a node{hint}")


def _named_node(body: str, shown: str, known: Collection[str]) -> tuple[str, str, str]:
    """`nodes["its id"]`, the spelling that conditions have for ids that aren't identifiers."""
    step = STEP.match(body, len("nodes"))
    name = json.loads(step[3]) if step and step[3] else None
    if name is None or name not in known or step is None:
        raise TemplateError("unknown_reference", f'{shown} doesn\'t name a node; write nodes["its id"]')
    return "node", name, body[step.end() :]


def _parse_path(rest: str, shown: str) -> tuple[str, ...]:
    path: list[str] = []
    position = 0
    while position < len(rest):
        step = STEP.match(rest, position)
        if not step:
            message = f"{shown} can't be read at {_excerpt(rest, position)}; only .key, [0] and ?? are possible"
            raise TemplateError("malformed_template", message)
        key, index, quoted = step.groups()
        path.append(key.strip() if key is not None else index if index is not None else json.loads(quoted))
        position = step.end()
    if "" in path:
        raise TemplateError("malformed_template", f"{shown} has an empty key")
    return tuple(path)


def _check_root(kind: str, path: tuple[str, ...], shown: str) -> None:
    if kind == "secret" and (len(path) != 1 or not SECRET_NAME.match(path[0])):
        raise TemplateError("malformed_template", f"{shown} must be {{{{ secrets.NAME }}}} with a plain name")
    if kind == "execution" and (len(path) != 1 or path[0] not in EXECUTION_FIELDS):
        fields = ", ".join(EXECUTION_FIELDS)
        raise TemplateError("malformed_template", f"{shown} isn't known; an execution has {fields}")


def look_up(reference: Reference, scope: Scope) -> Any:
    """The value a reference means, or its fallback. Raises `Missing`."""
    try:
        if reference.kind == "node":
            value = scope.output(reference.name)
            return _follow(value, reference, scope.aliases(reference.name))
        return _follow(scope.input if reference.kind == "input" else scope.execution, reference, {})
    except Missing:
        if reference.has_fallback:
            return reference.fallback
        raise


def _follow(value: Any, reference: Reference, aliases: Mapping[str, str]) -> Any:
    path = reference.path
    if (
        path
        and path[0] == "output"
        and reference.kind == "node"
        and not (isinstance(value, dict) and "output" in value)
    ):
        path = path[1:]
    for depth, key in enumerate(path):
        if isinstance(value, dict):
            if key not in value and depth == 0:
                key = aliases.get(key, key)  # noqa: PLW2901 -- the alias is the key from here on
            if key in value:
                value = value[key]
                continue
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
            continue
        raise Missing(f"{reference.text}: {_what_is_there(reference, path[:depth], key, value)}")
    return value


def _what_is_there(reference: Reference, path: tuple[str, ...], key: str, value: Any) -> str:
    place = ".".join((reference.name, *path))
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:20]) or "none"
        return f"{place} has no key {key!r}; it has: {keys}"
    if isinstance(value, list):
        return f"{place} is a list of {len(value)}; {key!r} isn't in it"
    return f"{place} is {json.dumps(value, ensure_ascii=False)[:60]}, so it has no {key!r}"


def render(pieces: Text, scope: Scope) -> Any:
    """A single reference keeps its type; inside text, strings go in as they are and the rest as JSON."""
    if len(pieces) == 1 and isinstance(pieces[0], Reference):
        return look_up(pieces[0], scope)
    return "".join(piece if isinstance(piece, str) else _as_text(look_up(piece, scope)) for piece in pieces)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_references(pieces: Text, path: str, node_id: str, problems: Problems, *, secrets_allowed: bool) -> None:
    for piece in pieces:
        if isinstance(piece, Reference) and piece.kind == "secret" and not secrets_allowed:
            message = f"{piece.text}: data nodes are kept and shown, so they can't hold secrets; use it in the node that needs it"
            problems.error("secret_in_data_node", path, message, node_id)
