"""How an execution ends: being cancelled, timing out, or with its last node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine import failures, reused_outputs
from penstock.engine.commands import NodeRun, Stop
from penstock.engine.events import TaskError
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.settling import open_run
from penstock.engine.states import NODE_ENDS, ExecutionState, NodeState
from penstock.engine.transitions import move_execution, move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def stop_everything(
    execution: Execution, reason: str, pending: NodeState = NodeState.SKIPPED
) -> None:
    """End every node that hasn't ended, whatever its rule: nothing starts any more."""
    if execution.reused:
        # these nodes have completed, whatever becomes of this execution: the next retry reuses
        # their outputs too
        reused_outputs.record(execution)
    execution.ready.clear()
    execution.blocked.clear()
    execution.considered.clear()
    execution.wanted.clear()
    execution.unprepared.clear()
    execution.preparing.clear()
    execution.prepared.clear()
    for number, node in enumerate(execution.nodes):
        run = execution.runs.get(node.node_id)
        if run is None:
            move_node(execution, open_run(execution, number), pending, reason)
        elif run.state not in NODE_ENDS:
            stop_task(execution, run)
            move_node(execution, run, NodeState.CANCELLED, reason)


def stop_task(execution: Execution, run: NodeRun) -> None:
    """Tell the worker that has the node's task, if there is one, that nobody waits for it."""
    if run.state in (NodeState.QUEUED, NodeState.RUNNING):
        record = execution.record
        execution.commands.stops.append(
            Stop(record.execution_id, run.node_id, record.generation, run.attempt)
        )


def set_execution_error(execution: Execution, error: TaskError) -> None:
    """The execution as a whole failed, not one of its nodes."""
    execution.record.error = failures.cut(error)
    execution.record.error_node_id = None


def time_out(execution: Execution) -> None:
    seconds = execution.plan.timeout_seconds or 0.0
    message = f"the execution didn't end within {seconds:g} s"
    set_execution_error(execution, TaskError(ErrorCategory.TIMEOUT, message))
    stop_everything(execution, Reason.EXECUTION_TIMEOUT)
    finish(execution, ExecutionState.FAILED)


def finish(execution: Execution, state: ExecutionState, reason: str | None = None) -> None:
    """End the execution; without a `reason`, its error is the reason."""
    record = execution.record
    record.finished_at = execution.now
    if reason is None and record.error is not None:
        reason = record.error.category
    move_execution(execution, state, reason)
    execution.deadlines.clear()
    execution.commands.finished = True
    execution.commands.final_runs = execution.runs
