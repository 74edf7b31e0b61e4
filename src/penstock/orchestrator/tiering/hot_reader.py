"""The hot reader reads what wasn't copied yet from the hot store, a portion at a time."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.orchestrator.tiering.portions import Portions
from penstock.stores.tiering import HotTier, Tail

EMPTY = Tail(None, [])


class HotReader:
    """Reads executions from the hot store, and learns on the way how many make a portion."""

    def __init__(self, hot: HotTier, portions: Portions) -> None:
        self._hot = hot
        self._portions = portions
        self._step = portions.read_executions_max

    async def read(self, execution_ids: Sequence[str]) -> dict[str, Tail]:
        """The tails of the first executions (at least one), as many as make a portion.

        Those of unknown ones are empty.
        """
        bytes_max = self._portions.bytes_max
        portion: dict[str, Tail] = {}
        size = 0
        while len(portion) < len(execution_ids) and size < bytes_max:
            step_ids = execution_ids[len(portion) : len(portion) + self._step]
            tails = await self._hot.tails(step_ids)

            step_size = 0
            for execution_id in step_ids:
                tail = tails.get(execution_id, EMPTY)
                portion[execution_id] = tail
                step_size += sum(map(len, tail.changes))
            size += step_size

            if step_size > bytes_max:
                self._step = max(1, self._step // 2)
            else:
                self._step = min(self._portions.read_executions_max, 2 * self._step)
        return portion
