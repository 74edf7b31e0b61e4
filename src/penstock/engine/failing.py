"""How a node fails: the next attempt, or its end, and what that means for the execution."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from penstock.engine import deadlines, failures, losses
from penstock.engine.commands import DeadLetter, NodeRun
from penstock.engine.ending import stop_task
from penstock.engine.events import TaskError
from penstock.engine.readiness import CLEANUP_RULES, Outcome
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.retry import delay_seconds
from penstock.engine.settling import open_run, settle, skip
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def is_last_attempt(execution: Execution, run: NodeRun, *, retryable: bool) -> bool:
    """Whether a node whose current attempt fails has no more of them."""
    if not retryable:
        return True
    return losses.attempts_used(run) >= execution.node_of(run).retry.max_attempts


def attempt_failed(
    execution: Execution,
    run: NodeRun,
    error: TaskError,
    *,
    retryable: bool,
    retry_after: float | None,
) -> None:
    """Try the node again after its delay, or fail it if this was its last attempt."""
    number = execution.numbers[run.node_id]
    if is_last_attempt(execution, run, retryable=retryable):
        fail_node(execution, number, run, error)
        return
    failures.note(execution, run, error, is_last=False)
    seed = f"{execution.record.execution_id}:{run.node_id}"
    retry = execution.nodes[number].retry
    delay = delay_seconds(retry, run.attempt, seed, retry_after=retry_after)
    run.due_at = execution.now + delay
    move_node(execution, run, NodeState.RETRYING, error.category)
    if delay:
        deadlines.arm(execution, run.due_at, run, "retry")
    else:
        execution.ready.append(number)


def fail_node(
    execution: Execution, number: int, run: NodeRun, error: TaskError, *, dead_letter: bool = True
) -> None:
    """The node has no more attempts."""
    node = execution.nodes[number]
    error = failures.cut(error)
    failures.note(execution, run, error, is_last=True)
    move_node(execution, run, NodeState.FAILED, error.category)
    if dead_letter and node.dead_letter:
        execution.commands.dead_letters.append(
            DeadLetter(
                execution.record.execution_id,
                node.node_id,
                node.handler,
                execution.now,
                run.failures,
                run.failures_dropped,
            )
        )
    settle(execution, number, Outcome.SUCCESS if node.optional else Outcome.FAILURE)
    if not node.optional:
        _node_failed(execution, error, node.node_id)


def upstream_failed(execution: Execution, number: int) -> None:
    """A dependency has failed: skip the node, or fail it too if it asks for that."""
    if not execution.nodes[number].fails_with_dependency:
        skip(execution, number, Reason.UPSTREAM_FAILED)
        return
    message = "a dependency failed, and on_dependency_failure is fail"
    error = TaskError(ErrorCategory.DEPENDENCY, message)
    fail_node(execution, number, open_run(execution, number), error, dead_letter=False)


def _node_failed(execution: Execution, error: TaskError, node_id: str) -> None:
    """A node that isn't optional has failed. The first such failure is the execution's error."""
    record = execution.record
    if record.error is None:
        record.error = error
        record.error_node_id = node_id
        execution.commands.record = record
    if execution.plan.on_failure == "fail_fast" and not record.failing:
        record.failing = True
        execution.commands.record = record
        _fail_fast(execution)


def _fail_fast(execution: Execution) -> None:
    """Stop what runs and skip what waits; nodes for clean-up and notification may still start."""
    dropped = _drop_ready(execution)
    for number in execution.in_order():
        run = execution.runs.get(execution.nodes[number].node_id)
        if run is None or run.state in NODE_ENDS or _is_cleanup(execution, number):
            continue
        stop_task(execution, run)
        move_node(execution, run, NodeState.CANCELLED, Reason.EXECUTION_FAILED)
        settle(execution, number, Outcome.SKIP)
    for number in dropped:
        node_id = execution.nodes[number].node_id
        execution.prepared.pop(node_id, None)
        execution.unprepared.pop(node_id, None)
        if node_id not in execution.runs:
            skip(execution, number, Reason.EXECUTION_FAILED)
    # all that wait are looked at again, parents before children
    execution.considered.clear()
    execution.considered.extend(
        number
        for number in execution.in_order()
        if execution.nodes[number].node_id not in execution.runs
    )


def _drop_ready(execution: Execution) -> list[int]:
    """Take nodes that must not start any more off the lists of those that were about to."""
    dropped: list[int] = []
    waiting: deque[int] | list[int]
    for waiting in (execution.ready, execution.blocked):
        cleanups = [number for number in waiting if _is_cleanup(execution, number)]
        dropped += [number for number in waiting if not _is_cleanup(execution, number)]
        waiting.clear()
        waiting.extend(cleanups)
    for number in sorted(execution.preparing):
        if not _is_cleanup(execution, number):
            execution.preparing.discard(number)
            dropped.append(number)
    return dropped


def _is_cleanup(execution: Execution, number: int) -> bool:
    node = execution.nodes[number]
    return node.rule in CLEANUP_RULES and bool(node.dependencies)
