"""The subscription to commits of a process that runs no orchestrator.

Whoever waits misses nothing, and nothing else is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from penstock.config import Settings
from penstock.engine.commands import ExecutionRecord
from penstock.engine.states import ExecutionState
from penstock.errors import StoreUnavailable
from penstock.service import Service
from penstock.service.timing import ServiceTiming
from penstock.stores.base import Intent
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import FeedEntry
from tests.service.chronicle import Chronicle, seqs
from tests.waiting import let_others_run, until

TIMING = ServiceTiming(
    end_missed_seconds=0.0, subscription_pause_seconds=0.0, subscription_linger_seconds=0.0
)


class Wire:
    """The commit feed of a store, which a test may hold up and break."""

    def __init__(self) -> None:
        self.readers = self.begun = 0
        self.open = asyncio.Event()
        self.open.set()
        self._queue: asyncio.Queue[list[FeedEntry] | Exception] = asyncio.Queue()

    async def subscribe(self) -> AsyncIterator[list[FeedEntry]]:
        await self.open.wait()
        self._queue = asyncio.Queue()
        self.readers += 1
        self.begun += 1
        try:
            yield []
            while True:
                item = await self._queue.get()
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.readers -= 1

    def deliver(self, item: list[FeedEntry] | Exception) -> None:
        """Who doesn't read yet misses it."""
        self._queue.put_nowait(item)


class Elsewhere:
    """A store that another process writes, and a service that only subscribes to it."""

    def __init__(self, chronicle: Chronicle) -> None:
        self.chronicle = chronicle
        self.wire = Wire()
        stores: Any = chronicle.stores
        stores.cold.executions = chronicle.executions
        self.service = Service(
            stores, PlanCache(stores.cold, dict), Settings(), dict, self.wire, timing=TIMING
        )
        self._place = (0,)

    async def commit(self, name: str, lines: int = 1) -> None:
        await self.chronicle.commit(name, lines, notifies=False)
        await self._tell()

    async def finish(self, name: str) -> None:
        await self.chronicle.finish(name, notifies=False)
        await self._tell()

    async def _tell(self) -> None:
        parts = await self.chronicle.stores.cold.executions.read_commits(self._place)
        self._place = (parts[-1].position,)
        self.wire.deliver(parts)

    async def silence(self) -> None:
        await until(
            lambda: (
                not self.wire.readers
                and self.service.commit_subscription
                and self.service.commit_subscription._task is None
            ),
            "no reader",
        )


def elsewhere(scenario: Callable[[Elsewhere], Awaitable[None]]) -> None:
    async def main() -> None:
        chronicle = await Chronicle.begin()
        remote = Elsewhere(chronicle)
        await chronicle.record_intents("a", "b")
        try:
            await scenario(remote)
            await remote.silence()
        finally:
            await remote.service.close()
            await chronicle.end()

    asyncio.run(main())


def test_who_waits_is_told_of_an_end_that_another_process_recorded() -> None:
    async def scenario(remote: Elsewhere) -> None:
        waiting = [
            asyncio.create_task(remote.service.executions.end("a", seconds))
            for seconds in (None, 20.0)
        ]
        await until(lambda: remote.wire.readers, "somebody has subscribed")
        await remote.commit("a", 2)
        await remote.finish("b")
        await let_others_run()
        assert not any(task.done() for task in waiting)
        await remote.finish("a")
        for ended in await asyncio.gather(*waiting):
            assert ended is not None
            assert (ended.record.execution_id, ended.record.state) == ("a", "COMPLETED")

    elsewhere(scenario)


def test_an_end_between_reading_the_store_and_subscribing_is_found() -> None:
    async def scenario(remote: Elsewhere) -> None:
        remote.wire.open.clear()
        waiting = asyncio.create_task(remote.service.executions.end("a"))
        following = asyncio.create_task(_all(remote, "a"))
        await let_others_run()
        await remote.finish("a")
        await let_others_run()
        assert not waiting.done()
        remote.wire.open.set()
        assert await waiting
        assert await following == [1]

    elsewhere(scenario)


def test_an_execution_that_cannot_be_read_now_keeps_nobody_else_from_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(remote: Elsewhere) -> None:
        cold = remote.chronicle.stores.cold
        read = cold.executions.execution
        away = True

        async def refuse(name: str) -> Any:
            if name == "a" and away:
                raise StoreUnavailable("PostgreSQL is away")
            return await read(name)

        remote.wire.open.clear()
        waiting = [asyncio.create_task(remote.service.executions.end(name)) for name in ("a", "b")]
        await let_others_run()
        await remote.finish("a")
        monkeypatch.setattr(cold.executions, "execution", refuse)
        remote.wire.open.set()
        await until(lambda: remote.wire.readers, "somebody has subscribed")
        await remote.finish("b")
        assert await waiting[1]
        assert remote.wire.begun == 1, "they haven't broken off"
        away = False
        assert await waiting[0]

    elsewhere(scenario)


def test_an_end_while_the_subscription_is_broken_off_is_found_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(remote: Elsewhere) -> None:
        waiting = asyncio.create_task(remote.service.executions.end("a"))
        following = asyncio.create_task(_all(remote, "a"))
        await until(lambda: remote.wire.readers, "somebody has subscribed")
        for _ in range(3):
            begun = remote.wire.begun
            remote.wire.deliver(StoreUnavailable("Redis is away"))
            await until(lambda begun=begun: remote.wire.begun > begun, "it is tried again")  # type: ignore[misc]
        remote.wire.open.clear()
        remote.wire.deliver(StoreUnavailable("Redis is away"))
        await until(lambda: not remote.wire.readers, "it is away")
        await remote.commit("a", 3)
        await remote.finish("a")
        remote.wire.open.set()
        assert await waiting
        assert await following == [1, 2, 3, 4]

    with caplog.at_level(logging.INFO, "penstock.service"):
        elsewhere(scenario)
    messages = [record.getMessage() for record in caplog.records]
    assert (
        sum("broke off" in message for message in messages)
        == sum("is back" in message for message in messages)
        <= 4
    )


def test_a_store_that_cannot_be_read_when_the_subscription_begins_is_read_later() -> None:
    async def scenario(remote: Elsewhere) -> None:
        remote.wire.open.clear()
        waiting = asyncio.create_task(remote.service.executions.end("a"))
        await let_others_run()
        await remote.finish("a")
        real, failures = (
            remote.service.stores.cold.executions.execution,
            [StoreUnavailable("no database")] * 3,
        )

        async def execution(name: str) -> Any:
            if failures:
                raise failures.pop()
            return await real(name)

        remote.chronicle.executions.execution = execution
        remote.wire.open.set()
        assert await waiting
        assert not failures

    elsewhere(scenario)


def test_an_end_that_the_store_does_not_show_yet_is_read_again() -> None:
    async def scenario(remote: Elsewhere) -> None:
        waiting = asyncio.create_task(remote.service.executions.end("a"))
        await until(lambda: remote.wire.readers, "somebody has subscribed")
        await let_others_run()
        real = remote.service.stores.cold.executions.execution
        early: list[Any] = [await real("a"), None, StoreUnavailable("no database")]

        async def execution(name: str) -> Any:
            if not early:
                return await real(name)
            answer = early.pop()
            if isinstance(answer, Exception):
                raise answer
            return answer

        remote.chronicle.executions.execution = execution
        await remote.finish("a")
        assert await waiting
        assert not early
        assert not remote.service.executions._readers

    elsewhere(scenario)


def test_followers_get_every_line_once_and_in_order() -> None:
    async def scenario(remote: Elsewhere) -> None:
        await remote.commit("a", 2)
        following = asyncio.create_task(_all(remote, "a"))
        everything: list[Any] = []

        async def follow_all() -> None:
            async for batch in remote.service.live_events.everything("0"):
                everything.append(batch)  # noqa: PERF401 -- seen while it goes on

        all_of_them = asyncio.create_task(follow_all())
        await until(lambda: remote.wire.readers and len(everything) > 1, "both listen")
        for name in ("b", "a", "a", "b"):
            await remote.commit(name, 2)
        await remote.finish("a")
        assert await following == [1, 2, 3, 4, 5, 6, 7]
        await until(lambda: len(seqs(everything)) >= 11, "all lines of both")
        assert seqs(everything) == [1, 2, 1, 2, 3, 4, 5, 6, 3, 4, 7]
        all_of_them.cancel()
        await asyncio.wait((all_of_them,))

    elsewhere(scenario)


def test_nothing_is_read_while_nobody_listens_and_who_comes_later_is_told_again() -> None:
    async def scenario(remote: Elsewhere) -> None:
        await remote.commit("a")
        await let_others_run()
        assert remote.wire.begun == 0
        for name in ("a", "b"):
            waiting = asyncio.create_task(remote.service.executions.end(name))
            await until(lambda: remote.wire.readers, "somebody has subscribed")
            await remote.finish(name)
            assert await waiting
            await remote.silence()
        assert remote.wire.begun == 2
        assert await remote.service.executions.end("b", 0.0) is not None

    elsewhere(scenario)


def test_who_comes_soon_after_goes_on_with_the_same_subscription() -> None:
    async def scenario(remote: Elsewhere) -> None:
        subscription = remote.service.commit_subscription
        assert subscription is not None
        subscription._linger = 60.0
        for _ in range(3):
            assert await remote.service.executions.end("a", 0.001) is None
        await until(lambda: remote.wire.readers, "somebody has subscribed")
        assert await remote.service.executions.end("a", 0.001) is None
        assert remote.wire.begun == 1
        subscription.close()

    elsewhere(scenario)


def test_a_process_that_does_not_hear_of_all_ends_remembers_no_starts() -> None:
    async def scenario(remote: Elsewhere) -> None:
        record = ExecutionRecord("new", "flow", 1, ExecutionState.PENDING, b"{}", 1000.0)
        waits = ExecutionRecord("waits", "flow", 1, ExecutionState.PENDING, b"{}", 1000.0)
        submissions = remote.service.submissions
        await submissions.record_intents([Intent(record), Intent(waits, waits=True)])
        await submissions.trigger("waits", "flow", None, {})
        assert submissions.unfinished == set()

    elsewhere(scenario)


async def _all(remote: Elsewhere, name: str) -> list[int]:
    return [
        line.seq async for lines in remote.service.live_events.execution(name) for line in lines
    ]
