"""The lists of maps that an owner has in memory, and which of them it lets go of."""

from __future__ import annotations

from collections.abc import Callable, Collection

from penstock.engine import lists
from penstock.engine.state import Execution

LIST_BYTES_MAX = 128 * 1024 * 1024
"""Bytes of lists that an owner has in memory: two of the largest that an output may be.

With fewer, two such maps would read their lists again for each of their items.
"""


class MapLists:
    """How much the lists of maps take in memory, by execution, the least recently used first.

    Beyond the limit, lists are let go of. The engine asks for them again when an item needs one.
    """

    def __init__(self, bytes_max: int, find: Callable[[str], Execution | None]) -> None:
        """`find` answers an execution if it is in memory."""
        self._bytes_max = bytes_max
        self._find = find
        self._bytes: dict[str, int] = {}
        self._total = 0

    def used(self, execution: Execution) -> None:
        """An event of this execution has been handled; call it when nothing is wanted any more."""
        execution_id = execution.record.execution_id
        self._note(execution_id, execution.list_bytes or 0)
        while self._total > self._bytes_max:
            oldest_id = next(iter(self._bytes))
            if oldest_id == execution_id:
                lists.let_go(execution, self._bytes_max)
                self._note(execution_id, execution.list_bytes or 0)
                return
            oldest = self._find(oldest_id)
            if oldest is not None:
                lists.let_go(oldest, 0)
            self._note(oldest_id, 0)

    def _note(self, execution_id: str, size: int) -> None:
        self._total += size - self._bytes.pop(execution_id, 0)
        if size:
            self._bytes[execution_id] = size

    def forget_all_but(self, *in_memory: Collection[str]) -> None:
        """Forget executions that have left memory."""
        for execution_id in list(self._bytes):
            if not any(execution_id in ids for ids in in_memory):
                self._note(execution_id, 0)
