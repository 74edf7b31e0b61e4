"""Nodes that run another workflow: their children are executions of their own.

What a child needs before it can begin (the version, its input) isn't in the parent's records, and
this package looks nothing up. So the node stays as it is, the owner is asked (`Lookup`), and
its answer (`Found`) starts the child: PENDING → WAITING. The node's record then says everything
about the child, so it can be asked for again after a loss. See
docs/decisions/026-relay-and-child-workflows.md.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.definition.model import CHILD_DEPTH
from penstock.engine import deadlines
from penstock.engine.commands import (
    ChildConfig,
    ControlChild,
    ExecutionRecord,
    More,
    NodeRun,
    Parent,
    StartChild,
)
from penstock.engine.events import Blob, TaskError, Value
from penstock.engine.failing import fail_node
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import complete, open_run
from penstock.engine.states import ExecutionState, NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution

KIND = "workflow"
"""`More.kind` of a node that has started a child."""
INPUT_BYTES_MAX = 256 * 1024
"""A larger input isn't handed to a child: it is part of the node's record."""
ID_RANDOM_BITS = 74


class Lookup(msgspec.Struct, frozen=True):
    """What the owner is asked before a child can begin."""

    node_id: str
    reference: str
    pinned: tuple[str, int] | None
    """The name and version that the reference means in this tree; None: it isn't known yet."""
    root_id: str
    """Chooses between the versions of an alias that has several."""
    input: dict[str, Any]


class Found(msgspec.Struct, frozen=True):
    """The owner's answer: a version and the input that it begins with, or what is wrong."""

    workflow: str = ""
    version: int = 0
    input: bytes = b"{}"
    error: TaskError | None = None


def child_id(parent: ExecutionRecord, node_id: str, attempt: int, found: Found) -> str:
    """The id of a child: the same for the same decision, whenever and wherever that is made.

    A UUID of version 7, of the time at which the parent was created.
    """
    facts = (parent.execution_id, node_id, attempt, found.workflow, found.version, found.input)
    digest = hashlib.sha256(msgspec.msgpack.encode(facts)).digest()
    random = int.from_bytes(digest, "big") >> (len(digest) * 8 - ID_RANDOM_BITS)
    high, low = random >> 62, random & (1 << 62) - 1
    value = int(parent.created_at * 1000) << 80 | 0x7 << 76 | high << 64 | 0x2 << 62 | low
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def look_up(execution: Execution, number: int, run: NodeRun | None, config: Value) -> None:
    """Ask for what a child needs to begin, with the node's config filled in."""
    if isinstance(config, Blob) or len(config) > INPUT_BYTES_MAX:
        message = f"its config has more than {INPUT_BYTES_MAX:,} bytes; put large values elsewhere"
        _fail(execution, number, run, message)
        return
    settings = msgspec.json.decode(config)
    reference = settings.get("workflow")
    given = settings.get("input")
    if not isinstance(reference, str) or not reference:
        _fail(execution, number, run, '"workflow" must be the name of a workflow')
        return
    if not isinstance(given, (dict, type(None))):
        _fail(execution, number, run, '"input" must be an object')
        return
    record = execution.record
    node = execution.node(number)
    depth = _depth(record) + 1
    depth_max = (node.child.max_depth if node.child else None) or CHILD_DEPTH
    if depth > depth_max:
        message = (
            f"it would be {depth} levels below the first execution, and the limit is {depth_max}"
            ' (too_deep); "max_depth" of the node changes that'
        )
        _fail(execution, number, run, message)
        return
    execution.lookups[node.node_id] = Lookup(
        node.node_id, reference, record.pins.get(reference), root_of(record), given or {}
    )
    execution.preparing.add(number)


def _fail(execution: Execution, number: int, run: NodeRun | None, message: str) -> None:
    error = TaskError(ErrorCategory.CONFIG, message)
    fail_node(execution, number, run or open_run(execution, number), error)


def begin(execution: Execution, number: int, run: NodeRun | None, found: Found) -> None:
    """Start the child, and let the node wait for it."""
    node = execution.node(number)
    if run is None:
        run = open_run(execution, number)
    if found.error is not None:
        fail_node(execution, number, run, found.error)
        return
    if len(found.input) > INPUT_BYTES_MAX:
        _fail(execution, number, run, f"its input has more than {INPUT_BYTES_MAX:,} bytes")
        return
    about = node.child
    is_awaited = about is None or about.is_awaited
    on_end = "cancel" if about is None else about.on_parent_end
    run.attempt += 1
    run.started_at = execution.now
    run.due_at = None
    more = run.more = run.more or More()
    more.kind = KIND
    more.due_kind = None
    more.child = child_id(execution.record, run.node_id, run.attempt, found)
    raw_input = msgspec.Raw(found.input)
    more.config = msgspec.json.encode(
        ChildConfig(found.workflow, found.version, raw_input, is_awaited, on_end)
    )
    commands = execution.commands
    commands.size += len(found.input)
    start = start_of(execution.record, run)
    if start is not None:
        commands.sends.append(start)
    if not is_awaited:
        complete(execution, number, run, msgspec.json.encode({"execution_id": more.child}))
        return
    if node.timeout_seconds:
        run.due_at = execution.now + node.timeout_seconds
        more.due_kind = "limit"
    move_node(execution, run, NodeState.WAITING, f"{found.workflow}@{found.version}: {more.child}")
    deadlines.arm_waiting(execution, run)


def start_of(record: ExecutionRecord, run: NodeRun) -> StartChild | None:
    """The start of the child that a node's record names; None if it names none.

    From the records alone, so that it can be sent again.
    """
    more = run.more
    if more is None or more.child is None or more.config is None:
        return None
    config = msgspec.json.decode(more.config, type=ChildConfig)
    child = ExecutionRecord(
        more.child,
        config.workflow,
        config.version,
        ExecutionState.PENDING,
        bytes(config.input),
        run.started_at or record.created_at,
    )
    child.labels = record.labels
    child.priority = record.priority
    child.trace = record.trace
    child.started_by = record.started_by
    child.lenient_config = record.lenient_config
    child.pins = record.pins
    child.parent = Parent(
        record.execution_id,
        run.node_id,
        run.attempt,
        root_of(record),
        _depth(record) + 1,
        config.is_awaited,
        config.on_end,
    )
    return StartChild(child)


def root_of(record: ExecutionRecord) -> str:
    """The execution at the top of the tree that an execution is in."""
    return record.execution_id if record.parent is None else record.parent.root_id


def _depth(record: ExecutionRecord) -> int:
    return 0 if record.parent is None else record.parent.depth


def hand_down(execution: Execution, request: Literal["pause", "resume"]) -> None:
    """Ask of the children that nodes wait for what was asked of the execution."""
    if not execution.plan.has_children:
        return
    for run in execution.open_runs():
        if run.state is NodeState.WAITING and run.more is not None and run.more.child is not None:
            execution.commands.sends.append(ControlChild(run.more.child, request))


def limit_reached(execution: Execution, number: int, run: NodeRun) -> TaskError:
    """The child of a node has had all its time: it is cancelled. Returns the attempt's error."""
    seconds = execution.node(number).timeout_seconds
    if run.more is not None and run.more.child is not None:
        cancel = ControlChild(run.more.child, "cancel", Reason.PARENT_TIMEOUT)
        execution.commands.sends.append(cancel)
    message = f"its child didn't end within {seconds:g} s, its timeout_seconds"
    return TaskError(ErrorCategory.TIMEOUT, message)
