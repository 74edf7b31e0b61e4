"""A real store whose history a test writes, commit by commit.

As the owner of its only partition does.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

from penstock.engine.commands import Commands, ExecutionRecord, Transition
from penstock.engine.states import ExecutionState
from penstock.service.live_events import LiveEvents
from penstock.service.readers import Batch
from penstock.stores.base import Intent, Lease, Stores
from penstock.stores.commit_plan import plan_commit
from penstock.stores.memory import MemoryStores
from penstock.stores.sqlite import SqliteStores


class Watched:
    """Executions of a cold store, which counts its calls.

    A test may do something before or after a read.
    """

    def __init__(self, executions: Any) -> None:
        self._executions = executions
        self.histories = self.feeds = 0
        self.before: list[Any] = []
        self.then: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executions, name)

    async def history(self, execution_id: str, after: int = 0) -> Any:
        self.histories += 1
        return await self._around(self._executions.history, execution_id, after)

    async def read_commits(self, after: Any, limit: int = 500) -> Any:
        self.feeds += 1
        return await self._around(self._executions.read_commits, after, limit)

    async def _around(self, call: Any, *arguments: Any) -> Any:
        if self.before:
            await self.before.pop(0)()
        answer = await call(*arguments)
        if self.then:
            await self.then.pop(0)()
        return answer


class Chronicle:
    def __init__(self, stores: Any, lease: Lease, **limits: Any) -> None:
        self.stores: Stores = stores
        self._lease = lease
        self.executions: Any = Watched(stores.cold.executions)
        self.live_events = LiveEvents(self.executions, **limits)
        self._last: dict[str, int] = {}

    @classmethod
    async def begin(cls, path: Path | None = None, **limits: Any) -> Self:
        """In memory, or in a file; what that has of executions is known."""
        stores = SqliteStores(path) if path else MemoryStores(time.time)
        lease = await stores.hot.acquire(0, "owner", 3600.0)
        assert lease is not None
        chronicle = cls(stores, lease, **limits)
        for name in await chronicle.stores.cold.executions.started(0):
            loaded = await chronicle.stores.hot.load([name])
            chronicle._last[name] = loaded[name].last_seq if name in loaded else 0
        return chronicle

    async def end(self) -> None:
        self.live_events.close()
        await self.stores.close()

    async def record_intents(self, *names: str) -> None:
        for name in names:
            record = ExecutionRecord(name, "flow", 1, ExecutionState.PENDING, b"{}", 1000.0)
            await self.stores.cold.executions.record_intents([Intent(record)])
            self._last[name] = 0

    async def commit(self, name: str, lines: int = 1, *, notifies: bool = True) -> None:
        """Commit some lines of an execution.

        With `notifies=False` nobody hears of the commit, as when its answer was lost.
        """
        first = self._last[name] + 1
        history = [
            Transition(seq, 1000.0 + seq, f"n{seq}", "PENDING", "QUEUED", 1)
            for seq in range(first, first + lines)
        ]
        await self._write(Commands(name, history=history), notifies=notifies)

    async def turn(self, name: str, lines: int = 0) -> None:
        """The execution itself goes on, amid so many lines of nodes before it and behind it."""
        first = self._last[name] + 1
        around = [
            Transition(first + step, 1000.0, f"n{step}", "PENDING", "QUEUED", 1)
            for step in range(2 * lines + 1)
        ]
        around[lines] = Transition(first + lines, 1000.0, "", "PAUSED", "RUNNING", 0)
        await self._write(Commands(name, history=around), notifies=True)

    async def finish(self, name: str, *, notifies: bool = True) -> None:
        seq = self._last[name] + 1
        record = ExecutionRecord(
            name, "flow", 1, ExecutionState.COMPLETED, b"{}", 1000.0, finished_at=1001.0
        )
        history = [Transition(seq, 1000.0 + seq, "", "RUNNING", "COMPLETED", 0)]
        await self._write(
            Commands(name, record=record, history=history, finished=True), notifies=notifies
        )

    async def _write(self, commands: Commands, *, notifies: bool) -> None:
        lease = self._lease
        await self.stores.hot.commit(plan_commit(lease, lease.position, [commands]))
        lease.commit_number += 1
        self._last[commands.execution_id] = commands.history[-1].seq
        if notifies:
            self.live_events.on_commit([(commands.execution_id, commands.history)])


def seqs(batches: list[Batch]) -> list[int]:
    return [entry.line.seq for batch in batches for entry in batch.feed_lines]


def ids(batches: list[Batch]) -> list[str]:
    return [entry.id for batch in batches for entry in batch.feed_lines]
