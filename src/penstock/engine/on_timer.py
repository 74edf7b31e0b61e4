"""Due deadlines of an execution: retries, backstops, queue timeouts and execution timeouts."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from penstock.engine import regions, waiting
from penstock.engine.commands import NodeRun
from penstock.engine.deadlines import Kind, arm_queue
from penstock.engine.ending import stop_task, time_out, time_out_cleanup
from penstock.engine.event_handlers import on
from penstock.engine.events import TaskError, TimerFired
from penstock.engine.failing import attempt_failed, fail_node
from penstock.engine.reasons import ErrorCategory
from penstock.engine.states import ExecutionState, NodeState
from penstock.engine.transitions import move_execution

if TYPE_CHECKING:
    from penstock.engine.state import Execution

PAUSED_KINDS = ("retry", "queue")
"""Deadlines that wait while the execution is paused."""


@on(TimerFired)
def timer_fired(execution: Execution, _event: TimerFired) -> None:
    execution.wake_at = None
    execution.commands.timer_changed = True
    execution.commands.wake_at = None
    _fire_due(execution)


def resume(execution: Execution) -> None:
    """End a pause: tasks are handed out again, and deadlines go on."""
    if execution.record.state != ExecutionState.PAUSED:
        return
    move_execution(execution, ExecutionState.RUNNING)
    execution.commands.paused = False
    _resume_deadlines(execution, execution.record.paused_at or execution.now)


def _resume_deadlines(execution: Execution, paused_at: float) -> None:
    """After a pause: deadlines that came go on; no task has lost time in its queue."""
    for run in execution.open_runs():
        if run.state is not NodeState.QUEUED:
            continue
        if not execution.node_of(run).queue_timeout_seconds:
            continue
        queued_at = run.queued_at or 0.0
        run.queued_at = queued_at + execution.now - max(paused_at, queued_at)
        execution.commands.nodes[run.node_id] = run
        arm_queue(execution, run)
    for deadline in execution.deadlines_paused:
        if deadline[3] != "queue":  # those were armed anew
            heappush(execution.deadlines, deadline)
    execution.deadlines_paused.clear()
    _fire_due(execution)


def _fire_due(execution: Execution) -> None:
    """Everything that is due. A deadline whose attempt is over has no effect."""
    deadlines = execution.deadlines
    while deadlines and deadlines[0][0] <= execution.now:
        deadline = heappop(deadlines)
        _, number, attempt, kind = deadline
        if kind in ("execution", "cleanup"):
            _end_in_time(execution)
            continue
        if kind == "item":
            regions.item_due(execution, number)
            continue
        if not execution.has_number(number):
            continue
        run = execution.runs.get(execution.node(number).node_id)
        if run is None or run.attempt != attempt:
            continue
        if kind in PAUSED_KINDS and execution.record.state == ExecutionState.PAUSED:
            execution.deadlines_paused.append(deadline)
        else:
            _DUE[kind](execution, number, run)


def _end_in_time(execution: Execution) -> None:
    """The execution, or its clean-up, is out of time. A clean-up isn't paused."""
    ending = execution.record.ending
    if ending is None:
        time_out(execution)
        resume(execution)
    else:
        time_out_cleanup(execution, ending)


def _retry_due(execution: Execution, number: int, run: NodeRun) -> None:
    if run.state is NodeState.RETRYING:
        execution.ready.append(number)


def _attempt_due(execution: Execution, _number: int, run: NodeRun) -> None:
    if run.state is not NodeState.RUNNING:
        return
    stop_task(execution, run)
    seconds = execution.node_of(run).timeout_seconds
    message = f"no outcome {seconds:g} s after the start, and the worker didn't stop it in time"
    error = TaskError(ErrorCategory.TIMEOUT, message)
    attempt_failed(execution, run, error, retryable=True, retry_after=None)


def _queue_due(execution: Execution, number: int, run: NodeRun) -> None:
    seconds = execution.node_of(run).queue_timeout_seconds or 0.0
    # a pause may have moved the moment: then a later deadline stands beside this one
    if run.state is not NodeState.QUEUED or (run.queued_at or 0.0) + seconds > execution.now:
        return
    stop_task(execution, run)
    message = f"no worker took the task within {seconds:g} s; is one serving its queue?"
    fail_node(execution, number, run, TaskError(ErrorCategory.QUEUE_TIMEOUT, message))


def _region_due(execution: Execution, number: int, _run: NodeRun) -> None:
    regions.region_due(execution, number)


def _round_due(execution: Execution, number: int, _run: NodeRun) -> None:
    regions.round_due(execution, number)


_DUE: dict[Kind, Callable[[Execution, int, NodeRun], None]] = {
    "retry": _retry_due,
    "attempt": _attempt_due,
    "queue": _queue_due,
    "region": _region_due,
    "round": _round_due,
    "wait": waiting.wait_is_over,
    "limit": waiting.limit_reached,
}
