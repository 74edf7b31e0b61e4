"""Positions in an inbox, and what its entries hold.

An entry has an id `1-<sequence>` and holds several events, each under the number of its schema. The
position of an event is `(sequence + 1) × 1024 + index`, so that 0 is before all of them; that of an
entry's last event is rounded up, so that a position says when an entry is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from penstock.engine.events import AnyEvent, TaskError, TaskFailed
from penstock.engine.reasons import ErrorCategory
from penstock.errors import SchemaMismatch
from penstock.stores import codec
from penstock.stores.redis.malformed import DroppedEntries

SLOTS = 1024
LAST = SLOTS - 1
ENTRY_EVENTS_MAX = 500
SCHEMA = b"1"
Entries = Sequence[tuple[bytes, Sequence[bytes]]]


class Envelope(msgspec.Struct, array_like=True):
    """The beginning of any message about a task, whatever follows in a later version."""

    tag: str
    execution_id: str
    node_id: str
    generation: int
    attempt: int
    worker_id: str


_envelope = msgspec.msgpack.Decoder(Envelope)


def read_after(position: int) -> str:
    """The inbox entry behind which reading begins.

    The entry of `position` is read again, unless all its events are handled.
    """
    number, index = divmod(position, SLOTS)
    last = number - 1 if index == LAST else number - 2
    return f"1-{last}" if last >= 0 else "0-0"


def first_needed(position: int) -> str:
    """The first inbox entry that is still needed."""
    number, index = divmod(position, SLOTS)
    return f"1-{number if index == LAST else max(number - 1, 0)}"


def end_of(entry_id: bytes) -> int:
    """The position of an entry's last event."""
    return (int(entry_id.partition(b"-")[2]) + 1) * SLOTS + LAST


def events_of(
    entries: Entries, after: int, dropped: DroppedEntries
) -> Iterator[tuple[int, AnyEvent]]:
    """The events behind a position, with their positions.

    What can't be read is added to `dropped`.
    """
    for entry_id, fields in entries:
        first = (int(entry_id.partition(b"-")[2]) + 1) * SLOTS
        decoded = enumerate(_decode_events(fields, dropped))
        events = [(index, event) for index, event in decoded if event is not None]
        for index, event in events:
            is_last = index == events[-1][0]
            position = first + (LAST if is_last else index)
            if position > after:
                yield position, event


def _decode_events(fields: Sequence[bytes], dropped: DroppedEntries) -> Iterator[AnyEvent | None]:
    for schema, data in zip(fields[::2], fields[1::2], strict=False):
        try:
            if schema != SCHEMA:
                raise SchemaMismatch(  # noqa: TRY301
                    f"a message has schema {schema!r}; this version of Penstock reads 1"
                )
            yield codec.decode_event(data)
        except SchemaMismatch as error:
            yield _unreadable(data, error, dropped)


def _unreadable(data: bytes, error: SchemaMismatch, dropped: DroppedEntries) -> TaskFailed | None:
    """The event for a message that can't be read: a result fails its attempt, with the reason.

    Anything else is dropped.
    """
    try:
        envelope = _envelope.decode(data)
    except msgspec.DecodeError:
        dropped.add("a message in an inbox", error)
        return None
    worker_id = envelope.worker_id
    reason = TaskError(
        ErrorCategory.SCHEMA, f"the report of worker {worker_id} can't be read: {error}"
    )
    return TaskFailed(
        envelope.execution_id,
        envelope.node_id,
        envelope.generation,
        envelope.attempt,
        worker_id,
        0.0,
        reason,
    )
