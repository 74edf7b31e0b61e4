"""The committer writes the commits of one partition, one after another.

While one is being written, the owner decides the next batch.

At most one commit is under way, and the next begins when it has landed: so the store has to deal
with one at a time, and its fence stays simple. Nobody outside sees a decision before it has landed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from penstock.engine.commands import Commands
from penstock.errors import Fenced, StoreUnavailable
from penstock.stores.base import HotStore, Lease
from penstock.stores.commit_plan import CommitPlan, plan_commit

TRANSIENT = (Fenced, StoreUnavailable)
"""Errors that are no execution's fault: the owner ends, and another one tries again."""


class UnderWay(NamedTuple):
    plan: CommitPlan
    changes: list[Commands]
    after: int
    written: asyncio.Future[None]


class Committer:
    """Writes the commits of one partition.

    `landed` is called with what was written. `on_rejected` fails an execution whose changes the
    store rejects, and returns what to write instead.
    """

    def __init__(
        self,
        hot: HotStore,
        lease: Lease,
        landed: Callable[[CommitPlan, list[Commands]], None],
        on_rejected: Callable[[str, Exception], Awaitable[Commands | None]],
        *,
        is_tiered: bool = True,
    ) -> None:
        self._hot = hot
        self._lease = lease
        self._landed = landed
        self._on_rejected = on_rejected
        self._is_tiered = is_tiered
        self._under_way: UnderWay | None = None

    @property
    def is_busy(self) -> bool:
        return self._under_way is not None

    def _plan(self, changes: list[Commands], after: int) -> CommitPlan:
        return plan_commit(self._lease, after, changes, has_outbox=self._is_tiered)

    async def begin(self, changes: list[Commands], after: int) -> None:
        """Begin a commit: it is on its way when this returns.

        `wait_landed` waits for it, and must have waited for the one before.
        """
        try:
            plan = self._plan(changes, after)
        except Exception as error:  # noqa: BLE001 -- something in it can't be written down
            await self._divide(changes, after, error)
            return
        written = asyncio.ensure_future(self._hot.commit(plan))
        written.add_done_callback(_look_at)
        self._under_way = UnderWay(plan, changes, after, written)
        await asyncio.sleep(0)  # or it would begin only when the next batch has been decided

    async def write(self, changes: list[Commands], after: int) -> None:
        """Write a commit, and return when it has landed.

        One that is rejected for its content is divided until the rejected execution is found; that
        one fails.
        """
        try:
            plan = self._plan(changes, after)
            await self._hot.commit(plan)
        except TRANSIENT:
            raise
        except Exception as error:
            if not changes:
                raise
            await self._divide(changes, after, error)
        else:
            self._note(plan, changes)

    async def wait_landed(self) -> None:
        """Wait until the commit under way has landed. Raises what became of it."""
        if self._under_way is None:
            return
        plan, changes, after, written = self._under_way
        await asyncio.wait((written,))
        try:
            written.result()
        except TRANSIENT:
            raise
        except Exception as error:  # noqa: BLE001
            await self._divide(changes, after, error)
        else:
            self._note(plan, changes)
        self._under_way = None

    async def end(self) -> None:
        """Wait until no commit is on its way: whoever owns the partition next reads the store."""
        if self._under_way is not None:
            await asyncio.wait((self._under_way.written,))

    def _note(self, plan: CommitPlan, changes: list[Commands]) -> None:
        self._lease.commit_number += 1
        self._lease.position = plan.position
        self._landed(plan, changes)

    async def _divide(self, changes: list[Commands], after: int, error: Exception) -> None:
        if len(changes) > 1:
            half = len(changes) // 2
            await self.write(changes[:half], self._lease.position)
            await self.write(changes[half:], after)
            return

        failed = await self._on_rejected(changes[0].execution_id, error) if changes else None
        if changes and failed is changes[0]:
            raise error
        await self.write([] if failed is None else [failed], after)


def _look_at(written: asyncio.Future[None]) -> None:
    """Look at a commit's outcome, or asyncio complains if whoever waited for it was cancelled."""
    if not written.cancelled():
        written.exception()
