"""The backlog: tasks that wait, and executions that haven't ended.

Beyond a limit nothing new is accepted, so that a store can't be filled without end.

The backlog is counted every few seconds, and what this process has accepted since is added to it.
So several processes together may exceed a limit in that time. The limits keep a store from running
full; they aren't exact.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from penstock.errors import Overloaded, StoreError
from penstock.stores.base import Stores

LOOK_SECONDS = 5.0
CLOSE_LOOK_SECONDS = 1.0
"""How often the store is looked at from half of a limit on."""
RETRY_SECONDS = 5.0


class Backlog:
    """Refuses new executions while too much waits."""

    def __init__(
        self,
        stores: Stores,
        *,
        waiting_tasks_max: int,
        workflow_unfinished_max: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Limits of 0 are none."""
        self._stores = stores
        self._clock = clock
        self._tasks_max = waiting_tasks_max
        self._unfinished_max = workflow_unfinished_max
        self._waiting_tasks = 0
        self._unfinished: dict[str, int] = {}
        self._accepted: Counter[str] = Counter()
        """Executions accepted here since the last look, by workflow."""
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def enter(self, workflow: str, count: int = 1) -> None:
        """Accept `count` more executions of a workflow. Raises `Overloaded`."""
        if not self._tasks_max and not self._unfinished_max:
            return
        await self._look()

        waiting = self._waiting_tasks + self._accepted.total()
        if self._tasks_max and waiting + count > self._tasks_max:
            raise Overloaded(
                f"{waiting:,} tasks wait already, and the limit is {self._tasks_max:,}"
                " (PENSTOCK_WAITING_TASKS_MAX); try again later, or start more workers",
                retry_after=RETRY_SECONDS,
            )

        unfinished = self._unfinished.get(workflow, 0) + self._accepted[workflow]
        if self._unfinished_max and unfinished + count > self._unfinished_max:
            raise Overloaded(
                f"{unfinished:,} executions of {workflow!r} haven't ended,"
                f" and the limit is {self._unfinished_max:,}"
                " (PENSTOCK_WORKFLOW_UNFINISHED_MAX); try again later",
                retry_after=RETRY_SECONDS,
            )

        self._accepted[workflow] += count

    async def _look(self) -> None:
        """Count the backlog, if the last count is too old.

        Only the first caller waits for that; later counts run in the background.
        """
        if self._clock() - self._looked_at < self._pause():
            return
        is_first = self._looked_at == float("-inf")
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._count())
        if is_first:
            await asyncio.shield(self._looking)

    def _pause(self) -> float:
        waiting = self._waiting_tasks + self._accepted.total()
        if 2 * waiting > self._tasks_max > 0:
            return CLOSE_LOOK_SECONDS

        for workflow, accepted in self._accepted.items():
            unfinished = self._unfinished.get(workflow, 0) + accepted
            if 2 * unfinished > self._unfinished_max > 0:
                return CLOSE_LOOK_SECONDS
        return LOOK_SECONDS

    async def _count(self) -> None:
        self._looked_at = self._clock()
        before = self._accepted.copy()
        try:
            depths = await self._stores.queue.depths()
            unfinished = (
                await self._stores.cold.counts.count_unfinished() if self._unfinished_max else {}
            )
        except StoreError:
            return  # a submission fails with the store's own error
        self._waiting_tasks = sum(waiting for waiting, _ in depths.values())
        self._unfinished = dict(unfinished)
        self._accepted -= before  # they are in what was counted, or have ended

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
