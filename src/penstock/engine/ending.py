"""How an execution ends: failing fast, timing out, being cancelled.

Each looks at every node once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.engine import failures, keeping
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun, Stop, Transition
from penstock.engine.events import TaskError
from penstock.engine.readiness import CLEANUP_RULES, Outcome
from penstock.engine.states import NODE_ENDS, ExecutionState, NodeState, check_execution

if TYPE_CHECKING:
    from penstock.engine.execution import Execution


def fail(execution: Execution, error: TaskError, address: str) -> None:
    """A node that isn't optional has failed. The first one is the execution's error."""
    record = execution.record
    if record.error is None:
        record.error, record.error_node = error, address
        execution.commands.record = record
    if execution.plan.on_failure == "fail_fast" and not record.failing:
        record.failing = True
        execution.commands.record = record
        _sweep(execution)


def _sweep(execution: Execution) -> None:
    """Stop what runs and skip what waits; nodes for clean-up and notification may still start."""
    dropped: list[int] = []
    for waiting in (execution.ready, execution.blocked):
        dropped += [number for number in waiting if not _is_cleanup(execution, number)]
        kept = [number for number in waiting if _is_cleanup(execution, number)]
        waiting.clear()
        waiting.extend(kept)
    for number in sorted(execution.waiting):
        if not _is_cleanup(execution, number):
            execution.waiting.discard(number)
            dropped.append(number)
    for number in execution.in_order():
        run = execution.runs.get(execution.nodes[number].address)
        if run is not None and run.state not in NODE_ENDS and not _is_cleanup(execution, number):
            stop_task(execution, run)
            execution.move(run, NodeState.CANCELLED, "execution_failed")
            execution.settle(number, Outcome.SKIP)
    for number in dropped:
        execution.prepared.pop(execution.nodes[number].address, None)
        execution.unprepared.pop(execution.nodes[number].address, None)
        if execution.nodes[number].address not in execution.runs:
            execution.skip(number, "execution_failed")
    execution.considered.clear()  # all that wait are looked at again, parents before children
    execution.considered.extend(
        i for i in execution.in_order() if execution.nodes[i].address not in execution.runs
    )


def _is_cleanup(execution: Execution, number: int) -> bool:
    return execution.nodes[number].rule in CLEANUP_RULES and bool(
        execution.nodes[number].dependencies
    )


def stop_everything(
    execution: Execution, reason: str, pending: NodeState = NodeState.SKIPPED
) -> None:
    """End every node that hasn't ended, without a look at rules: nothing starts any more."""
    if (
        execution.kept
    ):  # they have completed, whatever becomes of this execution: the next retry keeps them too
        keeping.record(execution)
    for waiting in (execution.ready, execution.blocked, execution.considered, execution.wanted):
        waiting.clear()
    for preparing in (execution.unprepared, execution.waiting, execution.prepared):
        preparing.clear()
    for number, node in enumerate(execution.nodes):
        run = execution.runs.get(node.address)
        if run is None:
            execution.move(execution.open_run(number), pending, reason)
        elif run.state not in NODE_ENDS:
            stop_task(execution, run)
            execution.move(run, NodeState.CANCELLED, reason)


def stop_task(execution: Execution, run: NodeRun) -> None:
    if run.state in (NodeState.QUEUED, NodeState.RUNNING):
        record = execution.record
        execution.commands.stops.append(
            Stop(record.execution_id, run.address, record.generation, run.attempt)
        )


def set_execution_error(execution: Execution, error: TaskError) -> None:
    """Set the error of an execution that failed as a whole, not by one of its nodes."""
    execution.record.error, execution.record.error_node = failures.cut(error), None


def time_out(execution: Execution) -> None:
    seconds = execution.plan.timeout_seconds or 0.0
    set_execution_error(
        execution, TaskError("timeout", f"the execution didn't end within {seconds:g} s")
    )
    stop_everything(execution, "execution_timeout")
    finish(execution, ExecutionState.FAILED)


def finish(execution: Execution, state: ExecutionState, reason: str | None = None) -> None:
    """End the execution; without a `reason`, its error is the reason."""
    execution.record.finished_at = execution.now
    error = execution.record.error
    if reason is None and error is not None:
        reason = error.category
    execution.move_execution(state, reason)
    execution.deadlines.clear()
    execution.commands.finished = True
    execution.commands.final_runs = execution.runs


def fail_from_records(
    record: ExecutionRecord, runs: Mapping[str, NodeRun], last_seq: int, message: str, now: float
) -> Commands:
    """Fail an execution that can't be handled any more, from its records alone: no plan, no rules."""
    commands = Commands(record.execution_id, record=record, finished=True, final_runs=runs)
    for run in runs.values():
        if run.state in NODE_ENDS:
            continue
        if run.state in (NodeState.QUEUED, NodeState.RUNNING):
            commands.stops.append(
                Stop(record.execution_id, run.address, record.generation, run.attempt)
            )
        last_seq += 1
        line = Transition(
            last_seq,
            now,
            run.address,
            run.state,
            NodeState.CANCELLED,
            run.attempt,
            "internal_error",
        )
        commands.history.append(line)
        run.state, run.reason, run.finished_at = NodeState.CANCELLED, "internal_error", now
        commands.nodes[run.address] = run
    check_execution(record.execution_id, record.state, ExecutionState.FAILED)
    line = Transition(
        last_seq + 1, now, "", record.state, ExecutionState.FAILED, 0, "internal_error"
    )
    commands.history.append(line)
    record.state, record.finished_at = ExecutionState.FAILED, now
    record.error, record.error_node = failures.cut(TaskError("internal_error", message)), None
    return commands
