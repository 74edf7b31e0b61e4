"""Commands: what is to be written and done for one execution.

They are collected over a batch of events and committed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from penstock.definition.config import SecretText
from penstock.engine.events import ChildEnded, SignalReceived, TaskError, Value
from penstock.engine.states import ExecutionState, NodeState

# gc=False: these records hold no cycles, there are many of them, and the garbage collector needn't
# walk them

COMMIT_WEIGHT = 1000
"""History lines, tasks or KiB after which the rest of the ready nodes waits for the next commit."""


class AttemptFailure(msgspec.Struct, array_like=True, gc=False):
    attempt: int
    at: float
    error: TaskError
    worker_id: str | None = None


class More(msgspec.Struct, array_like=True, gc=False):
    """What is recorded beside the fields that every node has."""

    size: int = 0
    opened: int = 0
    child: str | None = None
    """The execution that the node has started, in its current attempt."""
    signal: int | None = None
    """The number of the signal that the node has taken."""
    key: str | None = None
    """The correlation that the node waits for."""
    cost: float = 0.0
    units: int = 0
    due_kind: str | None = None
    """What `due_at` of a WAITING node is: a `deadlines.Kind`."""
    config: bytes | None = None
    """The config of a WAITING node, filled in, as JSON."""
    signals: tuple[int, ...] = ()
    """Numbers of the signals that a node which waits for several has taken."""
    kind: str | None = None
    """The handler of a node that waits."""
    timed_out: bool = False
    """The time of a map or a loop is up: it fails when its open items have ended."""
    item_opened_at: float | None = None
    """Of a node in an item with a time limit: when the item was opened."""


class ChildConfig(msgspec.Struct, frozen=True):
    """`More.config` of a node that has started a child: what it was started with."""

    workflow: str
    version: int
    input: msgspec.Raw
    is_awaited: bool = True
    on_end: Literal["cancel", "leave"] = "cancel"


class NodeRun(msgspec.Struct, array_like=True, gc=False):
    """What is recorded of a node that has left PENDING. A node without a record is PENDING."""

    node_id: str
    state: NodeState
    attempt: int = 0
    queued_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    due_at: float | None = None
    reason: str | None = None
    worker_id: str | None = None
    failures: list[AttemptFailure] = []
    """The first and the newest (`engine.failures`).

    Stores keep them beside the record, each once.
    """
    failures_dropped: int = 0
    """How many there were between these."""
    logs_size: int = 0
    """Characters of logs that are kept of its attempts."""
    losses: int = 0
    """How many workers have died while they had its task."""
    uncounted: int = 0
    """Attempts that don't count towards `max_attempts`; see `engine.losses`."""
    more: More | None = None


class Ending(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An execution that ends before its last node: only clean-up nodes still start, or go on."""

    state: ExecutionState
    """How it ends: CANCELLED; FAILED; COMPLETED, unless a clean-up node fails."""
    reason: str
    at: float
    node_id: str | None = None
    """The `terminate` node that ended it: its output is the execution's."""

    @property
    def state_of_pending(self) -> NodeState:
        """What becomes of nodes that haven't begun."""
        is_cancel = self.state is ExecutionState.CANCELLED
        return NodeState.CANCELLED if is_cancel else NodeState.SKIPPED


class Parent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The node that has started an execution as its child."""

    execution_id: str
    node_id: str
    attempt: int
    root_id: str
    """The execution at the top of the tree."""
    depth: int
    """How many executions are above: 1 for a child of the root."""
    is_awaited: bool = True
    """The node ends with the child, so it is told of its end."""
    on_end: Literal["cancel", "leave"] = "cancel"
    """What becomes of the child if the parent ends first."""


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
    error_node_id: str | None = None
    first_execution_id: str = ""
    """The first of a chain of retries: what idempotency keys are made of."""
    added: tuple[Any, ...] = ()
    """Nodes that older versions could add; never written, and ignored."""
    paused_at: float | None = None
    labels: dict[str, Any] = {}
    overrides: dict[str, dict[str, Any]] = {}
    """Config by node, put over the resolved one as plain data: nothing in it is a template."""
    priority: int = 0
    """Tasks of a higher one are handed out first."""
    trace: str = ""
    """The W3C `traceparent` of the request that started it."""
    reused: int = 0
    """How many nodes an earlier execution has completed, until all are recorded; the intent has
    their outputs.
    """
    retry_of: str | None = None
    idempotency: tuple[str, ...] = ()
    """Scope, idempotency key and hash of the request that made it; empty without a key.

    Set where hot and cold are two stores, so that the cold store's row can be written again from
    the hot one.
    """
    lenient_config: bool = False
    """Keys of a config that its built-in handler doesn't know are a warning, not an error."""
    ending: Ending | None = None
    """Set when something ends it early and leaves nodes for clean-up, or when a node ended it."""
    started_by: str = ""
    """The id of the API key that started it."""
    parent: Parent | None = None
    """Set if it is the child of a node."""
    pins: dict[str, tuple[str, int]] = {}
    """By reference, the name and version that it means in all of this tree."""


class Transition(msgspec.Struct, array_like=True, gc=False):
    """A history line. `node_id` is empty for the execution itself."""

    seq: int
    at: float
    node_id: str
    before: str
    after: str
    attempt: int
    reason: str | None = None


class Task(msgspec.Struct, array_like=True, gc=False):
    """One attempt of a node, as a worker gets it: a resolved config, no knowledge of the DAG."""

    execution_id: str
    node_id: str
    generation: int
    attempt: int
    handler: str
    queue: str
    config: Value
    inputs: list[tuple[str, Value]]
    """By parent.

    Large ones together are one blob, under the name that no node has: the empty one.
    """
    secrets: tuple[SecretText, ...]
    timeout_seconds: float
    idempotency_key: str
    workflow: str
    priority: int = 0
    trace: str = ""
    names_queue: bool = False
    """The document says which queue: it isn't moved to the one that workers with its handler serve
    now.
    """
    lenient_config: bool = False
    is_last: bool = False
    """No other attempt follows if this one fails."""
    item: bytes | None = None
    """Of a node in a map: the item, as JSON; in a loop, what the last round carried on."""
    index: int | None = None
    """Of a node in a map: the item's index; in a loop, the number of the round."""


class DeadLetter(msgspec.Struct, array_like=True):
    execution_id: str
    node_id: str
    handler: str
    at: float
    attempts: list[AttemptFailure]
    attempts_dropped: int = 0


class Stop(msgspec.Struct, array_like=True, gc=False):
    """A task that nobody waits for any more."""

    execution_id: str
    node_id: str
    generation: int
    attempt: int


class StartChild(msgspec.Struct, array_like=True, tag="start"):
    """Start an execution as the child of a node, unless it is there."""

    record: ExecutionRecord


class ControlChild(msgspec.Struct, array_like=True, tag="control", frozen=True):
    """Cancel, pause or resume a child that hasn't ended."""

    execution_id: str
    request: Literal["cancel", "pause", "resume"]
    reason: str = ""


Send = StartChild | ControlChild | ChildEnded
"""What goes to another execution once the commit has landed."""


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
    failures: list[tuple[str, AttemptFailure]] = []
    """Attempts that failed, by node."""
    signals: list[SignalReceived] = []
    """Signals that were received."""
    dropped: list[str] = []
    """Addresses whose outputs aren't kept any longer."""
    sends: list[Send] = []
    """What goes to children and to the parent, in this order."""
    dead_letters: list[DeadLetter] = []
    wake_at: float | None = None
    """When the stored timer has to fire; only meaningful if `timer_changed`."""
    timer_changed: bool = False
    paused: bool | None = None
    """True: hand out no task of this execution; False: hand them out again."""
    has_more: bool = False
    """Ready nodes are left over: handle `Continued` after this commit."""
    finished: bool = False
    final_runs: Mapping[str, NodeRun] | None = None
    """Of an execution that is finished: the records of all its nodes."""
    size: int = 0
    """Bytes of outputs and tasks in it, about."""

    @property
    def weight(self) -> int:
        """How much a commit has to carry: a history line counts as much as a KiB."""
        return len(self.history) + (self.size >> 10)
