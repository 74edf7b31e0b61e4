"""Reused outputs: nodes that an earlier execution has completed are recorded, never run.

They come first, before anything else is decided, so that no node is asked whether it may start
while the outcome of one before it is still to be written down. What one commit doesn't take waits
for the next; `record.reused` isn't 0 until all are recorded, so that a new owner knows to read them
again.

Of a map that didn't complete, items are reused by their identities: each is recorded when it would
be opened, wherever it stands in the list now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.deadlines import continue_later
from penstock.engine.events import Value
from penstock.engine.reasons import Reason
from penstock.engine.settling import complete, open_run

if TYPE_CHECKING:
    from penstock.engine.state import Execution


IDENTITY = "\x1f"
"""What stands between the address of a map and the identity of an item whose output is reused."""


def item_name(address: str, identity: str) -> str:
    """The name of an item's output among reused outputs."""
    return f"{address}{IDENTITY}{identity}"


def set_reused(execution: Execution, outputs: dict[str, Value]) -> None:
    """Hand in what an earlier execution has, right after a load.

    What the plan lacks or the records have is dropped.
    """
    execution.reused = [
        (execution.number_of(node_id), output)
        for node_id, output in outputs.items()
        if execution.has_node(node_id) and node_id not in execution.runs
    ]
    for name, output in outputs.items():
        address, separator, identity = name.partition(IDENTITY)
        if separator:
            execution.kept_items.setdefault(address, {})[identity] = output
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
    _note_remaining(execution)


def _note_remaining(execution: Execution) -> None:
    # the record isn't written with every commit: an execution's input may be large
    remaining = bool(execution.reused or execution.kept_items)
    if bool(execution.record.reused) != remaining:
        execution.record.reused = len(execution.reused) + len(execution.kept_items)
        execution.commands.record = execution.record


def drop_items(execution: Execution, address: str) -> None:
    """A map has ended, or can't use them: the outputs of its items aren't needed any more."""
    if execution.kept_items.pop(address, None) is not None:
        _note_remaining(execution)
