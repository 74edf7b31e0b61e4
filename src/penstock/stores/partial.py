"""Parts of a stored change (`codec.Change`), read without making objects of the rest."""

from __future__ import annotations

import msgspec

from penstock.engine.commands import ExecutionRecord, Transition
from penstock.stores.codec import checked


class _Head(msgspec.Struct, array_like=True):
    schema: int
    record: ExecutionRecord | None


class _Lines(msgspec.Struct, array_like=True):
    schema: int
    record: msgspec.Raw
    nodes: msgspec.Raw
    outputs: msgspec.Raw
    history: list[Transition]


_head_decoder = msgspec.msgpack.Decoder(_Head)
_lines_decoder = msgspec.msgpack.Decoder(_Lines)


def record_of(change: bytes) -> ExecutionRecord | None:
    """The execution's record, if that commit changed it."""
    return checked(_head_decoder, change).record


def history_of(change: bytes) -> list[Transition]:
    return checked(_lines_decoder, change).history
