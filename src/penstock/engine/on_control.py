"""Control requests of users: cancel, pause, resume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.children import hand_down
from penstock.engine.ending import end_early
from penstock.engine.event_handlers import on
from penstock.engine.events import CancelRequested, PauseRequested, ResumeRequested
from penstock.engine.on_timer import resume
from penstock.engine.states import ExecutionState
from penstock.engine.transitions import move_execution

if TYPE_CHECKING:
    from penstock.engine.state import Execution


@on(CancelRequested)
def cancel_requested(execution: Execution, event: CancelRequested) -> None:
    """End the execution, after its clean-up. It comes again until the execution has ended."""
    if execution.record.ending is not None:
        return
    end_early(execution, ExecutionState.CANCELLED, event.reason)
    resume(execution)


@on(PauseRequested)
def pause_requested(execution: Execution, _event: PauseRequested) -> None:
    """Pause the execution; its clean-up can't be paused, as its time limit goes on."""
    if execution.record.state != ExecutionState.RUNNING or execution.record.ending is not None:
        return
    execution.record.paused_at = execution.now
    move_execution(execution, ExecutionState.PAUSED)
    execution.commands.paused = True
    hand_down(execution, "pause")


@on(ResumeRequested)
def resume_requested(execution: Execution, _event: ResumeRequested) -> None:
    resume(execution)
