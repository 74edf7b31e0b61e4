"""The key of a task: execution, node, generation and attempt. No two tasks have the same one."""

from __future__ import annotations

from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskEvent

Key = tuple[str, str, int, int]


def key_of(item: Task | TaskEvent | Stop) -> Key:
    # not an `attrgetter`: that looks each name up in the class, and takes four times as long
    return (item.execution_id, item.node_id, item.generation, item.attempt)
