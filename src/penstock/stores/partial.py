"""Parts of a stored change (`codec.Change`), read without making objects of the rest."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.engine.commands import ExecutionRecord, Transition
from penstock.stores.base import Stored
from penstock.stores.codec import checked, decode_change, fold


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


def fold_since(record: ExecutionRecord, newest_first: Iterable[bytes], after: int) -> Stored:
    """What changes tell of an execution behind a history line; see `Executions.since`.

    No more of them are taken than needed.
    """
    changes: list[bytes] = []
    for change in newest_first:
        lines = history_of(change)
        if lines and lines[-1].seq <= after:
            break
        changes.append(change)
    stored = fold(record, [decode_change(change) for change in reversed(changes)])
    stored.history = [line for line in stored.history if line.seq > after]
    return stored
