"""A node's config, compiled: which parts are fixed, which are references, where secrets go."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from penstock.definition.problems import Problems, path_to
from penstock.definition.template import (
    Reference,
    Room,
    Scope,
    TemplateError,
    Text,
    check_references,
    parse_text,
    render,
)

Path = tuple[str | int, ...]
CONFIG_BYTES_MAX = 16 * 1024 * 1024
"""Of what references put into one config."""


class SecretText(msgspec.Struct, frozen=True, array_like=True):
    """A string of a config that needs secrets: where it is, and its pieces; every second piece is a secret's name."""

    path: Path
    pieces: tuple[str, ...]


class Slot(msgspec.Struct, frozen=True):
    path: Path
    text: Text


class Config(msgspec.Struct, frozen=True):
    value: dict[str, Any]
    slots: tuple[Slot, ...]
    references: frozenset[str]
    """Ids of the nodes whose outputs are needed."""

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


def _has_secret(text: Text) -> bool:
    return any(isinstance(piece, Reference) and piece.kind == "secret" for piece in text)


def _secret_text(slot: Slot, scope: Scope, room: Room) -> SecretText:
    pieces = [""]
    for piece in slot.text:
        if isinstance(piece, Reference) and piece.kind == "secret":
            pieces += [piece.name, ""]
        else:
            pieces[-1] += piece if isinstance(piece, str) else str(render(["", piece], scope, room))
    return SecretText(slot.path, tuple(pieces))


def visible(secret: SecretText) -> str:
    """What people see in place of the secret."""
    return "".join(piece if i % 2 == 0 else f"{{{{ secrets.{piece} }}}}" for i, piece in enumerate(secret.pieces))


def _put(root: Any, path: Path, value: Any) -> None:
    for key in path[:-1]:
        root = root[key]
    root[path[-1]] = value


def compile_config(  # noqa: PLR0913 -- a config, what it may refer to, and where to report
    config: dict[str, Any], known: Collection[str], path: str, node_id: str, problems: Problems, *, data_node: bool
) -> Config:
    slots: list[Slot] = []
    stack: list[tuple[Path, Any]] = [((), config)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, dict):
            stack.extend(((*place, key), child) for key, child in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend(((*place, index), value[index]) for index in reversed(range(len(value))))
        elif isinstance(value, str) and "{{" in value:
            where = path_to(path, place)
            try:
                text = parse_text(value, known)
            except TemplateError as error:
                error.report(where, node_id, problems, known)
                continue
            check_references(text, where, node_id, problems, secrets_allowed=not data_node)
            slots.append(Slot(place, text))
    references = frozenset(
        piece.name for slot in slots for piece in slot.text if isinstance(piece, Reference) and piece.kind == "node"
    )
    return Config(config, tuple(slots), references)
