"""The hot reader reads the changes of executions from the hot store, a portion at a time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.orchestrator.tiering.portions import Portions
from penstock.stores.tiering import HotTier


class HotReader:
    """Reads executions from the hot store, and learns on the way how many make a portion."""

    def __init__(self, hot: HotTier, portions: Portions) -> None:
        self._hot = hot
        self._portions = portions
        self._step = portions.read_executions_max

    async def read(self, execution_ids: Sequence[str]) -> dict[str, list[bytes]]:
        """The changes of the first executions (at least one), as many as make a portion.

        Unknown ones have none.
        """
        bytes_max = self._portions.bytes_max
        portion: dict[str, list[bytes]] = {}
        size = 0
        while len(portion) < len(execution_ids) and size < bytes_max:
            step_ids = execution_ids[len(portion) : len(portion) + self._step]
            changes = await self._hot.changes(step_ids)

            step_size = 0
            for execution_id in step_ids:
                portion[execution_id] = changes.get(execution_id, [])
                step_size += sum(map(len, portion[execution_id]))
            size += step_size

            if step_size > bytes_max:
                self._step = max(1, self._step // 2)
            else:
                self._step = min(self._portions.read_executions_max, 2 * self._step)
        return portion
