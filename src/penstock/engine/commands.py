"""What is to be written and done for one execution, collected over a batch of events and committed together."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.definition.config import SecretText
from penstock.engine.events import AddedNode, TaskError, Value
from penstock.engine.states import ExecutionState, NodeState

# gc=False: these records hold no cycles, there are many of them, and the garbage collector needn't walk them

RETURNED = "returned"
"""The reason of a node that is QUEUED and whose task has to be handed out again."""


class AttemptFailure(msgspec.Struct, array_like=True, gc=False):
    attempt: int
    at: float
    error: TaskError
    worker_id: str | None = None


class NodeRun(msgspec.Struct, array_like=True, gc=False):
    """What is recorded of a node that has left PENDING. A node without a record is PENDING."""

    address: str
    state: NodeState
    attempt: int = 0
    queued_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    due_at: float | None = None
    reason: str | None = None
    worker_id: str | None = None
    failures: list[AttemptFailure] = []


class ExecutionRecord(msgspec.Struct, array_like=True):
    """What is recorded of an execution beside its nodes."""

    execution_id: str
    workflow: str
    version: int
    state: ExecutionState
    input: bytes
    created_at: float
    generation: int = 1
    started_at: float | None = None
    finished_at: float | None = None
    failing: bool = False
    error: TaskError | None = None
    error_node: str | None = None
    first_execution_id: str = ""
    """The first of a chain of retries: what idempotency keys are made of."""
    added: list[AddedNode] = []
    paused_at: float | None = None
    labels: dict[str, Any] = {}
    overrides: dict[str, dict[str, Any]] = {}
    """Config by node, put over the resolved one as plain data: nothing in it is a template."""
    priority: int = 0
    """Tasks of a higher one are handed out first."""
    trace: str = ""
    """The W3C `traceparent` of the request that started it."""
    kept: int = 0
    """How many nodes that an earlier execution completed are still to be recorded; its intent has their outputs."""
    retry_of: str | None = None
    lenient_config: bool = False
    """Keys of a config that its built-in handler doesn't know are a warning, not an error."""


class Transition(msgspec.Struct, array_like=True, gc=False):
    """A history line. `node` is empty for the execution itself."""

    seq: int
    at: float
    node: str
    before: str
    after: str
    attempt: int
    reason: str | None = None


class Task(msgspec.Struct, array_like=True, gc=False):
    """One attempt of a node, as a worker gets it: a resolved config, no knowledge of the DAG."""

    execution_id: str
    node: str
    generation: int
    attempt: int
    handler: str
    queue: str
    config: Value
    inputs: list[tuple[str, Value]]
    """By parent. Large ones together are one blob, under the name that no node has: the empty one."""
    secrets: tuple[SecretText, ...]
    timeout_seconds: float
    idempotency_key: str
    workflow: str
    priority: int = 0
    trace: str = ""
    lenient_config: bool = False


class DeadLetter(msgspec.Struct, array_like=True):
    execution_id: str
    node: str
    handler: str
    at: float
    attempts: list[AttemptFailure]


class Stop(msgspec.Struct, array_like=True, gc=False):
    """A task that nobody waits for any more."""

    execution_id: str
    node: str
    generation: int
    attempt: int


class Commands(msgspec.Struct):
    execution_id: str
    record: ExecutionRecord | None = None
    """Set when the record changed."""
    nodes: dict[str, NodeRun] = {}
    outputs: dict[str, Value] = {}
    history: list[Transition] = []
    tasks: list[Task] = []
    stops: list[Stop] = []
    logs: list[tuple[str, int, str]] = []
    dead_letters: list[DeadLetter] = []
    wake_at: float | None = None
    """When the stored timer has to fire; only meaningful if `timer_changed`."""
    timer_changed: bool = False
    held: bool | None = None
    """True: hand out no task of this execution; False: hand them out again."""
    more: bool = False
    """Ready nodes are left over: handle `Continued` after this commit."""
    finished: bool = False
    size: int = 0
    """Bytes of outputs and tasks in it, about."""

    @property
    def weight(self) -> int:
        """How much a commit has to carry: a history line counts as much as a KiB."""
        return len(self.history) + (self.size >> 10)
