"""What has happened, in past tense: the only things that make an execution change.

They travel through inboxes, so they are small and have a tag; the store's codec writes the schema
version around them. `generation` and `attempt` say which dispatch a worker speaks of: one that
isn't current changes nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Blob(msgspec.Struct, frozen=True, array_like=True, tag="blob"):
    """Where a large value is kept."""

    key: str
    size: int


Value = bytes | Blob
"""JSON text, or where it is."""


class TaskError(msgspec.Struct, frozen=True, gc=False):
    """Why an attempt failed, as shown to the user."""

    category: str
    message: str
    type: str | None = None
    detail: Any = None
    traceback: str | None = None
    bases: tuple[str, ...] = ()
    """Names of the classes above the exception's own: what `retry.on` and `catches` may name."""


class Event(msgspec.Struct, array_like=True, tag=True, gc=False):
    execution_id: str


class ExecutionStarted(Event):
    pass


class TaskEvent(Event):
    node_id: str
    generation: int
    attempt: int
    worker_id: str


class TaskStarted(TaskEvent):
    started_at: float


class TaskSucceeded(TaskEvent):
    started_at: float
    output: Value
    logs: str = ""


class TaskFailed(TaskEvent):
    """An attempt failed. Without a `worker_id`: nobody ever began it."""

    started_at: float
    error: TaskError
    retryable: bool = True
    retry_after: float | None = None
    logs: str = ""


class TaskLost(TaskEvent):
    """The worker that had claimed the task is dead, or was stopped before the handler was done."""

    interrupted: bool = False
    """The worker lived to hand it back, so the task can't be what ended it."""


class TaskReturned(TaskEvent):
    """The task came back before anything ran: hand out the same attempt again."""


class TimerFired(Event):
    pass


class CancelRequested(Event):
    reason: str = "cancelled"


class PauseRequested(Event):
    pass


class ResumeRequested(Event):
    pass


class SignalReceived(Event):
    """Somebody sent a signal. The cold store has it, under this number."""

    number: int
    name: str
    payload: bytes
    """JSON text."""
    correlation: str | None = None
    sender: str = ""
    at: float = 0.0


class ChildEnded(Event):
    """An execution has ended that a node of this one has started, and the cold store has its end.

    Only its current attempt's child has an effect on a node.
    """

    node_id: str
    attempt: int
    child: str
    """The id of the execution that has ended."""
    state: str
    output: Value | None = None
    """Of one that COMPLETED."""
    error: TaskError | None = None
    parts: dict[str, Value] = {}
    """By node, what the output is still to be joined of: some of it is a blob."""


class Continued(Event):
    """There were more ready nodes than one commit takes, or an output had to be fetched first."""


class ExecutionBroke(Event):
    """The core raised while it handled this execution; `message` is for the user."""

    message: str


AnyEvent = (
    ExecutionStarted
    | TaskStarted
    | TaskSucceeded
    | TaskFailed
    | TaskLost
    | TaskReturned
    | TimerFired
    | CancelRequested
    | PauseRequested
    | ResumeRequested
    | SignalReceived
    | ChildEnded
    | Continued
    | ExecutionBroke
)
