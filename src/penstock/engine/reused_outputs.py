"""Nodes that an earlier execution of the chain has completed: they are recorded, never run.

They come first, before anything else is decided, so that no node is asked whether it may start
while the outcome of one before it is still to be written down. What one commit doesn't take waits
for the next; `record.kept` isn't 0 until all are recorded, so that a new owner knows to read them
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.events import Value

if TYPE_CHECKING:
    from penstock.engine.execution import Execution

KEPT = "kept"
"""The reason of a node whose outcome is an earlier execution's."""


def keep(execution: Execution, outputs: dict[str, Value]) -> None:
    """Hand in what an earlier execution has, right after a load.

    What the plan lacks or the records have is dropped.
    """
    numbers, runs = execution.numbers, execution.runs
    found = reversed(outputs.items())  # they are taken off the end
    execution.kept = [
        (numbers[name], output) for name, output in found if name in numbers and name not in runs
    ]


def record(execution: Execution, limit: int | None = None) -> None:
    """Until the commit has `limit` history lines; without it, all that are left."""
    kept, commands = execution.kept, execution.commands
    while kept and (limit is None or len(commands.history) < limit):
        number, output = kept.pop()
        execution.complete(number, execution.open_run(number), output, KEPT)
    if kept:
        execution.go_on_later()
    if bool(execution.record.kept) != bool(
        kept
    ):  # not with every commit: an execution's input may be large
        execution.record.kept = len(kept)
        commands.record = execution.record
