"""Due deadlines of an execution: retries, backstops, queue timeouts and execution timeouts.

Of several that are due, the earliest has its effect first, and everything that follows from it
comes before the next one (`handling`). So what happens doesn't depend on how late the timer is.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from penstock.engine import children, regions, waiting
from penstock.engine.commands import NodeRun
from penstock.engine.deadlines import Deadline, Kind, arm_queue
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
    _begin_firing(execution)


def _begin_firing(execution: Execution) -> None:
    """Fire the first deadline that is due; the others follow with its consequences.

    It isn't held up by nodes that are left over from another commit. While earlier deadlines are
    being fired, it waits for what follows from these.
    """
    is_under_way = execution.firing_until is not None
    execution.firing_until = execution.now
    if not is_under_way:
        fire_next(execution)


def resume(execution: Execution) -> None:
    """End a pause: tasks are handed out again, and deadlines go on."""
    if execution.record.state != ExecutionState.PAUSED:
        return
    move_execution(execution, ExecutionState.RUNNING)
    execution.commands.paused = False
    children.hand_down(execution, "resume")
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
    _begin_firing(execution)


def fire_next(execution: Execution) -> None:
    """Let the next deadline that is due have its effect; none is left if `firing_until` is None.

    Deadlines that mean nothing any more are passed over: a new owner doesn't have them.
    """
    deadlines = execution.deadlines
    until = execution.firing_until
    while until is not None and deadlines and deadlines[0][0] <= until:
        if _fire(execution, heappop(deadlines)):
            return
    execution.firing_until = None


def _fire(execution: Execution, deadline: Deadline) -> bool:
    """Whether the deadline had an effect: its attempt may be over, or the execution paused."""
    _, number, attempt, kind = deadline
    if kind in ("execution", "cleanup"):
        _end_in_time(execution)
        return True
    if kind == "item":
        return regions.item_due(execution, number)
    if not execution.has_number(number):
        return False
    run = execution.runs.get(execution.node(number).node_id)
    if run is None or run.attempt != attempt:
        return False
    if kind in PAUSED_KINDS and execution.record.state == ExecutionState.PAUSED:
        execution.deadlines_paused.append(deadline)
        return False
    return _DUE[kind](execution, number, run)


def _end_in_time(execution: Execution) -> None:
    """The execution, or its clean-up, is out of time. A clean-up isn't paused."""
    ending = execution.record.ending
    if ending is None:
        time_out(execution)
        resume(execution)
    else:
        time_out_cleanup(execution, ending)


def _retry_due(execution: Execution, number: int, run: NodeRun) -> bool:
    if run.state is not NodeState.RETRYING:
        return False
    execution.ready.append(number)
    return True


def _attempt_due(execution: Execution, _number: int, run: NodeRun) -> bool:
    if run.state is not NodeState.RUNNING:
        return False
    stop_task(execution, run)
    seconds = execution.node_of(run).timeout_seconds
    message = f"no outcome {seconds:g} s after the start, and the worker didn't stop it in time"
    error = TaskError(ErrorCategory.TIMEOUT, message)
    attempt_failed(execution, run, error, retryable=True, retry_after=None)
    return True


def _queue_due(execution: Execution, number: int, run: NodeRun) -> bool:
    seconds = execution.node_of(run).queue_timeout_seconds or 0.0
    # a pause may have moved the moment: then a later deadline stands beside this one
    if run.state is not NodeState.QUEUED or (run.queued_at or 0.0) + seconds > execution.now:
        return False
    stop_task(execution, run)
    message = f"no worker took the task within {seconds:g} s; is one serving its queue?"
    fail_node(execution, number, run, TaskError(ErrorCategory.QUEUE_TIMEOUT, message))
    return True


def _limit_due(execution: Execution, number: int, run: NodeRun) -> bool:
    """The `timeout_seconds` of a node that waits are over."""
    if execution.node(number).child is None:
        return waiting.limit_reached(execution, number, run)
    if run.state is not NodeState.WAITING:
        return False
    error = children.limit_reached(execution, number, run)
    attempt_failed(execution, run, error, retryable=True, retry_after=None)
    return True


def _region_due(execution: Execution, number: int, _run: NodeRun) -> bool:
    return regions.region_due(execution, number)


def _round_due(execution: Execution, number: int, _run: NodeRun) -> bool:
    return regions.round_due(execution, number)


_DUE: dict[Kind, Callable[[Execution, int, NodeRun], bool]] = {
    "retry": _retry_due,
    "attempt": _attempt_due,
    "queue": _queue_due,
    "region": _region_due,
    "round": _round_due,
    "wait": waiting.wait_is_over,
    "limit": _limit_due,
}
