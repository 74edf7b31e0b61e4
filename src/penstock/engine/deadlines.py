"""Deadlines of an execution: retries, backstops, and timeouts of queues, execution and clean-up.

They are kept in a heap in memory, made again from the records by a load. The store keeps one timer
per execution, for the earliest; `on_timer` says what happens when it fires.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING, Literal, cast

from penstock.engine.commands import NodeRun

if TYPE_CHECKING:
    from penstock.engine.state import Execution

Kind = Literal[
    "retry",
    "attempt",
    "queue",
    "execution",
    "cleanup",
    "region",
    "item",
    "round",
    "wait",
    "limit",
]
Deadline = tuple[float, int, int, Kind]
"""When, the number of the node, which attempt of it, what for."""

NO_NODE = -1
"""Stands for a node in the deadlines of the whole execution and of its clean-up."""
BACKSTOP_SECONDS = 10.0
"""The worker stops an attempt at its timeout; this much later the owner does, if it must."""


def arm(execution: Execution, due_at: float, run: NodeRun, kind: Kind) -> None:
    heappush(execution.deadlines, (due_at, execution.number_of(run.node_id), run.attempt, kind))


def arm_backstop(execution: Execution, run: NodeRun) -> None:
    timeout_seconds = execution.node_of(run).timeout_seconds
    due_at = (run.started_at or 0.0) + timeout_seconds + BACKSTOP_SECONDS
    arm(execution, due_at, run, "attempt")


def arm_queue(execution: Execution, run: NodeRun) -> None:
    seconds = execution.node_of(run).queue_timeout_seconds
    if seconds:
        arm(execution, (run.queued_at or 0.0) + seconds, run, "queue")


def arm_region(execution: Execution, run: NodeRun) -> None:
    """The deadline of a map or a loop as a whole."""
    seconds = execution.node_of(run).timeout_seconds
    if seconds:
        arm(execution, (run.started_at or 0.0) + seconds, run, "region")


def arm_waiting(execution: Execution, run: NodeRun) -> None:
    if run.due_at is not None and run.more is not None and run.more.due_kind is not None:
        arm(execution, run.due_at, run, cast("Kind", run.more.due_kind))


def arm_execution(execution: Execution) -> None:
    ending = execution.record.ending
    if ending is not None:
        due_at = ending.at + execution.plan.cleanup_timeout_seconds
        heappush(execution.deadlines, (due_at, NO_NODE, 0, "cleanup"))
        return
    timeout_seconds = execution.plan.timeout_seconds
    if timeout_seconds is None:
        return
    started_at = execution.record.started_at or execution.now
    heappush(execution.deadlines, (started_at + timeout_seconds, NO_NODE, 0, "execution"))


def wake(execution: Execution, at: float) -> None:
    """Set the stored timer, unless it is set to an earlier time: it is set again when it fires."""
    if execution.wake_at is None or at < execution.wake_at:
        execution.wake_at = at
        execution.commands.timer_changed = True
        execution.commands.wake_at = at


def due(execution: Execution, now: float) -> list[Deadline]:
    """Deadlines that are due, in no order. The heap isn't changed."""
    deadlines = execution.deadlines
    due_now: list[Deadline] = []
    indexes = [0]
    while indexes:
        index = indexes.pop()
        # below a deadline in the heap are only later ones
        if index < len(deadlines) and deadlines[index][0] <= now:
            due_now.append(deadlines[index])
            indexes += (2 * index + 1, 2 * index + 2)
    return due_now


def continue_later(execution: Execution) -> None:
    """Leave the rest to the next commit. The timer is for an owner that dies before it."""
    execution.commands.has_more = True
    wake(execution, execution.now)
