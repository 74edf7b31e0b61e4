"""Events of tasks: what workers report, and what became of tasks whose worker can't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine import deadlines, failures, losses
from penstock.engine.commands import NodeRun
from penstock.engine.event_handlers import on
from penstock.engine.events import (
    TaskEvent,
    TaskFailed,
    TaskLost,
    TaskReturned,
    TaskStarted,
    TaskSucceeded,
)
from penstock.engine.failing import attempt_failed, is_last_attempt
from penstock.engine.reasons import Reason
from penstock.engine.settling import complete
from penstock.engine.states import NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution

QUEUED = NodeState.QUEUED
RUNNING = NodeState.RUNNING


def current_run(execution: Execution, event: TaskEvent) -> NodeRun | None:
    """The node's record, if the event is about its current attempt and that hasn't ended."""
    run = execution.runs.get(event.node_id)
    if (
        run is None
        or event.attempt != run.attempt
        or event.generation != execution.record.generation
        or (run.state is not QUEUED and run.state is not RUNNING)
    ):
        return None
    return run


@on(TaskStarted)
def task_started(execution: Execution, event: TaskStarted) -> None:
    run = current_run(execution, event)
    if run is not None and run.state is QUEUED:
        _mark_running(execution, run, event.started_at, event.worker_id)
        deadlines.arm_backstop(execution, run)


@on(TaskSucceeded)
def task_succeeded(execution: Execution, event: TaskSucceeded) -> None:
    run = current_run(execution, event)
    if run is None:
        return
    if run.state is QUEUED:
        _mark_running(execution, run, event.started_at, event.worker_id)
    if event.logs:
        failures.record_logs(execution, run, event.logs, is_last=True)
    complete(execution, execution.number_of(event.node_id), run, event.output)


@on(TaskFailed)
def task_failed(execution: Execution, event: TaskFailed) -> None:
    run = current_run(execution, event)
    if run is None:
        return
    if run.state is QUEUED and event.worker_id:
        _mark_running(execution, run, event.started_at, event.worker_id)
    if event.logs:
        is_last = is_last_attempt(execution, run, event.error, retryable=event.retryable)
        failures.record_logs(execution, run, event.logs, is_last=is_last)
    attempt_failed(
        execution, run, event.error, retryable=event.retryable, retry_after=event.retry_after
    )


@on(TaskLost)
def task_lost(execution: Execution, event: TaskLost) -> None:
    run = current_run(execution, event)
    if run is None:
        return
    error = losses.record_loss(run, event, execution.node_of(run).retry.max_attempts)
    attempt_failed(execution, run, error, retryable=True, retry_after=0.0)


@on(TaskReturned)
def task_returned(execution: Execution, event: TaskReturned) -> None:
    run = current_run(execution, event)
    key = (event.node_id, event.attempt, event.worker_id)
    if run is None or run.state is not QUEUED or key in execution.returned:
        return
    # in memory only: the same message again has no effect, a new loss of the queue has
    execution.returned.add(key)
    run.reason = Reason.RETURNED
    execution.commands.nodes[run.node_id] = run
    execution.ready.append(execution.number_of(event.node_id))


def _mark_running(execution: Execution, run: NodeRun, started_at: float, worker_id: str) -> None:
    # the worker's clock may differ from ours: a start is never before the dispatch or after the
    # outcome
    run.started_at = min(max(started_at, run.queued_at or 0.0), execution.now)
    run.worker_id = worker_id
    move_node(execution, run, RUNNING, at=run.started_at)
