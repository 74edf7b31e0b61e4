"""A node's config, compiled: which parts are fixed, which are templates, where secrets go.

Keys of its objects may be templates too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from penstock.definition.computed import Computed, compute
from penstock.definition.expression import Expression
from penstock.definition.model import DATA_HANDLERS, SECRETLESS_HANDLERS
from penstock.definition.problems import Problems, path_to
from penstock.definition.template import (
    IN_COMPUTED_NODE,
    IN_DATA_NODE,
    IN_KEY,
    Missing,
    Reference,
    Room,
    Scope,
    SecretRule,
    TemplateError,
    Text,
    check_references,
    parse_text,
    render,
)

Path = tuple[str | int, ...]
EXPRESSION: Path = ("expression",)
CONFIG_BYTES_MAX = 16 * 1024 * 1024
"""Of what references put into one config."""


class SecretText(msgspec.Struct, frozen=True, array_like=True):
    """A string of a config that needs secrets: where it is, and its pieces.

    Every second piece is a secret's name.
    """

    path: Path
    pieces: tuple[str, ...]


class Slot(msgspec.Struct, frozen=True):
    path: Path
    text: list[str | Reference | Computed]
    written: Path | None = None
    """Where it stands in the document, if not at its path."""

    @property
    def document_path(self) -> Path:
        return self.path if self.written is None else self.written


class KeySlot(msgspec.Struct, frozen=True):
    """A key of an object that is a template."""

    path: Path
    """Of the object."""
    key: str
    """As it is written."""
    text: list[str | Reference | Computed]


class Config(msgspec.Struct, frozen=True):
    value: dict[str, Any]
    slots: tuple[Slot, ...]
    references: frozenset[str]
    """Ids of the nodes whose outputs are needed."""
    size: int = 0
    """Bytes that are copied to resolve it, about."""
    keys: tuple[KeySlot, ...] = ()
    """Inner ones first."""
    outcomes: frozenset[str] = frozenset()
    """Ids of the nodes of which it asks how they have ended."""
    computed: tuple[Computed, ...] = ()
    """Its expressions."""

    @property
    def is_fixed(self) -> bool:
        return not (self.slots or self.keys)

    @property
    def pieces(self) -> Iterator[Reference | Computed]:
        texts = [*(slot.text for slot in self.slots), *(slot.text for slot in self.keys)]
        for text in texts:
            for piece in text:
                if not isinstance(piece, str):
                    yield piece

    @property
    def uses_input(self) -> bool:
        return any(
            piece.kind == "input" if isinstance(piece, Reference) else piece.uses_input
            for piece in self.pieces
        )

    @property
    def is_about_end(self) -> bool:
        """Whether it asks how the execution ends."""
        return any(piece.is_about_end for piece in self.pieces)

    def resolve(self, scope: Scope) -> tuple[dict[str, Any], tuple[SecretText, ...]]:
        """The config to hand out, and what the worker must fill in. Raises `Missing`."""
        if self.is_fixed:
            return self.value, ()
        resolved: Any = msgspec.msgpack.decode(msgspec.msgpack.encode(self.value))
        secrets: list[SecretText] = []
        room = Room(CONFIG_BYTES_MAX)
        for slot in self.slots:
            if _has_secret(slot.text):
                secret = _secret_text(slot, scope, room)
                secrets.append(secret)
                _put(resolved, slot.path, visible(secret))
            else:
                _put(resolved, slot.path, render(slot.text, scope, room))
        for key in self.keys:
            secrets = _rename(resolved, key, render(["", *key.text], scope, room), secrets)
        return resolved, tuple(secrets)


def put_over(
    config: dict[str, Any], secrets: tuple[SecretText, ...], over: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[SecretText, ...]]:
    """The config with what an execution puts over it: plain data, in which nothing is looked up."""
    if not over:
        return config, secrets
    remaining = tuple(secret for secret in secrets if secret.path[0] not in over)
    return {**config, **over}, remaining


def _has_secret(text: Text) -> bool:
    return any(isinstance(piece, Reference) and piece.kind == "secret" for piece in text)


def _secret_text(slot: Slot, scope: Scope, room: Room) -> SecretText:
    pieces = [""]
    for piece in slot.text:
        if isinstance(piece, Reference) and piece.kind == "secret":
            pieces += [piece.name, ""]
        elif isinstance(piece, str):
            pieces[-1] += piece
        else:
            pieces[-1] += str(render(["", piece], scope, room))
    return SecretText(slot.path, tuple(pieces))


def visible(secret: SecretText) -> str:
    """What people see in place of the secret."""
    text = ""
    for i, piece in enumerate(secret.pieces):
        is_name = i % 2 == 1
        text += f"{{{{ secrets.{piece} }}}}" if is_name else piece
    return text


def _rename(root: Any, slot: KeySlot, name: str, secrets: list[SecretText]) -> list[SecretText]:
    """Put a key's text in its place; returns the secrets with the paths that they have then.

    Raises `Missing` if the object has such a key.
    """
    container = root
    for step in slot.path:
        container = container[step]
    if name != slot.key and name in container:
        raise Missing(f"the key {slot.key[:80]!r} gives {name[:80]!r}, which is there already")
    items = [(name if key == slot.key else key, value) for key, value in container.items()]
    container.clear()
    container.update(items)

    before = (*slot.path, slot.key)
    depth = len(before)
    return [
        SecretText((*slot.path, name, *secret.path[depth:]), secret.pieces)
        if secret.path[:depth] == before
        else secret
        for secret in secrets
    ]


def _put(root: Any, path: Path, value: Any) -> None:
    for key in path[:-1]:
        root = root[key]
    root[path[-1]] = value


def compile_config(  # noqa: PLR0913 -- a config, what it may refer to, and where to report
    config: dict[str, Any],
    node_ids: Collection[str],
    path: str,
    node_id: str,
    problems: Problems,
    *,
    handler: str = "",
    expression: Expression | None = None,
    stored: bool = False,
    written: str | None = None,
) -> Config:
    """A node's config, compiled; mistakes are in `problems`.

    `expression` is the one in the config, if it has one: what it refers to is bound later.

    `stored`: it was accepted before, perhaps when less was refused; the worker refuses secrets
    where it must.

    `written`: where all of its templates stand in the document, if not in a config.
    """
    rule = None if stored and handler not in DATA_HANDLERS else _secret_rule(handler)
    templates = _Templates(node_ids, path, node_id, problems, rule, stored=stored)
    templates.written = written
    if expression is not None:
        for text in expression.texts.values():
            check_references(text, path_to(path, EXPRESSION), node_id, problems, rule)

    stack: list[tuple[Path, Any]] = [((), config)]
    while stack:
        inner_path, value = stack.pop()
        if expression is not None and inner_path == EXPRESSION:
            continue
        if isinstance(value, dict):
            stack.extend(((*inner_path, key), child) for key, child in reversed(value.items()))
            templates.add_keys(inner_path, value)
        elif isinstance(value, list):
            indexes = reversed(range(len(value)))
            stack.extend(((*inner_path, index), value[index]) for index in indexes)
        elif isinstance(value, str) and "{{" in value:
            templates.add(inner_path, value)
    inner_first = sorted(templates.keys, key=lambda key: len(key.path), reverse=True)
    return _config(config, templates.slots, inner_first)


class _Templates:
    """Collects the templates of a config."""

    def __init__(  # noqa: PLR0913 -- what a template may refer to, and where to report
        self,
        node_ids: Collection[str],
        path: str,
        node_id: str,
        problems: Problems,
        rule: SecretRule | None,
        *,
        stored: bool,
    ) -> None:
        self._node_ids = node_ids
        self._path = path
        self._node_id = node_id
        self._problems = problems
        self._rule = rule
        self._stored = stored
        self.written: str | None = None
        self.slots: list[Slot] = []
        self.keys: list[KeySlot] = []

    def add(self, path: Path, value: str) -> None:
        text = self._parsed(path, value, self._rule)
        if text is not None:
            self.slots.append(Slot(path, text))

    def add_keys(self, path: Path, value: dict[str, Any]) -> None:
        for key in value:
            if "{{" not in key:
                continue
            text = self._parsed((*path, key), key, IN_KEY, is_taken=self._stored)
            if text is not None:
                self.keys.append(KeySlot(path, key, text))

    def _parsed(
        self, path: Path, value: str, rule: SecretRule | None, *, is_taken: bool = False
    ) -> Text | None:
        """`is_taken`: what can't be read stays as it is, because an older version has taken it."""
        where = self.written or path_to(self._path, path)
        try:
            text = parse_text(value, self._node_ids, compute)
        except TemplateError as error:
            if not is_taken:
                error.report(where, self._node_id, self._problems, self._node_ids)
            return None
        check_references(text, where, self._node_id, self._problems, rule)
        return text


def _secret_rule(handler: str) -> SecretRule | None:
    if handler in DATA_HANDLERS:
        return IN_DATA_NODE
    if handler in SECRETLESS_HANDLERS:
        return IN_COMPUTED_NODE
    return None


def with_expression(config: Config, expression: Expression, parents: Collection[str]) -> Config:
    """The config of a node with an expression: what that refers to becomes variables.

    A worker has the outputs of the node's parents itself.
    """
    program, texts = expression.bound(parents)
    if not texts:
        return config
    slots = [Slot(("variables", name), text, EXPRESSION) for name, text in texts.items()]
    variables = {**config.value.get("variables", {}), **dict.fromkeys(texts)}
    value = {**config.value, "expression": program, "variables": variables}
    return _config(value, [*config.slots, *slots], list(config.keys))


def _config(config: dict[str, Any], slots: list[Slot], keys: list[KeySlot]) -> Config:
    references: set[str] = set()
    outcomes: set[str] = set()
    computed: list[Computed] = []
    for text in [*(slot.text for slot in slots), *(slot.text for slot in keys)]:
        for piece in text:
            if isinstance(piece, Computed):
                references |= piece.references
                outcomes |= piece.outcomes_of
                computed.append(piece)
            elif isinstance(piece, Reference):
                if piece.kind == "node":
                    references.add(piece.name)
                if piece.outcome_of is not None:
                    outcomes.add(piece.outcome_of)
    size = len(msgspec.msgpack.encode(config)) if slots or keys else 0
    return Config(
        config,
        tuple(slots),
        frozenset(references),
        size,
        tuple(keys),
        frozenset(outcomes),
        tuple(computed),
    )
