"""The hot reader reads the changes of executions from the hot store, a portion at a time."""

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
        self._hot = hot
        self._step = READ_EXECUTIONS_MAX

    async def read(self, execution_ids: Sequence[str]) -> dict[str, list[bytes]]:
        """The changes of the first executions (at least one), as many as make a portion.

        Unknown ones have none.
        """
        portion: dict[str, list[bytes]] = {}
        size = 0
        while len(portion) < len(execution_ids) and size < PORTION_BYTES:
            step_ids = execution_ids[len(portion) : len(portion) + self._step]
            changes = await self._hot.changes(step_ids)

            step_size = 0
            for execution_id in step_ids:
                portion[execution_id] = changes.get(execution_id, [])
                step_size += sum(map(len, portion[execution_id]))
            size += step_size

            if step_size > PORTION_BYTES:
                self._step = max(1, self._step // 2)
            else:
                self._step = min(READ_EXECUTIONS_MAX, 2 * self._step)
        return portion
