"""Reused outputs: nodes that an earlier execution of the chain has completed are recorded, never run.

They come first, before anything else is decided, so that no node is asked whether it may start
while the outcome of one before it is still to be written down. What one commit doesn't take waits
for the next; `record.reused` isn't 0 until all are recorded, so that a new owner knows to read them
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.events import Value

if TYPE_CHECKING:
    from penstock.engine.execution import Execution

REUSED = "kept"
"""The reason, as history shows it, of a node whose output is reused from an earlier execution."""


def set_reused(execution: Execution, outputs: dict[str, Value]) -> None:
    """Hand in what an earlier execution has, right after a load.

    What the plan lacks or the records have is dropped.
    """
    numbers, runs = execution.numbers, execution.runs
    found = reversed(outputs.items())  # they are taken off the end
    execution.reused = [
        (numbers[node_id], output)
        for node_id, output in found
        if node_id in numbers and node_id not in runs
    ]


def record(execution: Execution, limit: int | None = None) -> None:
    """Until the commit has `limit` history lines; without it, all that are left."""
    reused, commands = execution.reused, execution.commands
    while reused and (limit is None or len(commands.history) < limit):
        number, output = reused.pop()
        execution.complete(number, execution.open_run(number), output, REUSED)
    if reused:
        execution.go_on_later()
    if bool(execution.record.reused) != bool(
        reused
    ):  # not with every commit: an execution's input may be large
        execution.record.reused = len(reused)
        commands.record = execution.record
