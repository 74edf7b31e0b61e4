"""Reads the changes of executions from the hot store, a portion at a time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.stores.tiering import HotTier

PORTION_BYTES = 16 * 1024 * 1024
"""The size of a portion of executions that are read or written together.

Neither memory nor a transaction has to hold all of them.
"""
READ_EXECUTIONS_MAX = 64


class HotReader:
    """Reads executions from the hot store, and learns on the way how many make a portion."""

    def __init__(self, hot: HotTier) -> None:
        self._hot, self._step = hot, READ_EXECUTIONS_MAX

    async def read(self, execution_ids: Sequence[str]) -> dict[str, list[bytes]]:
        """The changes of the first executions (at least one), as many as make a portion.

        Unknown ones have none.
        """
        portion: dict[str, list[bytes]] = {}
        size = 0
        while len(portion) < len(execution_ids) and size < PORTION_BYTES:
            some = execution_ids[len(portion) : len(portion) + self._step]
            found = await self._hot.changes(some)
            read = sum(len(change) for changes in found.values() for change in changes)
            self._step = (
                max(1, self._step // 2)
                if read > PORTION_BYTES
                else min(READ_EXECUTIONS_MAX, 2 * self._step)
            )
            portion.update((execution_id, found.get(execution_id, [])) for execution_id in some)
            size += read
        return portion
