"""Control requests of users: cancel, pause, resume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.ending import finish, stop_everything
from penstock.engine.event_handlers import on
from penstock.engine.events import CancelRequested, PauseRequested, ResumeRequested
from penstock.engine.on_timer import resume_deadlines
from penstock.engine.states import ExecutionState, NodeState
from penstock.engine.transitions import move_execution

if TYPE_CHECKING:
    from penstock.engine.state import Execution


@on(CancelRequested)
def cancel_requested(execution: Execution, event: CancelRequested) -> None:
    stop_everything(execution, event.reason, pending=NodeState.CANCELLED)
    finish(execution, ExecutionState.CANCELLED, event.reason)


@on(PauseRequested)
def pause_requested(execution: Execution, _event: PauseRequested) -> None:
    if execution.record.state != ExecutionState.RUNNING:
        return
    execution.record.paused_at = execution.now
    move_execution(execution, ExecutionState.PAUSED)
    execution.commands.paused = True


@on(ResumeRequested)
def resume_requested(execution: Execution, _event: ResumeRequested) -> None:
    if execution.record.state != ExecutionState.PAUSED:
        return
    move_execution(execution, ExecutionState.RUNNING)
    execution.commands.paused = False
    resume_deadlines(execution, execution.record.paused_at or execution.now)
