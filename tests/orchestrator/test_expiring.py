"""Waits that end at the moment in which what they wait for comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.definition.waits import decision_name
from penstock.engine.events import Continued
from penstock.errors import StoreUnavailable
from penstock.orchestrator.owner import BATCH_EVENTS, PartitionOwner
from penstock.stores.signals import NewSignal, received
from tests.orchestrator.desk import Desk, TieredDesk, node

SECONDS = 60.0
LATE_SECONDS = 10.0
KINDS: dict[str, dict[str, Any]] = {
    "approval": {"title": "Go on?", "expires_seconds": SECONDS},
    "signal": {"name": "go", "timeout_seconds": SECONDS, "on_timeout": "continue"},
}
NAMES = {"approval": decision_name("a", 1), "signal": "go"}


async def waiting(desk: Desk, owner: PartitionOwner, handler: str) -> str:
    name = await desk.start([node("a", handler=handler, config=KINDS[handler])])
    await desk.drain(owner)
    assert await desk.states(name) == {"a": "WAITING"}
    return name


def signal(desk: Desk, execution_id: str, handler: str) -> NewSignal:
    return NewSignal(
        execution_id=execution_id,
        name=NAMES[handler],
        payload=b'{"decision":"approved"}',
        sender="Ada",
        at=desk.now,
    )


async def assert_came_in_time(desk: Desk, name: str) -> None:
    run = (await desk.stored(name)).runs["a"]
    assert run.state == "COMPLETED"
    assert str(run.reason).endswith("Ada"), run.reason


@pytest.mark.parametrize("handler", KINDS)
def test_what_was_stored_in_time_counts_though_its_event_never_came(handler: str) -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await waiting(desk, owner, handler)
        await desk.stores.cold.signals.put(signal(desk, name, handler))
        desk.now += SECONDS + LATE_SECONDS
        await desk.drain(owner)
        await assert_came_in_time(desk, name)

    asyncio.run(scenario())


@pytest.mark.parametrize("handler", KINDS)
def test_what_was_stored_in_time_counts_though_its_event_is_behind_many(handler: str) -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await waiting(desk, owner, handler)
        await desk.stores.hot.append([Continued(name)] * BATCH_EVENTS)
        decision = signal(desk, name, handler)
        number, _ = await desk.stores.cold.signals.put(decision)
        await desk.stores.hot.append([received(decision, number)])
        desk.now += SECONDS + LATE_SECONDS
        await desk.drain(owner)
        await assert_came_in_time(desk, name)

    asyncio.run(scenario())


@pytest.mark.parametrize("handler", KINDS)
def test_nothing_expires_while_the_store_of_signals_is_away(
    handler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> Any:
        raise StoreUnavailable("PostgreSQL is away")

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.build(owner)
        name = await waiting(desk, owner, handler)
        await desk.stores.cold.signals.put(signal(desk, name, handler))
        with monkeypatch.context() as patched:
            patched.setattr(desk.stores.cold.signals, "of", away)
            desk.now += SECONDS + LATE_SECONDS
            await desk.drain(owner)
            assert await desk.states(name) == {"a": "WAITING"}
        desk.now += desk.timing.cold_away_retry_seconds
        await desk.drain(owner)
        await assert_came_in_time(desk, name)

    asyncio.run(scenario())


@pytest.mark.parametrize("handler", KINDS)
def test_what_nobody_has_sent_expires(handler: str) -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await waiting(desk, owner, handler)
        desk.now += SECONDS + LATE_SECONDS
        await desk.drain(owner)
        run = (await desk.stored(name)).runs["a"]
        assert (run.state, run.reason) in {("COMPLETED", "expired"), ("COMPLETED", "timed out")}

    asyncio.run(scenario())
