"""Events of the execution itself: it began, it goes on, it broke."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine import deadlines
from penstock.engine.ending import finish, set_execution_error, stop_everything
from penstock.engine.event_handlers import on
from penstock.engine.events import (
    Continued,
    ExecutionBroke,
    ExecutionStarted,
    TaskError,
)
from penstock.engine.reasons import ErrorCategory, Reason
from penstock.engine.states import ExecutionState
from penstock.engine.transitions import move_execution

if TYPE_CHECKING:
    from penstock.engine.state import Execution

# looked up here, once: see `settling`
PENDING = ExecutionState.PENDING
RUNNING = ExecutionState.RUNNING


@on(ExecutionStarted)
def execution_started(execution: Execution, _event: ExecutionStarted) -> None:
    if execution.record.state is not PENDING:
        return
    execution.record.started_at = execution.now
    move_execution(execution, RUNNING)
    deadlines.arm_execution(execution)
    for number in execution.plan.roots:
        execution.readied.add(number)
        execution.ready.append(number)


@on(Continued)
def continued(_execution: Execution, _event: Continued) -> None:
    """Nothing happened; there is more to do."""


@on(ExecutionBroke)
def execution_broke(execution: Execution, event: ExecutionBroke) -> None:
    set_execution_error(execution, TaskError(ErrorCategory.INTERNAL_ERROR, event.message))
    stop_everything(execution, Reason.INTERNAL_ERROR)
    finish(execution, ExecutionState.FAILED)
