"""`{{ node.field }}`: a closed grammar of look-ups, compiled once.

    text      = { plain | "{{" reference "}}" | "{{" expression "}}" }
    reference = root { "." key | "[" index "]" | "[" JSON string "]" } [ "??" JSON literal ]
    root      = a node's id (the longest known one wins) | input | params | execution | secrets
              | "nodes." a node's id: how the node has ended, not its output

What isn't a reference may be an expression in CEL: see `computed`. Nothing else is ever evaluated.

A string that is exactly one reference keeps the JSON type of what it found. What came from an
output is data: it is never read as a template again. Secrets stay names here; only the worker knows
their values, so a resolved config carries, beside the visible text, the places where the worker
must fill one in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from penstock.definition.model import ANY_KEY
from penstock.definition.parse import check_values, unique_keys
from penstock.definition.problems import Problems, quoted
from penstock.errors import InvalidWorkflow

if TYPE_CHECKING:
    from penstock.definition.computed import Computed

REFERENCE_CHARACTERS_MAX = 2000
PADDED_ID_CHARACTERS_MAX = 320
"""Characters: an id has 256 at most, and some blanks around it."""
BODY = re.compile(r"""(?:\[\s*"(?:[^"\\]|\\.)*+"\s*\]|[^}?]|\}(?!\})|\?(?!\?))*+""", re.DOTALL)
"""Up to the `}}` or `??` that ends the reference; inside `["…"]` they are part of a key."""
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
STEP = re.compile(
    r"""\s*(?:\.\s*([^.\[\]{}()|"'`=!?<>&+*,;]+)|\[\s*(?:(\d+)|("(?:[^"\\]|\\.)*"))\s*\])\s*"""
)
NAMED_NODE = re.compile(r'nodes\s*\[\s*"')
PLAIN_NAME = re.compile(r"[\w-]+")
BLANKS = re.compile(r"\s*")
ROOTS = {"input": "input", "params": "input", "execution": "execution", "secrets": "secret"}
EXECUTION_FIELDS = ("id", "workflow", "version")
OUTCOME_FIELDS = ("state", "error")
"""What `nodes.x` has, and `execution` in nodes for clean-up."""
ERROR_FIELDS = ("category", "message", "type", "status_code", "node_id")
OUTCOME = re.compile(r"nodes\s*\.\s*")
LITERAL = json.JSONDecoder(object_pairs_hook=unique_keys)
LISTED_KEYS_MAX = 20
OPERATOR_IN_KEY = re.compile(r"[-/%:]|\sin\s")
"""Keys may have these in them: `a.b - 1` is a look-up first, and an expression if it finds nothing.
"""
STEPS = 'only .key, [0], ["key"] and ?? are possible'


class Reference(msgspec.Struct, frozen=True, tag=True):
    kind: str
    """`node`, `outcome`, `input`, `execution` or `secret`."""
    name: str
    path: tuple[str, ...]
    text: str
    has_fallback: bool = False
    fallback: Any = None

    @property
    def outcome_of(self) -> str | None:
        """The node whose end it is about."""
        return self.name if self.kind == "outcome" or self.may_mean_outcome else None

    @property
    def may_mean_outcome(self) -> bool:
        """`nodes["its id"].state`: the output's, or how the node has ended if that has none."""
        if self.kind != "node" or not self.path or self.path[0] not in OUTCOME_FIELDS:
            return False
        return NAMED_NODE.match(self.text, len("{{ ")) is not None

    @property
    def is_about_end(self) -> bool:
        """Whether it asks how the execution ends."""
        return self.kind == "execution" and bool(self.path) and self.path[0] in OUTCOME_FIELDS


class Missing(Exception):
    """A reference that finds nothing. Its text is shown to the user."""


class Scope(Protocol):
    """Where references look. Values are plain JSON."""

    def output(self, node_id: str) -> Any: ...
    def aliases(self, node_id: str) -> Mapping[str, str]: ...
    def outcome(self, node_id: str) -> Mapping[str, Any]:
        """How the node has ended: its state and its error, or null."""

    @property
    def ending(self) -> Mapping[str, Any]:
        """How the execution ends, as far as is known by now."""

    @property
    def input(self) -> Any: ...
    @property
    def execution(self) -> Mapping[str, Any]: ...


class Names(dict[str, int]):
    """What a reference may begin with, where a document has maps or loops.

    Nodes with their numbers, and names such as `item` with -1.
    """

    inside: Mapping[str, str] = {}
    """Nodes of bodies, and whose body it is: others can't refer to them."""
    advice: Mapping[str, str] = {}
    """For names that mean something elsewhere: what to write here."""


ONLY_INSIDE = {
    "item": "only nodes inside of a map (for_each) have an item",
    "index": "only nodes inside of a map (for_each) have an index",
    "previous": "only nodes inside of a loop (repeat) have a previous round",
    "round": "only nodes inside of a loop (repeat) have a round",
}


class TemplateError(ValueError):
    """A mistake in a template or a condition; `unknown` is the name in it that nothing has."""

    def __init__(self, code: str, message: str, unknown: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.unknown = unknown

    def report(
        self, path: str, node_id: str, problems: Problems, node_ids: Collection[str]
    ) -> None:
        owner = node_ids.inside.get(self.unknown) if isinstance(node_ids, Names) else None
        if owner is not None:
            message = (
                f"{quoted(self.unknown)} is a node inside {quoted(owner)}, which others can't"
                f" refer to; use {{{{ {owner} }}}}"
            )
            problems.error("outside_reference", path, message, node_id)
            return
        advice = node_ids.advice if isinstance(node_ids, Names) else {}
        hint = advice.get(self.unknown) or ONLY_INSIDE.get(self.unknown)
        if hint is None:
            hint = problems.did_you_mean(self.unknown, chain(ROOTS, node_ids))
        else:
            hint = f"; {hint}"
        problems.error(self.code, path, f"{self}{hint}", node_id)


Text: TypeAlias = "list[str | Reference | Computed]"
Compute: TypeAlias = (
    "Callable[[str, int, Collection[str], Reference | TemplateError],"
    " tuple[Reference | Computed, int]]"
)
"""Reads an expression that begins at an index, and says where the text after it begins.

It gets what the expression is as a reference, or why it is none.
"""


def parse_text(text: str, node_ids: Collection[str], compute: Compute | None = None) -> Text:
    """The plain pieces and references of one string, in order. Raises `TemplateError`.

    Without `compute`, there are no expressions.
    """
    pieces: Text = []
    position = 0
    while (start := text.find("{{", position)) >= 0:
        if start > position:
            pieces.append(text[position:start])
        piece, position = _parse_piece(text, start + 2, node_ids, compute)
        pieces.append(piece)
    if position < len(text):
        pieces.append(text[position:])
    return pieces


def _parse_piece(
    text: str, start: int, node_ids: Collection[str], compute: Compute | None
) -> tuple[Reference | Computed, int]:
    try:
        reference, end = _parse_reference(text, start, node_ids)
    except TemplateError as error:
        if compute is None:
            raise
        return compute(text, start, node_ids, error)
    if (
        compute is not None
        and not reference.has_fallback
        and OPERATOR_IN_KEY.search(text, start, end)
    ):
        return compute(text, start, node_ids, reference)
    return reference, end


def _parse_reference(text: str, start: int, node_ids: Collection[str]) -> tuple[Reference, int]:
    end = BODY.match(text, start).end()  # type: ignore[union-attr]  # matches always
    body = text[start:end].strip()
    fallback = None
    has_fallback = text.startswith("??", end)
    if has_fallback:
        fallback, end = parse_fallback(text, end + 2)
    elif end == len(text):
        raise TemplateError(
            "malformed_template", f"{_excerpt(text, start - 2)} has no closing }}}}"
        )
    if len(body) > REFERENCE_CHARACTERS_MAX:
        raise TemplateError(
            "malformed_template",
            f"a reference of {len(body):,} characters is too long;"
            f" the limit is {REFERENCE_CHARACTERS_MAX:,}",
        )

    written = "{{ " + body + " }}"
    kind, name, rest = _parse_root(body, written, node_ids)
    path = _parse_path(rest, written)
    _check_root(kind, path, written, has_fallback=has_fallback)
    if kind == "secret":
        name = path[0]
        path = ()
    return Reference(kind, name, path, written, has_fallback, fallback), end + 2


def parse_fallback(text: str, start: int) -> tuple[Any, int]:
    """The JSON literal after `??`, and where the braces end that follow it."""
    start = BLANKS.match(text, start).end()  # type: ignore[union-attr]
    try:
        value, end = LITERAL.raw_decode(text, start)
        check_values(value)
    except InvalidWorkflow as error:
        raise TemplateError(
            "malformed_template", f"the fallback after ??: {error.problems[0].message}"
        ) from None
    except (ValueError, RecursionError):
        raise TemplateError(
            "malformed_template",
            f'after ?? comes a JSON literal such as "text", 0 or null, not {_excerpt(text, start)}',
        ) from None

    end = BLANKS.match(text, end).end()  # type: ignore[union-attr]
    if not text.startswith("}}", end):
        raise TemplateError(
            "malformed_template", f"expected }}}} after the fallback, not {_excerpt(text, end)}"
        )
    return value, end


def _excerpt(text: str, start: int) -> str:
    end = start + 40
    piece = text[start:end]
    if len(text) > end:
        piece += "…"
    return repr(piece)


def _parse_root(body: str, written: str, node_ids: Collection[str]) -> tuple[str, str, str]:
    """Kind, name and the rest. Tries the longest prefix that could be an id first."""
    if not body:
        raise TemplateError(
            "malformed_template", "{{ }} is empty; name a node, as in {{ node.field }}"
        )
    if NAMED_NODE.match(body):
        return _parse_named_node(body, written, node_ids)

    # what is longer is no id, and need not be looked for
    longest = min(len(body), PADDED_ID_CHARACTERS_MAX)
    shorter = [i for i in range(longest - 1, 0, -1) if body[i] in ".["]
    for end in (longest, *shorter):
        name = body[:end].strip()
        if name in node_ids and name != "secrets":
            return "node", name, body[end:]

    outcome = OUTCOME.match(body)
    if outcome is not None and any(mark in body[outcome.end() :] for mark in ".["):
        return _parse_outcome(body, outcome.end(), written, node_ids)
    first = re.split(r"[.\[]", body, maxsplit=1)[0].strip()
    if first in ROOTS:
        return ROOTS[first], first, body[body.index(first) + len(first) :]

    plain = PLAIN_NAME.match(first)
    if plain and plain[0] != first and (plain[0] in node_ids or plain[0] in ROOTS):
        excerpt = _excerpt(body, plain.end())
        raise TemplateError("malformed_template", f"{written} can't be read at {excerpt}; {STEPS}")
    message = f"{written} must begin with a node's id"
    if first:
        message = f"{written} refers to {quoted(first)}, which isn't a node"
    raise TemplateError("unknown_reference", message, first)


def _parse_outcome(
    body: str, start: int, written: str, node_ids: Collection[str]
) -> tuple[str, str, str]:
    """`nodes.x.state`, `nodes.x.error.message`: how a node has ended."""
    longest = min(len(body), start + PADDED_ID_CHARACTERS_MAX)
    for end in (longest, *(i for i in range(longest - 1, start, -1) if body[i] in ".[")):
        name = body[start:end].strip()
        if name in node_ids:
            return "outcome", name, body[end:]
    first = re.split(r"[.\[]", body[start:], maxsplit=1)[0].strip()
    raise TemplateError(
        "unknown_reference", f"{written} refers to {quoted(first)}, which isn't a node", first
    )


def _parse_named_node(body: str, written: str, node_ids: Collection[str]) -> tuple[str, str, str]:
    """`nodes["its id"]`, the spelling that conditions have for ids that aren't identifiers."""
    step = STEP.match(body, len("nodes"))
    if not step or not step[3]:
        raise TemplateError(
            "malformed_template", f'{written} can\'t be read; write nodes["its id"]'
        )
    name = _unquote(step[3], written)
    if name not in node_ids:
        raise TemplateError(
            "unknown_reference", f"{written} refers to {quoted(name)}, which isn't a node", name
        )
    return "node", name, body[step.end() :]


def _unquote(literal: str, written: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        raise TemplateError(
            "malformed_template", f"{written}: {literal} isn't a JSON string"
        ) from None


def _parse_path(rest: str, written: str) -> tuple[str, ...]:
    path: list[str] = []
    position = 0
    while position < len(rest):
        step = STEP.match(rest, position)
        if not step:
            raise TemplateError(
                "malformed_template",
                f"{written} can't be read at {_excerpt(rest, position)}; {STEPS}",
            )
        key, index, quoted_key = step.groups()
        if key is not None and not key.strip():
            raise TemplateError(
                "malformed_template", f'{written} has an empty key; an empty one is written [""]'
            )
        if key is not None:
            path.append(key.strip())
        elif index is not None:
            path.append(index)
        else:
            path.append(_unquote(quoted_key, written))
        position = step.end()
    return tuple(path)


def _check_root(kind: str, path: tuple[str, ...], written: str, *, has_fallback: bool) -> None:
    if kind == "secret" and (len(path) != 1 or not SECRET_NAME.match(path[0])):
        raise TemplateError(
            "malformed_template", f"{written} must be {{{{ secrets.NAME }}}} with a plain name"
        )
    if kind == "secret" and has_fallback:
        raise TemplateError(
            "malformed_template", f"{written}: a secret can't have a fallback; remove the ??"
        )
    if kind == "outcome" and not is_outcome_path(path):
        raise TemplateError(
            "malformed_template",
            f"{written} isn't known; a node has state and error ({', '.join(ERROR_FIELDS[:4])}),"
            " and its output without nodes before its id",
        )
    if kind != "execution" or is_outcome_path(path):
        return
    if len(path) != 1 or path[0] not in EXECUTION_FIELDS:
        fields = ", ".join(EXECUTION_FIELDS)
        raise TemplateError(
            "malformed_template", f"{written} isn't known; an execution has {fields}"
        )


def is_outcome_path(path: tuple[str, ...]) -> bool:
    """Whether there is such a part of how something has ended."""
    if path[:1] == ("error",):
        return len(path) == 1 or (len(path) == 2 and path[1] in ERROR_FIELDS)  # noqa: PLR2004
    return path == ("state",)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
OPENED_BYTES = 64 * 1024
"""What is smaller is decoded as a whole."""


def opened(value: Any) -> Any:
    """A value that is JSON text still (`msgspec.Raw`), decoded by one level.

    So a look into a large value stays cheap.
    """
    if not isinstance(value, msgspec.Raw):
        return value
    text = memoryview(value)
    if len(text) <= OPENED_BYTES:
        return msgspec.json.decode(text)
    first = bytes(text[:64]).lstrip()[:1]
    if first == b"{":
        return _members.decode(text)
    if first == b"[":
        return _items.decode(text)
    return msgspec.json.decode(text)


def whole(value: Any) -> Any:
    """A value without JSON text in it.

    Only what was `opened` has some, and all of its members are.
    """
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(memoryview(value))
    if isinstance(value, dict):
        is_text = any(isinstance(member, msgspec.Raw) for member in islice(value.values(), 1))
        if is_text:
            return {key: whole(member) for key, member in value.items()}
    elif isinstance(value, list):
        is_text = any(isinstance(item, msgspec.Raw) for item in islice(value, 1))
        if is_text:
            return [whole(item) for item in value]
    return value


def look_up(piece: Reference | Computed, scope: Scope) -> Any:
    """The value that a reference or an expression means, or its fallback. Raises `Missing`."""
    if not isinstance(piece, Reference):
        return piece.value(scope)
    try:
        if piece.kind == "node":
            return _look_up_output(piece, scope)
        return _follow(_root(piece, scope), piece, {})
    except Missing:
        if piece.has_fallback:
            return piece.fallback
        raise


def _root(reference: Reference, scope: Scope) -> Any:
    if reference.kind == "input":
        return scope.input
    if reference.kind == "outcome":
        return scope.outcome(reference.name)
    return scope.ending if reference.is_about_end else scope.execution


def _look_up_output(reference: Reference, scope: Scope) -> Any:
    may_mean_outcome = reference.may_mean_outcome
    try:
        output = scope.output(reference.name)
    except Missing:
        if may_mean_outcome:
            return _follow(scope.outcome(reference.name), reference, {})
        raise
    try:
        return _follow(output, reference, scope.aliases(reference.name))
    except Missing:
        if may_mean_outcome and not reference.has_fallback:
            return _follow(scope.outcome(reference.name), reference, {})
        raise


def _follow(value: Any, reference: Reference, aliases: Mapping[str, str]) -> Any:
    path = reference.path
    value = opened(value)
    has_output_key = isinstance(value, dict) and "output" in value
    if path and path[0] == "output" and reference.kind == "node" and not has_output_key:
        path = path[1:]
    for depth, key in enumerate(path):
        if isinstance(value, dict):
            if key not in value and depth == 0:
                if ANY_KEY in aliases:
                    value = _inner(value, aliases[ANY_KEY], key)
                key = aliases.get(key, key)  # noqa: PLW2901 -- the alias is the key from here on
            if key in value:
                value = opened(value[key]) if depth + 1 < len(path) else value[key]
                continue
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = opened(value[int(key)]) if depth + 1 < len(path) else value[int(key)]
            continue
        hint = _describe_parent(reference, path[:depth], key, value)
        raise Missing(f"{reference.text}: {hint}")
    return value


def _inner(value: dict[str, Any], name: str, key: str) -> dict[str, Any]:
    """The object under `name`, if that has the key; else the value itself."""
    inner = opened(value.get(name))
    return inner if isinstance(inner, dict) and key in inner else value


def _describe_parent(reference: Reference, path: tuple[str, ...], key: str, value: Any) -> str:
    """What is there instead of the key that a reference asks for."""
    dotted = ".".join((reference.name, *path))
    if isinstance(value, dict):
        keys = ", ".join(key[:60] for key in islice(value, LISTED_KEYS_MAX)) or "none"
        if len(value) > LISTED_KEYS_MAX:
            keys += ", …"
        return f"{dotted} has no key {key!r}; it has: {keys}"
    if isinstance(value, list):
        return f"{dotted} is a list of {len(value)}; {key!r} isn't in it"
    return f"{dotted} is {json.dumps(value, ensure_ascii=False)[:60]}, so it has no {key!r}"


class Room:
    """How much may still be filled in.

    A text of 10 KB can refer a thousand times to a value of 10 MB.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = size

    def take(self, value: Any) -> None:
        """Raises `Missing` once it is used up."""
        if isinstance(value, str):
            self._left -= len(value)
        elif isinstance(value, (dict, list)):
            self._left -= len(msgspec.json.encode(value))
        elif isinstance(value, msgspec.Raw):  # a large value that is only carried
            self._left -= memoryview(value).nbytes
        if self._left < 0:
            raise Missing(
                f"with its references filled in, it has more than {self._size:,} bytes;"
                " refer to less"
            )


def render(pieces: Text, scope: Scope, room: Room | None = None) -> Any:
    """The value of a text with its references filled in.

    A single reference keeps its type; inside text, strings go in as they are and the rest as JSON.
    """
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        value = look_up(pieces[0], scope)
        if room is not None:
            room.take(value)
        return value
    texts: list[str] = []
    for piece in pieces:
        text = piece if isinstance(piece, str) else _as_text(look_up(piece, scope))
        if room is not None:
            room.take(text)
        texts.append(text)
    return "".join(texts)


def _as_text(value: Any) -> str:
    value = whole(value)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class SecretRule(msgspec.Struct, frozen=True):
    """Why a node can't have secrets in its config."""

    code: str
    reason: str


IN_DATA_NODE = SecretRule("secret_in_data_node", "the output of this node is kept and shown")
IN_COMPUTED_NODE = SecretRule(
    "secret_not_allowed",
    "this handler computes with its config, or gives it as its output, which is kept and shown",
)


IN_KEY = SecretRule("secret_not_allowed", "keys are shown")


def check_references(
    pieces: Text, path: str, node_id: str, problems: Problems, rule: SecretRule | None
) -> None:
    """`rule` says why secrets aren't allowed here; None if they are."""
    for piece in pieces:
        if rule is not None and isinstance(piece, Reference) and piece.kind == "secret":
            message = (
                f"{piece.text}: {rule.reason}, so it can't hold secrets;"
                " use it in the node that needs it"
            )
            problems.error(rule.code, path, message, node_id)
