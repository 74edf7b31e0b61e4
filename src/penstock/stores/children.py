"""What commits send to other executions: to children, and to parents.

A commit lists it (`CommitPlan.sends`). Where hot and cold store are one, the commit writes it: the
row of a child, or a control request in its row; then the events follow. Where they are two, it goes
through the outbox, and `orchestrator.children` delivers it.
"""

from __future__ import annotations

from penstock.engine.commands import ControlChild, Send, StartChild
from penstock.engine.events import (
    AnyEvent,
    CancelRequested,
    ExecutionStarted,
    PauseRequested,
    ResumeRequested,
)
from penstock.errors import Conflict, NotFound
from penstock.stores.base import check_controllable


def event_of(send: Send) -> AnyEvent:
    """The event that follows what was written."""
    if isinstance(send, StartChild):
        return ExecutionStarted(send.record.execution_id)
    if not isinstance(send, ControlChild):
        return send
    if send.request == "cancel":
        return CancelRequested(send.execution_id, send.reason or "cancelled")
    if send.request == "pause":
        return PauseRequested(send.execution_id)
    return ResumeRequested(send.execution_id)


def can_be_controlled(send: ControlChild, state: str | None, last_request: str | None) -> bool:
    """Whether a control request has an effect on a child in this state.

    None of those that haven't is a mistake: the child has ended meanwhile, or is as it is to be.
    """
    try:
        check_controllable(
            send.execution_id, state, send.request, waits=False, last_request=last_request
        )
    except (NotFound, Conflict):
        return False
    return True
