"""A signal was received: the first node that waits for it takes it, or it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.commands import NodeRun
from penstock.engine.event_handlers import on
from penstock.engine.events import SignalReceived
from penstock.engine.mailbox import Listener
from penstock.engine.states import NodeState
from penstock.engine.waiting import awaited_by, fits, take

if TYPE_CHECKING:
    from penstock.engine.state import Execution


@on(SignalReceived)
def signal_received(execution: Execution, event: SignalReceived) -> None:
    mailbox = execution.mailbox
    if not mailbox.receive(event):
        return
    execution.commands.signals.append(event)
    execution.commands.size += len(event.payload)

    over: list[Listener] = []
    for listener in mailbox.listeners(event):
        _, number = listener
        run = _waiting_run(execution, number)
        if run is None:
            over.append(listener)
            continue
        awaited = awaited_by(run)
        if fits(awaited, event):
            take(execution, number, run, event, awaited)
            if run.state is not NodeState.WAITING:
                over.append(listener)
            break
    mailbox.forget(event, over)


def _waiting_run(execution: Execution, number: int) -> NodeRun | None:
    """The record of a node, if it still waits."""
    if not execution.has_number(number):
        return None  # its item has ended
    run = execution.runs[execution.node(number).node_id]
    return run if run.state is NodeState.WAITING and run.more is not None else None
