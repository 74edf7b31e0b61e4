"""The real decisions, from bytes to bytes.

What an owner decides for a batch, and what the store has after a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

from penstock.definition.plan import Plan, compile_document
from penstock.engine import handling
from penstock.engine.commands import ExecutionRecord, Stop, Task, Transition
from penstock.engine.events import (
    AnyEvent,
    SignalReceived,
    TaskError,
    TaskFailed,
    TaskLost,
    TaskStarted,
    TaskSucceeded,
)
from penstock.engine.state import Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.engine.transitions import begin_generation
from penstock.stores import codec
from penstock.stores.base import Lease, Stored
from penstock.stores.commit_plan import plan_commit
from tests.explorer.world import Key

ID = "e"
ATTEMPTS_MAX = 2
JOIN = "join"
SUCCEEDED, FAILED, REFUSED = "succeeded", "failed", "refused"
LEASE = Lease(0, "", "", 0, 0)


class Shape(NamedTuple):
    """What is before the join."""

    parents: tuple[dict[str, Any], ...]
    takes_signal: bool = False
    room: int = 0
    """Items that may be open at once."""


def _map(max_parallel: int) -> dict[str, Any]:
    body = [{"id": "a", "handler": "noop"}]
    return {"id": "each", "for_each": [1, 2], "max_parallel": max_parallel, "nodes": body}


FAN_IN = "fan-in"
SHAPES = {
    FAN_IN: Shape(({"id": "a", "handler": "noop"}, {"id": "b", "handler": "noop"})),
    "map, one at a time": Shape((_map(1),), room=1),
    "map, both at once": Shape((_map(2),), room=2),
    "signal": Shape(
        (
            {"id": "a", "handler": "noop"},
            {"id": "s", "handler": "signal", "config": {"name": "go"}},
        ),
        takes_signal=True,
    ),
}
SIGNAL = codec.encode(SignalReceived(ID, 1, "go", b"{}", None, "", 0.0))


def plan(attempts_max: int, shape: str = FAN_IN) -> Plan:
    retry = {"max_attempts": attempts_max, "initial_delay_seconds": 0, "jitter_seconds": 0}
    parents = SHAPES[shape].parents
    names = [parent["id"] for parent in parents]
    join = {"id": JOIN, "handler": "noop", "dependencies": names}
    document = {"name": "w", "defaults": {"retry": retry}, "nodes": [*parents, join]}
    return compile_document(document).plan


SHAPE = FAN_IN
PLAN = plan(ATTEMPTS_MAX)


@contextmanager
def shaped(shape: str) -> Iterator[None]:
    """Let the execution have this shape."""
    changed = {"SHAPE": shape, "PLAN": plan(ATTEMPTS_MAX, shape)}
    forget()
    with patch.dict(globals(), changed):
        yield
    forget()


def parents() -> list[str]:
    """The nodes that the join waits for."""
    return [parent["id"] for parent in SHAPES[SHAPE].parents]


class Decision(NamedTuple):
    change: bytes
    tasks: tuple[Key, ...]
    stops: tuple[Key, ...]
    after: bytes


def intent() -> bytes:
    """What the cold store has of an execution that was accepted."""
    return _frozen(
        Stored(ExecutionRecord(ID, "w", 1, ExecutionState.PENDING, b"{}", 0.0), {}, {}, 0, [], [])
    )


@cache
def decide(execution: bytes, events: tuple[bytes, ...]) -> Decision:
    """What the owner commits, and what it has in memory then.

    An execution that has ended isn't even loaded.
    """
    stored = thawed(execution)
    if stored.record.state in EXECUTION_ENDS:
        return Decision(b"", (), (), execution)
    running = Execution(
        PLAN,
        stored.record,
        stored.runs.values(),
        stored.outputs,
        stored.last_seq,
        stored.signals,
    )
    for event in events:
        handling.handle(running, codec.decode_event(event), 0.0)
    commands = running.take_commands()
    changes = dict(plan_commit(LEASE, 0, [commands]).changes)
    change = changes.get(commands.execution_id, b"")
    after = _frozen(
        Stored(
            running.record,
            running.runs,
            running.outputs,
            running.last_seq,
            [],
            [],
            signals=list(running.mailbox.signals.values()),
        )
    )
    return Decision(
        change, tuple(map(_key, commands.tasks)), tuple(map(_key, commands.stops)), after
    )


@cache
def applied(execution: bytes, change: bytes) -> bytes:
    """The execution as the store has it after one more change."""
    changes = [codec.decode_change(data) for data in (execution, change) if data]
    record = next(one_change.record for one_change in changes if one_change.record is not None)
    return _frozen(codec.fold(record, changes))


@cache
def rebuilt(execution: bytes, generation: int) -> bytes:
    stored = thawed(execution)
    lines = begin_generation(stored.record, stored.runs.values(), stored.last_seq, generation, 0.0)
    stored.last_seq += len(lines)
    return _frozen(stored)


@cache
def thawed_once(execution: bytes) -> Stored:
    """To look at only: it is shared."""
    return thawed(execution)


def thawed(execution: bytes) -> Stored:
    change = codec.decode_change(execution)
    assert change.record is not None
    return codec.fold(change.record, [change])


def forget() -> None:
    """After the code itself was changed."""
    for cached in (decide, applied, rebuilt, thawed_once):
        cached.cache_clear()


def report(key: Key, outcome: str) -> bytes:
    # the same for all workers, or states that differ in nothing else would be two
    name = (ID, *key, "w")
    event: AnyEvent
    if outcome == SUCCEEDED:
        event = TaskSucceeded(*name, 0.0, b"{}")
    else:
        event = TaskFailed(
            *name, 0.0, TaskError("error", ""), retryable=outcome == FAILED, retry_after=0.0
        )
    return codec.encode(event)


def started(key: Key) -> bytes:
    return codec.encode(TaskStarted(ID, *key, "w", 0.0))


def lost(key: Key) -> bytes:
    return codec.encode(TaskLost(ID, *key, "w"))


def _key(task: Task | Stop) -> Key:
    return (task.node_id, task.generation, task.attempt)


def _frozen(stored: Stored) -> bytes:
    """The execution with one empty history line instead of all.

    The order of what has happened then makes no difference.
    """
    line = Transition(stored.last_seq, 0.0, "", "", "", 0)
    runs = sorted(stored.runs.values(), key=lambda run: run.node_id)
    outputs = dict(sorted(stored.outputs.items()))
    change = codec.Change(codec.SCHEMA, stored.record, runs, outputs, [line])
    change.signals = sorted(stored.signals, key=lambda signal: signal.number)
    return codec.encode(change)
