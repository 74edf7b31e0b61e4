"""Transitions: the only code that writes the state of a node or of an execution.

Each function goes by the table in `states`: what isn't in it raises `InvalidTransition`. Each
change of state gives one history line. `tests/tidy` checks that no other module assigns a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from penstock.engine import failures
from penstock.engine.commands import (
    ChildConfig,
    Commands,
    ControlChild,
    ExecutionRecord,
    More,
    NodeRun,
    Stop,
    Transition,
)
from penstock.engine.events import TaskError
from penstock.engine.parents import end_of, tell_parent
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.states import (
    NODE_ENDS,
    NODE_TRANSITIONS,
    ExecutionState,
    NodeState,
    check_execution,
    check_node,
)

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def move_node(
    execution: Execution,
    run: NodeRun,
    state: NodeState,
    reason: str | None = None,
    at: float | None = None,
) -> None:
    """Change the state of a node; `at` is the time of the change if it isn't now."""
    before = run.state
    # checked here too: this is called for every transition, and a call of check_node costs as much
    if state not in NODE_TRANSITIONS[before]:
        check_node(run.node_id, before, state)
    when = execution.now if at is None else at
    seq = execution.last_seq + 1
    execution.last_seq = seq
    commands = execution.commands
    commands.history.append(Transition(seq, when, run.node_id, before, state, run.attempt, reason))
    commands.nodes[run.node_id] = run
    run.state = state
    run.reason = reason
    if state in NODE_ENDS:
        run.finished_at = when
        if execution.items:
            _count_end(execution, run.node_id)
        else:
            execution.unfinished_nodes -= 1


def move_item(
    execution: Execution, run: NodeRun, state: NodeState, reason: str | None = None
) -> None:
    """Change the state of an item itself, which is no node: nothing counts it."""
    check_node(run.node_id, run.state, state)
    execution.last_seq += 1
    line = Transition(
        execution.last_seq, execution.now, run.node_id, run.state, state, run.attempt, reason
    )
    execution.commands.history.append(line)
    execution.commands.nodes[run.node_id] = run
    run.state = state
    run.reason = reason
    run.finished_at = execution.now


def _count_end(execution: Execution, node_id: str) -> None:
    """Count a node's end for the item that it is in, or for the execution."""
    if node_id in execution.numbers:
        execution.unfinished_nodes -= 1
        return
    item = execution.items[execution.item_numbers[node_id]]
    item.unfinished -= 1
    if not item.unfinished:
        execution.ended_items.append(item)


def move_execution(execution: Execution, state: ExecutionState, reason: str | None = None) -> None:
    """Change the state of the execution."""
    record = execution.record
    before = record.state
    check_execution(record.execution_id, before, state)
    record.state = state
    execution.commands.record = record
    execution.last_seq += 1
    execution.commands.history.append(
        Transition(execution.last_seq, execution.now, "", before, state, 0, reason)
    )


def fail_from_records(
    record: ExecutionRecord, runs: Mapping[str, NodeRun], last_seq: int, message: str, now: float
) -> Commands:
    """Fail an execution that can't be handled any more, from its records alone, without a plan."""
    commands = Commands(record.execution_id, record=record, finished=True, final_runs=runs)
    for run in runs.values():
        if run.state in NODE_ENDS:
            continue
        if run.state in (NodeState.QUEUED, NodeState.RUNNING):
            commands.stops.append(
                Stop(record.execution_id, run.node_id, record.generation, run.attempt)
            )
        elif run.state is NodeState.WAITING and run.more is not None:
            commands.sends += _cancel_child(run.more)
        last_seq += 1
        commands.history.append(
            _transition(run, NodeState.CANCELLED, last_seq, now, Reason.INTERNAL_ERROR)
        )
        run.reason = Reason.INTERNAL_ERROR
        run.finished_at = now
        commands.nodes[run.node_id] = run
    before = record.state
    check_execution(record.execution_id, before, ExecutionState.FAILED)
    record.state = ExecutionState.FAILED
    record.finished_at = now
    record.error = failures.cut(TaskError(ErrorCategory.INTERNAL_ERROR, message))
    record.error_node_id = None
    commands.history.append(
        Transition(last_seq + 1, now, "", before, ExecutionState.FAILED, 0, Reason.INTERNAL_ERROR)
    )
    tell_parent(commands, end_of(record))
    return commands


def _cancel_child(more: More) -> list[ControlChild]:
    """What cancels the child of a node that waits for it, unless it is to be left alone."""
    if more.child is None or more.config is None:
        return []
    if msgspec.json.decode(more.config, type=ChildConfig).on_end == "leave":
        return []
    return [ControlChild(more.child, "cancel", Reason.PARENT_ENDED)]


def begin_generation(
    record: ExecutionRecord, runs: Iterable[NodeRun], last_seq: int, generation: int, now: float
) -> list[Transition]:
    """Put an execution whose hot store has lost its data into a new generation.

    What workers still do for the old generation has no effect then. What was handed out is handed
    out again, with the same attempt: the loss is nobody's failure. A node that ran goes back by the
    table (RUNNING, RETRYING, QUEUED); one that was queued stays so. The tasks themselves follow
    when the execution is loaded and continued, as for tasks that were returned.

    Changes the records, and returns the history lines that go with it.
    """
    record.generation = generation
    lines: list[Transition] = []
    for run in runs:
        if run.state is NodeState.RUNNING:
            for state in (NodeState.RETRYING, NodeState.QUEUED):
                seq = last_seq + len(lines) + 1
                lines.append(_transition(run, state, seq, now, Reason.REBUILT))
        elif run.state is not NodeState.QUEUED:
            continue
        run.reason = Reason.RETURNED
        run.queued_at = now
        run.started_at = None
        run.worker_id = None
    return lines


def _transition(run: NodeRun, state: NodeState, seq: int, now: float, reason: Reason) -> Transition:
    """Change the state of a node of which only the record is at hand."""
    check_node(run.node_id, run.state, state)
    line = Transition(seq, now, run.node_id, run.state, state, run.attempt, reason)
    run.state = state
    return line
