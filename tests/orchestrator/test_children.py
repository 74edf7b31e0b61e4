"""What goes between parents and children through the outbox, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from penstock.engine.children import start_of
from penstock.engine.commands import StartChild
from penstock.engine.events import AnyEvent, ChildEnded, ExecutionStarted
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from tests.orchestrator.desk import TieredDesk, node
from tests.waiting import until

BILL = {"id": "bill", "handler": "workflow", "config": {"workflow": "billing"}}


async def parent(desk: TieredDesk, owner: PartitionOwner, **fields: Any) -> str:
    """A parent that waits for its child."""
    await desk.workflow([node("pay")], "billing")
    name = await desk.start([{**BILL, **fields}], name="order")

    async def has_asked() -> bool:
        await desk.drain(owner)
        return (await desk.states(name)).get("bill") is not None

    await until(has_asked)
    return name


async def start_from(desk: TieredDesk, name: str) -> StartChild:
    stored = await desk.stored(name)
    start = start_of(stored.record, stored.runs["bill"])
    assert start is not None
    return start


async def inbox(desk: TieredDesk) -> list[AnyEvent]:
    return [event for _, event in await desk.stores.hot.receive(0, 0, 1000, 0.0)]


def test_a_child_goes_through_the_outbox_and_so_does_its_end() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await parent(desk, owner)
        child = (await start_from(desk, name)).record.execution_id
        assert await desk.stores.cold.executions.intent(child) is None
        await desk.archiver(owner).drain()
        assert await inbox(desk) == [ExecutionStarted(child)]

        await desk.work(owner, b"7")
        assert await desk.states(name) == {"bill": "WAITING"}
        await desk.archiver(owner).drain()
        await desk.drain(owner)
        assert await desk.state(name) == "COMPLETED"
        assert (await desk.stored(name)).outputs["bill"] == b'{"pay":7}'

    asyncio.run(scenario())


def test_a_parent_hears_of_an_end_only_when_the_cold_store_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await parent(desk, owner)
        child = (await start_from(desk, name)).record.execution_id
        await desk.archiver(owner).drain()
        await desk.work(owner)

        append = desk.stores.hot.append
        states: list[str] = []

        async def look(events: Sequence[AnyEvent], *, own: bool = False) -> None:
            if any(isinstance(event, ChildEnded) for event in events):
                states.append(str(desk.row(child).record.state))
            await append(events, own=own)

        monkeypatch.setattr(desk.stores.hot, "append", look)
        await desk.archiver(owner).drain()
        assert states == ["COMPLETED"]

    asyncio.run(scenario())


def test_an_end_that_was_told_is_told_again_by_whoever_finds_it_in_the_outbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await parent(desk, owner)
        await desk.archiver(owner).drain()
        await desk.work(owner)
        acknowledge = desk.stores.tiering.hot.acknowledge_outbox

        async def die(lease: Any, count: int, archived: Any) -> None:
            if count:
                raise StoreUnavailable("it dies before the entry is taken off")
            await acknowledge(lease, count, archived)

        with monkeypatch.context() as patch:
            patch.setattr(desk.stores.tiering.hot, "acknowledge_outbox", die)
            with pytest.raises(StoreUnavailable):
                await desk.archiver(owner).drain()
        await desk.archiver(owner).drain()
        told = [event for event in await inbox(desk) if isinstance(event, ChildEnded)]
        assert len(told) == 2
        await desk.drain(owner)
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_a_former_owner_starts_no_child() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await parent(desk, owner)
        child = (await start_from(desk, name)).record.execution_id
        desk.now += 10_000.0
        await desk.own("owner-2")
        with pytest.raises(Fenced):
            await desk.archiver(owner).drain()
        assert await desk.stores.cold.executions.intent(child) is None

    asyncio.run(scenario())


def test_a_start_that_is_sent_again_finds_the_child_at_work_or_tells_of_its_end() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        start = await start_from(desk, await parent(desk, owner))
        child = start.record.execution_id
        await desk.archiver(owner).drain()
        await desk.relay.deliver([start])
        assert await inbox(desk) == 2 * [ExecutionStarted(child)]
        assert len(await desk.work(owner)) == 1
        await desk.archiver(owner).drain()
        await desk.drain(owner)

        await desk.relay.deliver([start])
        (told,) = await inbox(desk)
        assert isinstance(told, ChildEnded)
        assert (told.child, told.state, told.output) == (child, "COMPLETED", b'{"pay":{}}')

    asyncio.run(scenario())


def test_what_cannot_be_written_now_is_written_when_the_store_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        start = await start_from(desk, await parent(desk, owner))
        intents = desk.stores.cold.executions.intents
        away = 3

        async def sometimes(ids: Any) -> Any:
            nonlocal away
            away -= 1
            if away >= 0:
                raise StoreUnavailable("PostgreSQL is away")
            return await intents(ids)

        monkeypatch.setattr(desk.stores.cold.executions, "intents", sometimes)
        await desk.archiver(owner).drain()
        assert await inbox(desk) == [ExecutionStarted(start.record.execution_id)]

    asyncio.run(scenario())
