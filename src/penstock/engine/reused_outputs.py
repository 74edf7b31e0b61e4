"""Reused outputs: nodes that an earlier execution has completed are recorded, never run.

They come first, before anything else is decided, so that no node is asked whether it may start
while the outcome of one before it is still to be written down. What one commit doesn't take waits
for the next; `record.reused` isn't 0 until all are recorded, so that a new owner knows to read them
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.deadlines import continue_later
from penstock.engine.events import Value
from penstock.engine.reasons import Reason
from penstock.engine.settling import complete, open_run

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def set_reused(execution: Execution, outputs: dict[str, Value]) -> None:
    """Hand in what an earlier execution has, right after a load.

    What the plan lacks or the records have is dropped.
    """
    numbers = execution.numbers
    execution.reused = [
        (numbers[node_id], output)
        for node_id, output in outputs.items()
        if node_id in numbers and node_id not in execution.runs
    ]
    execution.reused.reverse()  # they are taken off the end


def record(execution: Execution, history_lines_max: int | None = None) -> None:
    """Record reused outputs until the commit has so many history lines; without it, all of them."""
    reused = execution.reused
    commands = execution.commands
    while reused and (history_lines_max is None or len(commands.history) < history_lines_max):
        number, output = reused.pop()
        complete(execution, number, open_run(execution, number), output, Reason.REUSED)
    if reused:
        continue_later(execution)
    # the record isn't written with every commit: an execution's input may be large
    if bool(execution.record.reused) != bool(reused):
        execution.record.reused = len(reused)
        commands.record = execution.record
