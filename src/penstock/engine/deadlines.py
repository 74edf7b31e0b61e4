"""What happens when a time comes that an execution waited for: retries, backstops, queue and execution timeouts."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from penstock.engine import ending
from penstock.engine.commands import NodeRun
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState, NodeState

if TYPE_CHECKING:
    from penstock.engine.execution import Execution

Deadline = tuple[float, int, int, str]
"""When, which node, which attempt of it, what for."""
WAIT_WHILE_PAUSED = ("retry", "queue")


def fire(execution: Execution) -> None:
    """Everything that is due.

    A deadline whose attempt is over has no effect; it was never taken off.
    """
    deadlines = execution.deadlines
    while deadlines and deadlines[0][0] <= execution.now:
        deadline = heappop(deadlines)
        _, number, attempt, kind = deadline
        if kind == "execution":
            ending.time_out(execution)
            return
        run = execution.runs.get(execution.nodes[number].address)
        if run is None or run.attempt != attempt:
            continue
        if kind in WAIT_WHILE_PAUSED and execution.record.state == ExecutionState.PAUSED:
            execution.deferred.append(deadline)
        else:
            _FIRE[kind](execution, number, run)


def resume(execution: Execution, paused_at: float) -> None:
    """What waited during the pause goes on; a task that nobody could take has lost no time in its queue."""
    for run in execution.runs.values():
        if run.state is NodeState.QUEUED and execution.node_of(run).queue_timeout_seconds:
            run.queued_at = (
                (run.queued_at or 0.0) + execution.now - max(paused_at, run.queued_at or 0.0)
            )
            execution.commands.nodes[run.address] = run
            execution.arm_queue(run)
    for deadline in execution.deferred:
        if deadline[3] != "queue":  # those were armed anew
            heappush(execution.deadlines, deadline)
    execution.deferred.clear()
    fire(execution)


def _retry(execution: Execution, number: int, run: NodeRun) -> None:
    if run.state is NodeState.RETRYING:
        execution.ready.append(number)


def _attempt(execution: Execution, _number: int, run: NodeRun) -> None:
    if run.state is NodeState.RUNNING:
        ending.stop_task(execution, run)
        seconds = execution.node_of(run).timeout_seconds
        message = f"no outcome {seconds:g} s after the start, and the worker didn't stop it in time"
        execution.attempt_failed(run, TaskError("timeout", message), retryable=True, asked=None)


def _queue(execution: Execution, number: int, run: NodeRun) -> None:
    seconds = execution.node_of(run).queue_timeout_seconds or 0.0
    # a pause may have moved the moment: then a later deadline stands beside this one
    if run.state is NodeState.QUEUED and (run.queued_at or 0.0) + seconds <= execution.now:
        ending.stop_task(execution, run)
        message = f"no worker took the task within {seconds:g} s; is one serving its queue?"
        execution.fail(number, run, TaskError("queue_timeout", message))


_FIRE: dict[str, Callable[[Execution, int, NodeRun], None]] = {
    "retry": _retry,
    "attempt": _attempt,
    "queue": _queue,
}
