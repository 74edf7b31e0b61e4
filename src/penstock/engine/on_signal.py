"""A signal was received: the first node that waits for it takes it, or it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.event_handlers import on
from penstock.engine.events import SignalReceived
from penstock.engine.states import NodeState
from penstock.engine.waiting import awaited_by, fits, take

if TYPE_CHECKING:
    from penstock.engine.state import Execution


@on(SignalReceived)
def signal_received(execution: Execution, event: SignalReceived) -> None:
    if event.number in execution.signals:
        return
    execution.signals[event.number] = event
    execution.commands.signals.append(event)
    execution.commands.size += len(event.payload)

    for number in _listening(execution):
        run = execution.runs[execution.node(number).node_id]
        if run.more is None:
            continue
        awaited = awaited_by(run)
        if fits(awaited, event):
            take(execution, number, run, event, awaited)
            return


def _listening(execution: Execution) -> list[int]:
    """Numbers of the nodes that wait for signals, those that began to wait first before others."""
    waiting: list[tuple[float, int]] = []
    for number in execution.listening:
        if not execution.has_number(number):
            continue  # its item has ended
        run = execution.runs[execution.node(number).node_id]
        if run.state is NodeState.WAITING:
            waiting.append((run.started_at or 0.0, number))
    waiting.sort()
    execution.listening = [number for _, number in waiting]
    return execution.listening
