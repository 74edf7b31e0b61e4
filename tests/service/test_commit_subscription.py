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
from penstock.orchestrator.plans import Plans
from penstock.service import Service
from penstock.stores.base import Intent
from penstock.stores.records import FeedEntry
from tests.service.chronicle import Chronicle, seqs
from tests.waiting import let_others_run, until


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
        self.chronicle, self.wire = chronicle, Wire()
        stores: Any = chronicle.stores
        stores.cold = chronicle.cold
        self.service = Service(stores, Plans(stores.cold, dict), Settings(), dict, self.wire)
        subscription = self.service.commit_subscription
        assert subscription is not None
        subscription._linger = subscription._pause = 0.0
        self._place = (0,)

    async def commit(self, name: str, lines: int = 1) -> None:
        await self.chronicle.commit(name, lines, told=False)
        await self._tell()

    async def finish(self, name: str) -> None:
        await self.chronicle.finish(name, told=False)
        await self._tell()

    async def _tell(self) -> None:
        parts = await self.chronicle.stores.cold.read_commits(self._place)
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
        place = Elsewhere(chronicle)
        await chronicle.record_intents("a", "b")
        try:
            await scenario(place)
            await place.silence()
        finally:
            await place.service.close()
            await chronicle.end()

    asyncio.run(main())


def test_who_waits_is_told_of_an_end_that_another_process_recorded() -> None:
    async def scenario(place: Elsewhere) -> None:
        waiting = [
            asyncio.create_task(place.service.executions.end("a", seconds))
            for seconds in (None, 20.0)
        ]
        await until(lambda: place.wire.readers, "somebody has subscribed")
        await place.commit("a", 2)
        await place.finish("b")
        await let_others_run()
        assert not any(task.done() for task in waiting)
        await place.finish("a")
        for ended in await asyncio.gather(*waiting):
            assert ended is not None
            assert (ended.record.execution_id, ended.record.state) == ("a", "COMPLETED")

    elsewhere(scenario)


def test_an_end_between_reading_the_store_and_subscribing_is_found() -> None:
    async def scenario(place: Elsewhere) -> None:
        place.wire.open.clear()
        waiting = asyncio.create_task(place.service.executions.end("a"))
        following = asyncio.create_task(_all(place, "a"))
        await let_others_run()
        await place.finish("a")
        await let_others_run()
        assert not waiting.done()
        place.wire.open.set()
        assert await waiting
        assert await following == [1]

    elsewhere(scenario)


def test_an_execution_that_cannot_be_read_now_keeps_nobody_else_from_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.service.executions.LOOK_SECONDS", 0.0)

    async def scenario(place: Elsewhere) -> None:
        cold = place.chronicle.stores.cold
        read = cold.execution
        away = True

        async def refuse(name: str) -> Any:
            if name == "a" and away:
                raise StoreUnavailable("PostgreSQL is away")
            return await read(name)

        place.wire.open.clear()
        waiting = [asyncio.create_task(place.service.executions.end(name)) for name in ("a", "b")]
        await let_others_run()
        await place.finish("a")
        monkeypatch.setattr(cold, "execution", refuse)
        place.wire.open.set()
        await until(lambda: place.wire.readers, "somebody has subscribed")
        await place.finish("b")
        assert await waiting[1]
        assert place.wire.begun == 1, "they haven't broken off"
        away = False
        assert await waiting[0]

    elsewhere(scenario)


def test_an_end_while_the_subscription_is_broken_off_is_found_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(place: Elsewhere) -> None:
        waiting = asyncio.create_task(place.service.executions.end("a"))
        following = asyncio.create_task(_all(place, "a"))
        await until(lambda: place.wire.readers, "somebody has subscribed")
        for _ in range(3):
            begun = place.wire.begun
            place.wire.deliver(StoreUnavailable("Redis is away"))
            await until(lambda begun=begun: place.wire.begun > begun, "it is tried again")  # type: ignore[misc]
        place.wire.open.clear()
        place.wire.deliver(StoreUnavailable("Redis is away"))
        await until(lambda: not place.wire.readers, "it is away")
        await place.commit("a", 3)
        await place.finish("a")
        place.wire.open.set()
        assert await waiting
        assert await following == [1, 2, 3, 4]

    with caplog.at_level(logging.INFO, "penstock.service"):
        elsewhere(scenario)
    told = [record.getMessage() for record in caplog.records]
    assert (
        sum("broke off" in message for message in told)
        == sum("is back" in message for message in told)
        <= 4
    )


def test_a_store_that_cannot_be_read_when_the_subscription_begins_is_read_later() -> None:
    async def scenario(place: Elsewhere) -> None:
        place.wire.open.clear()
        waiting = asyncio.create_task(place.service.executions.end("a"))
        await let_others_run()
        await place.finish("a")
        real, failures = place.service.stores.cold.execution, [StoreUnavailable("no database")] * 3

        async def execution(name: str) -> Any:
            if failures:
                raise failures.pop()
            return await real(name)

        place.chronicle.cold.execution = execution
        place.wire.open.set()
        assert await waiting
        assert not failures

    elsewhere(scenario)


def test_an_end_that_the_store_does_not_show_yet_is_read_again() -> None:
    async def scenario(place: Elsewhere) -> None:
        waiting = asyncio.create_task(place.service.executions.end("a"))
        await until(lambda: place.wire.readers, "somebody has subscribed")
        await let_others_run()
        real = place.service.stores.cold.execution
        early: list[Any] = [await real("a"), None, StoreUnavailable("no database")]

        async def execution(name: str) -> Any:
            if not early:
                return await real(name)
            found = early.pop()
            if isinstance(found, Exception):
                raise found
            return found

        place.chronicle.cold.execution = execution
        await place.finish("a")
        assert await waiting
        assert not early
        assert not place.service.executions._readers

    elsewhere(scenario)


def test_followers_get_every_line_once_and_in_order() -> None:
    async def scenario(place: Elsewhere) -> None:
        await place.commit("a", 2)
        one = asyncio.create_task(_all(place, "a"))
        everything: list[Any] = []

        async def follow_all() -> None:
            async for batch in place.service.live_events.everything("0"):
                everything.append(batch)  # noqa: PERF401 -- seen while it goes on

        all_of_them = asyncio.create_task(follow_all())
        await until(lambda: place.wire.readers and len(everything) > 1, "both listen")
        for name in ("b", "a", "a", "b"):
            await place.commit(name, 2)
        await place.finish("a")
        assert await one == [1, 2, 3, 4, 5, 6, 7]
        await until(lambda: len(seqs(everything)) >= 11, "all lines of both")
        assert seqs(everything) == [1, 2, 1, 2, 3, 4, 5, 6, 3, 4, 7]
        all_of_them.cancel()
        await asyncio.wait((all_of_them,))

    elsewhere(scenario)


def test_nothing_is_read_while_nobody_listens_and_who_comes_later_is_told_again() -> None:
    async def scenario(place: Elsewhere) -> None:
        await place.commit("a")
        await let_others_run()
        assert place.wire.begun == 0
        for name in ("a", "b"):
            waiting = asyncio.create_task(place.service.executions.end(name))
            await until(lambda: place.wire.readers, "somebody has subscribed")
            await place.finish(name)
            assert await waiting
            await place.silence()
        assert place.wire.begun == 2
        assert await place.service.executions.end("b", 0.0) is not None

    elsewhere(scenario)


def test_who_comes_soon_after_goes_on_with_the_same_subscription() -> None:
    async def scenario(place: Elsewhere) -> None:
        subscription = place.service.commit_subscription
        assert subscription is not None
        subscription._linger = 60.0
        for _ in range(3):
            assert await place.service.executions.end("a", 0.001) is None
        await until(lambda: place.wire.readers, "somebody has subscribed")
        assert await place.service.executions.end("a", 0.001) is None
        assert place.wire.begun == 1
        subscription.close()

    elsewhere(scenario)


def test_a_process_that_does_not_hear_of_all_ends_remembers_no_starts() -> None:
    async def scenario(place: Elsewhere) -> None:
        record = ExecutionRecord("new", "flow", 1, ExecutionState.PENDING, b"{}", 1000.0)
        waits = ExecutionRecord("waits", "flow", 1, ExecutionState.PENDING, b"{}", 1000.0)
        submissions = place.service.submissions
        await submissions.record_intents([Intent(record), Intent(waits, waits=True)])
        await submissions.trigger("waits", "flow", None, {})
        assert submissions.unfinished == set()

    elsewhere(scenario)


async def _all(place: Elsewhere, name: str) -> list[int]:
    return [line.seq async for lines in place.service.live_events.execution(name) for line in lines]
