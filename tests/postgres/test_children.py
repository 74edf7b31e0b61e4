"""What PostgreSQL says of children to both ends: who has ended lately, and who was left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

import pytest

from penstock.config import Settings
from penstock.contract.facts import Owner, begin, new_execution_ids, over, running, submitted
from penstock.engine.commands import Parent
from penstock.engine.states import ExecutionState
from penstock.stores.base import Intent
from penstock.stores.scaled import ScaledStores
from tests.servers import database_url, redis_url


def on_scaled_stores(scenario: Callable[[ScaledStores], Awaitable[None]]) -> None:
    async def main() -> None:
        stores = ScaledStores(redis_url(), Settings(database=database_url(2)))
        try:
            await stores.open()
            await scenario(stores)
        finally:
            await stores.close()

    asyncio.run(main())


def child_of(parent: str, child: str, **fields: Any) -> Intent:
    return submitted(child, parent=Parent(parent, "bill\0", 1, parent, 1, **fields))


async def _record(owner: Owner, *intents: Intent) -> None:
    await owner.stores.cold.executions.record_intents(list(intents))
    await owner.commit(*map(running, intents))


def test_children_that_ended_lately_are_listed_for_the_partition_of_their_parent() -> None:
    async def scenario(stores: ScaledStores) -> None:
        parent, first, second, plain = islice(new_execution_ids(stores), 4)
        owner = await begin(stores, parent)
        ended = child_of(parent, first)
        active = child_of(parent, second)
        other = submitted(plain)
        await _record(owner, ended, active, other)
        cold = stores.tiering.cold
        await owner.commit(running(active, ExecutionState.PAUSED))
        assert await cold.ended_children(0, 60.0) == []
        await owner.commit(over(ended), over(other))
        assert await cold.ended_children(0, 60.0) == [(first, parent, "bill\0")]
        assert await cold.ended_children(1, 60.0) == []
        assert await cold.ended_children(0, -1.0) == []

        await owner.commit(over(submitted(parent)))
        assert await cold.ended_children(0, 60.0) == [], "nobody waits any more"

    on_scaled_stores(scenario)


@pytest.mark.parametrize(
    ("fields", "is_left"),
    [({}, True), ({"on_end": "leave"}, False), ({"is_awaited": False}, False)],
)
def test_children_that_their_parent_should_have_cancelled_are_listed(
    fields: dict[str, Any], *, is_left: bool
) -> None:
    async def scenario(stores: ScaledStores) -> None:
        parent, child = islice(new_execution_ids(stores), 2)
        owner = await begin(stores, parent)
        await _record(owner, child_of(parent, child, **fields))
        cold = stores.tiering.cold
        assert await cold.children_left_behind(0) == []
        await owner.commit(over(submitted(parent), ExecutionState.FAILED))
        assert await cold.children_left_behind(0) == ([child] if is_left else [])
        assert await cold.children_left_behind(1) == []

        await stores.cold.executions.request_control(child, "cancel")
        assert await cold.children_left_behind(0) == []

    on_scaled_stores(scenario)


def test_a_child_that_has_ended_was_not_left_behind() -> None:
    async def scenario(stores: ScaledStores) -> None:
        parent, child = islice(new_execution_ids(stores), 2)
        owner = await begin(stores, parent)
        intent = child_of(parent, child)
        await _record(owner, intent)
        await owner.commit(over(intent), over(submitted(parent)))
        assert await stores.tiering.cold.children_left_behind(0) == []

    on_scaled_stores(scenario)
