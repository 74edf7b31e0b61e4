"""The codec of stored records: msgpack arrays that begin with a schema number.

A reader of schema N also reads N-1. Fields may only be added at the end, with a default; array-like
structs then read older and newer messages alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec
from msgspec import structs

from penstock.engine.commands import (
    AttemptFailure,
    Commands,
    DeadLetter,
    ExecutionRecord,
    NodeRun,
    Transition,
)
from penstock.engine.events import AnyEvent, SignalReceived, Value
from penstock.engine.failures import trim
from penstock.errors import SchemaMismatch
from penstock.stores.base import Intent, Stored

SCHEMA = 1
READABLE = (SCHEMA - 1, SCHEMA)


class Change(msgspec.Struct, array_like=True):
    """What one commit changed in one execution, as it is stored."""

    schema: int
    record: ExecutionRecord | None
    nodes: list[NodeRun]
    outputs: dict[str, Value]
    history: list[Transition]
    logs: list[tuple[str, int, str]] = []
    failures: list[tuple[str, AttemptFailure]] = []
    """Failed attempts with their nodes, in order.

    Since this field exists, `nodes` are without theirs; before, each had all of its own.
    """
    signals: list[SignalReceived] = []
    """Signals that were received."""
    dropped: list[str] = []
    """Addresses whose outputs, of earlier changes, aren't kept any longer."""


_encoder = msgspec.msgpack.Encoder()
_change_decoder = msgspec.msgpack.Decoder(Change)
_event_decoder = msgspec.msgpack.Decoder(AnyEvent)
_dead_letter_decoder = msgspec.msgpack.Decoder(DeadLetter)
_record_decoder = msgspec.msgpack.Decoder(ExecutionRecord)
_inputs_decoder = msgspec.msgpack.Decoder(list[tuple[str, Value]])
_intent_decoder = msgspec.msgpack.Decoder(Intent)

encode = _encoder.encode


def encode_change(commands: Commands) -> bytes:
    """The change of one execution in a commit, encoded; empty if nothing changes."""
    if not (
        commands.nodes or commands.history or commands.record or commands.logs or commands.signals
    ):
        return b""
    return encode(
        Change(
            SCHEMA,
            commands.record,
            _without_failures(commands.nodes.values()),
            commands.outputs,
            commands.history,
            commands.logs,
            commands.failures,
            commands.signals,
            commands.dropped,
        )
    )


def _without_failures(runs: Iterable[NodeRun]) -> list[NodeRun]:
    """The runs of nodes without their failures, which earlier changes contain already."""
    return [structs.replace(run, failures=[]) if run.failures else run for run in runs]


def encode_whole(stored: Stored) -> bytes:
    """An execution as one change."""
    runs = stored.runs.values()
    failures = [(run.node_id, failure) for run in runs for failure in run.failures]
    change = Change(
        SCHEMA,
        stored.record,
        _without_failures(runs),
        stored.outputs,
        stored.history,
        stored.logs,
        failures,
        stored.signals,
    )
    return encode(change)


class HasSchema(Protocol):
    @property
    def schema(self) -> int: ...


Part = TypeVar("Part", bound=HasSchema)


def decode_change(data: bytes) -> Change:
    return checked(_change_decoder, data)


def checked(decoder: msgspec.msgpack.Decoder[Part], data: bytes) -> Part:
    """A stored change, or as much of it as the decoder reads. Raises `SchemaMismatch`."""
    try:
        part = decoder.decode(data)
    except msgspec.DecodeError as error:
        raise SchemaMismatch(f"a stored change can't be read: {error}") from error
    if part.schema not in READABLE:
        raise SchemaMismatch(
            f"a stored change has schema {part.schema}; this version of Penstock reads {READABLE}"
        )
    return part


def decode_event(data: bytes) -> AnyEvent:
    try:
        event: AnyEvent = _event_decoder.decode(data)
    except msgspec.DecodeError as error:
        raise SchemaMismatch(f"a message can't be read: {error}") from error
    return event


def decode_dead_letter(data: bytes) -> DeadLetter:
    return _dead_letter_decoder.decode(data)


def decode_record(data: bytes) -> ExecutionRecord:
    return _record_decoder.decode(data)


def decode_intent(data: bytes) -> Intent:
    return _intent_decoder.decode(data)


def decode_inputs(data: bytes) -> list[tuple[str, Value]]:
    return _inputs_decoder.decode(data)


def fold(record: ExecutionRecord, changes: list[Change]) -> Stored:
    """An execution from what its commits did, oldest first."""
    stored = Stored(record, {}, {}, 0, [], [])
    for change in changes:
        if change.record is not None:
            stored.record = change.record
        for run in change.nodes:
            if run.node_id in stored.runs:
                run.failures = _join_failures(stored.runs[run.node_id].failures, run.failures)
            stored.runs[run.node_id] = run
        for node_id, failure in change.failures:
            failures = stored.runs[node_id].failures
            failures.append(failure)
            trim(failures)  # their number is in the record
        for address in change.dropped:
            stored.outputs.pop(address, None)
        stored.outputs.update(change.outputs)
        stored.history.extend(change.history)
        stored.logs.extend(change.logs)
        stored.signals.extend(change.signals)
    stored.last_seq = stored.history[-1].seq if stored.history else 0
    return stored


def _join_failures(
    earlier: list[AttemptFailure], own: list[AttemptFailure]
) -> list[AttemptFailure]:
    """Failures of earlier changes and the run's own, each attempt once.

    Only older versions of Penstock have written runs with failures, and then with all of them.
    """
    if not own or not earlier:
        return own or earlier
    by_attempt = {failure.attempt: failure for failure in (*earlier, *own)}
    return list(by_attempt.values())
