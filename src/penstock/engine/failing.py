"""How a node fails: the next attempt, or its end, and what that means for the execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine import deadlines, failures, losses
from penstock.engine.catching import (
    caught_by,
    leave_dead_letter,
    may_be_handled,
    record_error,
    record_unhandled,
)
from penstock.engine.commands import NodeRun
from penstock.engine.events import TaskError
from penstock.engine.readiness import Outcome
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.retry import delay_seconds, is_retried
from penstock.engine.settling import open_run, settle, skip
from penstock.engine.states import ExecutionState, NodeState
from penstock.engine.stopping import fail_fast
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution

DEAD_LETTERS_MAX = 100
"""Items of a map whose failed nodes get dead letters."""


def is_last_attempt(
    execution: Execution, run: NodeRun, error: TaskError, *, retryable: bool
) -> bool:
    """Whether a node whose current attempt fails has no more of them."""
    retry = execution.node_of(run).retry
    if not is_retried(retry, error, retryable=retryable):
        return True
    return losses.attempts_used(run) >= retry.max_attempts


def attempt_failed(
    execution: Execution,
    run: NodeRun,
    error: TaskError,
    *,
    retryable: bool,
    retry_after: float | None,
) -> None:
    """Try the node again after its delay, or fail it if this was its last attempt."""
    number = execution.number_of(run.node_id)
    if is_last_attempt(execution, run, error, retryable=retryable):
        fail_node(execution, number, run, error)
        return
    failures.note(execution, run, error, is_last=False)
    seed = f"{execution.record.execution_id}:{run.node_id}"
    retry = execution.node(number).retry
    delay = delay_seconds(retry, run.attempt, seed, retry_after=retry_after)
    run.due_at = execution.now + delay
    move_node(execution, run, NodeState.RETRYING, error.category)
    if delay:
        deadlines.arm(execution, run.due_at, run, "retry")
    else:
        execution.ready.append(number)


def fail_node(  # noqa: PLR0913 -- what a failure has
    execution: Execution,
    number: int,
    run: NodeRun,
    error: TaskError,
    *,
    dead_letter: bool = True,
    reason: str | None = None,
) -> None:
    """The node has no more attempts. Without a `reason`, the history has the error's category."""
    node = execution.node(number)
    error = failures.cut(error)
    failures.note(execution, run, error, is_last=True)
    move_node(execution, run, NodeState.FAILED, reason or error.category)
    is_open = bool(node.catchers) and not node.optional and may_be_handled(execution, number)
    if dead_letter and not is_open and has_room_for_dead_letter(execution, number):
        leave_dead_letter(execution, node, run)
    settle(execution, number, Outcome.SUCCESS if node.optional else Outcome.FAILURE)
    if not node.optional and not is_open:
        _node_failed(execution, number, error)


def has_room_for_dead_letter(execution: Execution, number: int) -> bool:
    """Whether the map that a node is in may have one more dead letter."""
    item = execution.item_of(number)
    while item is not None:
        if item.region.failed >= DEAD_LETTERS_MAX:
            return False
        item = item.region.outer
    return True


def _node_failed(execution: Execution, number: int, error: TaskError) -> None:
    """A node that isn't optional has failed, and nobody may handle that.

    The first such failure is the execution's error, or that of the item which the node is in.
    """
    item = execution.item_of(number)
    if item is None:
        record_error(execution, number, error)
        _fail_execution(execution)
        return
    item.fail(execution.runs[execution.node(number).node_id])
    if execution.plan.on_failure == "fail_fast" and not item.failing:
        item.failing = True
        fail_fast(execution, item)


def upstream_failed(execution: Execution, number: int) -> None:
    """A dependency has failed: skip the node, or fail it too if it asks for that."""
    if not execution.node(number).fails_with_dependency:
        skip(execution, number, Reason.UPSTREAM_FAILED)
        return
    message = "a dependency failed, and on_dependency_failure is fail"
    error = TaskError(ErrorCategory.DEPENDENCY, message)
    fail_node(execution, number, open_run(execution, number), error, dead_letter=False)


def review_catches(execution: Execution) -> None:
    """After catchers have ended: failures that nobody may handle any more have their effect."""
    ending = execution.record.ending
    while execution.ended_catchers:
        unhandled = caught_by(execution, execution.ended_catchers)
        execution.ended_catchers.clear()
        if ending is not None and ending.state is ExecutionState.COMPLETED:
            return  # a terminate node has said that failures before it don't count
        for number in unhandled:
            record_unhandled(execution, number)
            if execution.node(number).catches:
                execution.ended_catchers.append(number)
        if unhandled:
            _fail_execution(execution)


def _fail_execution(execution: Execution) -> None:
    """A node that isn't optional has failed, and nobody handles that."""
    record = execution.record
    if execution.plan.on_failure == "fail_fast" and not record.failing:
        record.failing = True
        execution.commands.record = record
        fail_fast(execution)
