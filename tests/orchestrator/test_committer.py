"""While a commit is being written, the next batch is decided; none of that may show too early."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from penstock.engine import handling
from penstock.engine.events import CancelRequested
from penstock.engine.state import Execution
from penstock.errors import StoreUnavailable
from penstock.orchestrator import owner
from penstock.orchestrator.committer import Committer
from penstock.stores.base import Lease
from penstock.stores.commit_plan import CommitPlan
from tests.orchestrator.desk import Desk, diamond
from tests.waiting import let_others_run, until


class Gate:
    """Lets commits into the store one by one, when the test says so."""

    def __init__(self, desk: Desk) -> None:
        self._real = desk.stores.hot.commit
        self.waiting: list[tuple[CommitPlan, asyncio.Future[Exception | None]]] = []
        desk.stores.hot.commit = self._commit  # type: ignore[method-assign]

    async def _commit(self, plan: CommitPlan) -> None:
        answer: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.waiting.append((plan, answer))
        error = await answer
        if error is not None:
            raise error
        await self._real(plan)

    def open(self, error: Exception | None = None) -> None:
        self.waiting.pop(0)[1].set_result(error)


@asynccontextmanager
async def running(desk: Desk) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task((await desk.own()).run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, StoreUnavailable):
            await task


def test_the_next_batch_is_decided_while_a_commit_is_written_and_is_written_after_it() -> None:
    async def scenario() -> None:
        desk = Desk()
        gate = Gate(desk)
        names = [await desk.start(diamond()) for _ in range(4)]
        async with running(desk):
            await until(lambda: len(started) == 4)
            assert len(gate.waiting) == 1
            gate.open()
            await until(lambda: bool(gate.waiting))
            assert [await desk.state(name) for name in names] == ["RUNNING"] * 2 + ["PENDING"] * 2
            gate.open()
            await until(lambda: len(desk.changes) == 2)
            assert [await desk.state(name) for name in names] == ["RUNNING"] * 4

    started: set[str] = set()
    with watching(started):
        asyncio.run(scenario())


def test_what_is_decided_after_a_commit_began_is_not_part_of_it() -> None:
    async def scenario() -> None:
        desk = Desk()
        gate = Gate(desk)
        names = [await desk.start(diamond()) for _ in range(2)]
        await desk.stores.hot.append([CancelRequested(names[0])])
        async with running(desk):
            await until(lambda: "CancelRequested" in seen)
            gate.open()
            await until(lambda: bool(gate.waiting))
            assert await desk.state(names[0]) == "RUNNING"
            assert await desk.states(names[0]) == {"a": "QUEUED"}
            assert await desk.stores.cold.executions.started(0) == names
            gate.open()
            await until(lambda: len(desk.changes) == 2)
            assert await desk.state(names[0]) == "CANCELLED"

    seen: set[str] = set()
    with watching(set(), seen):
        asyncio.run(scenario())


def test_an_execution_that_breaks_while_its_commit_is_written_fails_from_what_landed() -> None:
    async def scenario() -> None:
        desk = Desk()
        gate = Gate(desk)
        names = [await desk.start(diamond()) for _ in range(2)]
        await desk.stores.hot.append([CancelRequested(names[0])])
        async with running(desk):
            await until(lambda: bool(broken))
            gate.open()
            await until(lambda: bool(gate.waiting))
            gate.open()
            await until(lambda: len(desk.changes) == 2)
        stored = await desk.stored(names[0])
        assert str(stored.record.state) == "FAILED"
        assert [line.seq for line in stored.history] == list(range(1, len(stored.history) + 1))
        assert await desk.states(names[0]) == {"a": "CANCELLED"}

    broken: list[str] = []
    real = handling.handle

    def handle(execution: Execution, event: Any, now: float) -> Any:
        if isinstance(event, CancelRequested):
            broken.append(event.execution_id)
            raise OSError("no idea")
        return real(execution, event, now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handling, "handle", handle)
        asyncio.run(scenario())


def test_an_owner_whose_commit_fails_writes_nothing_more() -> None:
    async def scenario() -> None:
        desk = Desk()
        gate = Gate(desk)
        names = [await desk.start(diamond()) for _ in range(2)]
        await desk.stores.hot.append([CancelRequested(name) for name in names])
        async with running(desk) as task:
            await until(lambda: bool(gate.waiting))
            gate.open(StoreUnavailable("gone"))
            await until(task.done)
            assert isinstance(task.exception(), StoreUnavailable)
            assert not gate.waiting
            assert [await desk.state(name) for name in names] == ["PENDING"] * 2

    asyncio.run(scenario())


@pytest.fixture(autouse=True)
def _two_events_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "BATCH_EVENTS", 2)


class watching:  # noqa: N801 -- reads as a word in a `with`
    """Notes which executions were handled, and which kinds of events."""

    def __init__(self, names: set[str], kinds: set[str] | None = None) -> None:
        self._names = names
        self._kinds = kinds if kinds is not None else set()

    def __enter__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        real = handling.handle

        def handle(execution: Execution, event: Any, now: float) -> Any:
            self._names.add(event.execution_id)
            self._kinds.add(type(event).__name__)
            return real(execution, event, now)

        self._patch.setattr(handling, "handle", handle)

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def test_a_commit_that_nobody_waits_for_any_more_fails_without_a_complaint() -> None:
    """Its owner is cancelled again while it waits for the commit.

    The store knows what became of it, and asyncio doesn't complain.
    """

    class Away:
        def __init__(self) -> None:
            self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def commit(self, _: CommitPlan) -> None:
            await self.answer

    async def scenario() -> list[Any]:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context["message"])
        )
        store = Away()
        lease = Lease(0, "", "", 0, 0)
        committer = Committer(store, lease, lambda *_: None, None)  # type: ignore[arg-type]
        await committer.begin([], 1)
        ending = asyncio.create_task(committer.end())
        await let_others_run()
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        store.answer.set_exception(StoreUnavailable("away"))
        await let_others_run()
        del committer
        gc.collect()
        return complaints

    assert asyncio.run(scenario()) == []
