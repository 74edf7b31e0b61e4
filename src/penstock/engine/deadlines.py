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


def fire(execution: Execution) -> None:
    """Everything that is due. A deadline whose attempt is over has no effect; it was never taken off."""
    kept: list[Deadline] = []
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
        if kind == "retry" and execution.record.state == ExecutionState.PAUSED:
            kept.append(deadline)
        else:
            _FIRE[kind](execution, number, run)
    for deadline in kept:
        heappush(deadlines, deadline)


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
    if run.state is NodeState.QUEUED:
        ending.stop_task(execution, run)
        seconds = execution.node_of(run).queue_timeout_seconds or 0.0
        message = f"no worker took the task within {seconds:g} s; is one serving its queue?"
        execution.fail(number, run, TaskError("queue_timeout", message))


_FIRE: dict[str, Callable[[Execution, int, NodeRun], None]] = {"retry": _retry, "attempt": _attempt, "queue": _queue}
