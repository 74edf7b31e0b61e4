"""The key of a task: execution, node, generation and attempt. No two tasks have the same one."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskEvent

Key = tuple[str, str, int, int]


key_of: Callable[[Task | TaskEvent | Stop], Key] = attrgetter(
    "execution_id", "node_id", "generation", "attempt"
)
