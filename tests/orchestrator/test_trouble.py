"""An owner goes on while a store is full or away, or one of its executions can't be read."""

import asyncio
import logging
from typing import Any

import pytest

from penstock.engine.events import Blob, TaskSucceeded, TimerFired
from penstock.errors import StoreUnavailable
from penstock.orchestrator import owner as owners
from penstock.stores.task_keys import key_of
from tests.orchestrator.desk import Desk, TieredDesk, node, quick
from tests.waiting import until


async def _away(*_: object, **__: object) -> Any:
    raise StoreUnavailable("away")


def test_a_partition_whose_recovery_finds_no_room_is_owned_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=quick(reconcile_seconds=0.01))
        owner = await desk.own("the last")
        await desk.build(owner)
        name = await desk.start([node("a")])
        await desk.drain(owner)
        missing = await desk.record_intent(await desk.workflow([node("a")]))
        await desk.stores.hot.release(owner.lease)
        with pytest.MonkeyPatch.context() as outage:
            outage.setattr(desk.stores.hot, "append", _away)
            orchestrator = desk.orchestrator()
            orchestrator.start()
            await orchestrator.recovered.wait()
            await desk.succeed(await desk.fetch())
            await until(lambda: desk.row(name).record.state == "COMPLETED")
        await until(desk.stores.queue.depth)
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(missing).record.state == "COMPLETED")
        await orchestrator.stop()

    with caplog.at_level(logging.WARNING, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert "is put off: away" in caplog.text


def test_an_execution_that_cannot_be_read_is_left_alone_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its timer is due for ever, and nothing can be decided about it."""

    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        bad, good = [await desk.start([node("a"), node("b", "a")]) for _ in range(2)]
        await desk.drain(owner)
        desk.stores.hot.changes[bad].append(b"\xc1")
        desk.stores.hot._partitions[0].timers[bad] = desk.now
        owner = await desk.own()
        for turn in range(2):
            caplog.clear()
            for _ in range(5):
                await desk.stores.hot.append([TimerFired(bad)])
                await desk.drain(owner)
            assert await desk.stores.hot.next_due(0) == desk.now + desk.timing.quarantine_seconds
            assert len(caplog.records) == 2, f"turn {turn}: once, and with what is wrong"
            desk.now += desk.timing.quarantine_seconds
        await desk.succeed(await desk.fetch())
        await desk.work(owner)
        assert await desk.state(good) == "COMPLETED"

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())


def test_a_checkpoint_leaves_out_what_cannot_be_read() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        bad, good = [await desk.start([node("a")]) for _ in range(2)]
        await desk.drain(owner)
        desk.stores.hot.changes[bad].append(b"\xc1")
        await desk.checkpoint(owner)
        assert (desk.row(bad).record.state, desk.row(good).record.state) == ("PENDING", "RUNNING")

    asyncio.run(scenario())


def test_while_large_values_cannot_be_read_only_who_needs_them_waits() -> None:
    async def scenario(*, new_owner: bool) -> None:
        desk = TieredDesk()
        owner = await desk.own()
        wants = await desk.start([node("a"), node("b", "a", config={"x": "{{ a.x }}"})])
        other = await desk.start([node("a"), node("b", "a")])
        await desk.drain(owner)
        blob = await desk.stores.blobs.put(b'{"x":1}')
        tasks = {task.execution_id: task for task in await desk.fetch()}
        with pytest.MonkeyPatch.context() as outage:
            outage.setattr(desk.stores.blobs, "get", _away)
            await desk.report(
                TaskSucceeded(*key_of(tasks[wants]), "worker-1", desk.now, blob),
                TaskSucceeded(*key_of(tasks[other]), "worker-1", desk.now, b"{}"),
            )
            await desk.drain(owner)
            assert (await desk.states(wants), await desk.states(other)) == (
                {"a": "COMPLETED"},
                {"a": "COMPLETED", "b": "QUEUED"},
            )
            desk.now += 1.0
            await desk.drain(owner)
        if new_owner:
            await desk.stores.hot.release(owner.lease)
            owner = await desk.own("owner-2")
        desk.now += 1.0
        await desk.work(owner)
        assert (await desk.state(wants), await desk.state(other)) == ("COMPLETED", "COMPLETED")

    asyncio.run(scenario(new_owner=False))
    asyncio.run(scenario(new_owner=True))


def test_a_blob_store_that_is_away_is_not_asked_by_every_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call may take as long as a connection that nobody answers, and all others wait for it."""
    calls = 0

    async def slow(_: Blob) -> bytes:
        nonlocal calls
        calls += 1
        raise StoreUnavailable("away")

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        for _ in range(10):
            await desk.start([node("a"), node("b", "a", config={"x": "{{ a.x }}"})])
        await desk.drain(owner)
        blob = await desk.stores.blobs.put(b'{"x":1}')
        monkeypatch.setattr(desk.stores.blobs, "get", slow)
        await desk.report(
            *[
                TaskSucceeded(*key_of(task), "worker-1", desk.now, blob)
                for task in await desk.fetch()
            ]
        )
        await desk.drain(owner)
        assert calls == 1

    asyncio.run(scenario())


def test_while_large_values_cannot_be_written_tasks_carry_them() -> None:
    async def scenario() -> None:
        desk = TieredDesk(inline_max_bytes=1000)
        owner = await desk.own()
        parents = [f"p{number}" for number in range(5)]
        name = await desk.start(
            [
                *(node(parent) for parent in parents),
                node("join", *parents, config={"x": "x" * 2000}),
            ]
        )
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'"' + b"x" * 900 + b'"')
        with pytest.MonkeyPatch.context() as outage:
            outage.setattr(desk.stores.blobs, "put", _away)
            await desk.drain(owner)
        (join,) = await desk.fetch()
        assert isinstance(join.config, bytes)
        assert [parent for parent, _ in join.inputs] == parents
        await desk.succeed([join])
        await desk.drain(owner)
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_what_is_too_large_for_a_task_ends_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "INLINE_AWAY_BYTES", 1500)

    async def scenario() -> None:
        desk = TieredDesk(inline_max_bytes=1000)
        owner = await desk.own()
        await desk.start([node("a", config={"x": "x" * 2000})])
        monkeypatch.setattr(desk.stores.blobs, "put", _away)
        with pytest.raises(StoreUnavailable):
            await desk.drain(owner)

    asyncio.run(scenario())
