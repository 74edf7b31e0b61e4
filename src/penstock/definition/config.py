"""A node's config, compiled: which parts are fixed, which are references, where secrets go."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from penstock.definition.expression import Expression
from penstock.definition.model import DATA_HANDLERS, SECRETLESS_HANDLERS
from penstock.definition.problems import Problems, path_to
from penstock.definition.template import (
    IN_COMPUTED_NODE,
    IN_DATA_NODE,
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
    text: Text
    written: Path | None = None
    """Where it stands in the document, if not at its path."""

    @property
    def document_path(self) -> Path:
        return self.path if self.written is None else self.written


class Config(msgspec.Struct, frozen=True):
    value: dict[str, Any]
    slots: tuple[Slot, ...]
    references: frozenset[str]
    """Ids of the nodes whose outputs are needed."""
    size: int = 0
    """Bytes that are copied to resolve it, about."""

    @property
    def uses_input(self) -> bool:
        pieces = (piece for slot in self.slots for piece in slot.text)
        return any(isinstance(piece, Reference) and piece.kind == "input" for piece in pieces)

    def resolve(self, scope: Scope) -> tuple[dict[str, Any], tuple[SecretText, ...]]:
        """The config to hand out, and what the worker must fill in. Raises `Missing`."""
        if not self.slots:
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
) -> Config:
    """A node's config, compiled; mistakes are in `problems`.

    `expression` is the one in the config, if it has one: what it refers to is bound later.

    `stored`: it was accepted before, perhaps when less was refused; the worker refuses secrets
    where it must.
    """
    rule = None if stored and handler not in DATA_HANDLERS else _secret_rule(handler)
    slots: list[Slot] = []
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
        elif isinstance(value, list):
            indexes = reversed(range(len(value)))
            stack.extend(((*inner_path, index), value[index]) for index in indexes)
        elif isinstance(value, str) and "{{" in value:
            where = path_to(path, inner_path)
            try:
                text = parse_text(value, node_ids)
            except TemplateError as error:
                error.report(where, node_id, problems, node_ids)
                continue
            check_references(text, where, node_id, problems, rule)
            slots.append(Slot(inner_path, text))
    return _config(config, slots)


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
    return _config(value, [*config.slots, *slots])


def _config(config: dict[str, Any], slots: list[Slot]) -> Config:
    references: set[str] = set()
    for slot in slots:
        for piece in slot.text:
            if isinstance(piece, Reference) and piece.kind == "node":
                references.add(piece.name)
    size = len(msgspec.msgpack.encode(config)) if slots else 0
    return Config(config, tuple(slots), frozenset(references), size)
