"""The key of a task: execution, node, generation and attempt. No two tasks have the same one."""

from __future__ import annotations

from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskEvent

Key = tuple[str, str, int, int]


def key_of(task: Task | TaskEvent | Stop) -> Key:
    return (task.execution_id, task.node_id, task.generation, task.attempt)
