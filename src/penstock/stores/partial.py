"""Parts of a stored change (`codec.Change`), read without making objects of the rest."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from penstock.engine.commands import ExecutionRecord, Transition
from penstock.errors import SchemaMismatch
from penstock.stores.codec import READABLE


class _Head(msgspec.Struct, array_like=True):
    schema: int
    record: ExecutionRecord | None


class _Lines(msgspec.Struct, array_like=True):
    schema: int
    record: msgspec.Raw
    nodes: msgspec.Raw
    outputs: msgspec.Raw
    history: list[Transition]


Part = TypeVar("Part", _Head, _Lines)

_head_decoder = msgspec.msgpack.Decoder(_Head)
_lines_decoder = msgspec.msgpack.Decoder(_Lines)


def record_of(change: bytes) -> ExecutionRecord | None:
    """The execution's record, if that commit changed it."""
    return _checked(_head_decoder, change).record


def history_of(change: bytes) -> list[Transition]:
    return _checked(_lines_decoder, change).history


def _checked(decoder: msgspec.msgpack.Decoder[Part], change: bytes) -> Part:
    try:
        part = decoder.decode(change)
    except msgspec.DecodeError as error:
        raise SchemaMismatch(f"a stored change can't be read: {error}") from error
    if part.schema not in READABLE:
        raise SchemaMismatch(f"a stored change has schema {part.schema}; this version of Penstock reads {READABLE}")
    return part
