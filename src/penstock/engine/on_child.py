"""A child has ended: the node that waits for it completes, or its attempt has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.commands import NodeRun
from penstock.engine.event_handlers import on
from penstock.engine.events import ChildEnded, TaskError
from penstock.engine.failing import attempt_failed, fail_node
from penstock.engine.reasons import ErrorCategory
from penstock.engine.settling import complete
from penstock.engine.states import ExecutionState, NodeState

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def awaiting_run(execution: Execution, event: ChildEnded) -> NodeRun | None:
    """The record of the node, if it waits for this child in this attempt."""
    run = execution.runs.get(event.node_id)
    if run is None or run.state is not NodeState.WAITING or run.more is None:
        return None
    if run.attempt != event.attempt or run.more.child != event.child:
        return None
    return run


@on(ChildEnded)
def child_ended(execution: Execution, event: ChildEnded) -> None:
    run = awaiting_run(execution, event)
    if run is None:
        return
    number = execution.number_of(event.node_id)
    if event.state == ExecutionState.COMPLETED:
        output = b"null" if event.output is None else event.output
        complete(execution, number, run, output, f"child {event.child}")
        return
    if event.state == ExecutionState.CANCELLED:
        message = f"its child {event.child} was cancelled"
        fail_node(execution, number, run, TaskError(ErrorCategory.CHILD, message))
        return
    message = f"its child {event.child} failed"
    if event.error is not None:
        message += f": {event.error.category}: {event.error.message}"
    error = TaskError(ErrorCategory.CHILD, message)
    attempt_failed(execution, run, error, retryable=True, retry_after=None)
