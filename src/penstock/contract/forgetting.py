"""Retention: it deletes executions that ended, or were never triggered, long ago.

Everything that belongs to them goes too, and nothing else does.
"""

from itertools import islice
from typing import Any

import pytest
from msgspec import structs

from penstock.contract.facts import (
    Owner,
    dead_letter,
    ended,
    new_execution_ids,
    new_intent,
    started,
)
from penstock.engine.commands import Commands
from penstock.errors import NotFound
from penstock.stores.base import Intent, Stores
from penstock.stores.records import DeadLetterSearch, Search

BEFORE = 1000.0
OLD = 10.0
YOUNG = 2000.0


def intent_created_at(execution_id: str, created_at: float, **fields: Any) -> Intent:
    intent = new_intent(execution_id, **fields)
    intent.record.created_at = created_at
    return intent


def over(execution_id: str, finished_at: float) -> Commands:
    commands = ended(execution_id, dead_letters=[dead_letter(execution_id)])
    assert commands.record is not None
    commands.record = structs.replace(commands.record, created_at=OLD, finished_at=finished_at)
    return commands


async def finish(stores: Stores, ends: dict[str, float]) -> None:
    owner = await Owner.of(stores)
    await owner.commit(*(started(execution_id) for execution_id in ends))
    await owner.commit(*(over(execution_id, at) for execution_id, at in ends.items()))


async def stored_ids(stores: Stores) -> set[str]:
    return {row.execution_id for row in await stores.cold.executions.search(Search(limit=100))}


async def test_what_ended_long_ago_goes_with_all_that_is_its_own(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    old = next(execution_ids)
    young = next(execution_ids)
    runs = next(execution_ids)
    await cold.executions.record_intents(
        [
            intent_created_at(
                execution_id, OLD, labels={"of": execution_id}, idempotency_key=execution_id
            )
            for execution_id in (old, young, runs)
        ]
    )
    await finish(stores, {old: OLD, young: YOUNG})
    assert await stores.forget(BEFORE) == 1
    assert await stored_ids(stores) == {young, runs}
    assert await cold.executions.execution(old) is None
    assert await cold.executions.history(old) is None
    assert await cold.executions.search(Search(labels={"of": old})) == []
    assert await cold.executions.key_use("", young) is not None
    rows = await cold.dead_letters.dead_letters(DeadLetterSearch())
    assert [row.dead_letter.execution_id for row in rows] == [young]
    assert await cold.executions.execution(young) is not None
    assert await stores.forget(BEFORE) == 0


async def test_what_was_never_triggered_has_an_age_limit_too(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    old, young, triggered, cancelled = islice(execution_ids, 4)
    await cold.executions.record_intents(
        [
            intent_created_at(execution_id, OLD, waits=True)
            for execution_id in (old, triggered, cancelled)
        ]
    )
    await cold.executions.record_intents([intent_created_at(young, YOUNG, waits=True)])
    await cold.executions.trigger(triggered, None, {})
    await cold.executions.request_control(cancelled, "cancel")
    assert await stores.forget(BEFORE) == 1
    assert await stored_ids(stores) == {young, triggered, cancelled}
    with pytest.raises(NotFound):
        await cold.executions.trigger(old, None, {})


async def test_an_execution_stays_as_long_as_a_retry_of_it(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    first = next(execution_ids)
    second = next(execution_ids)
    await stores.cold.executions.record_intents([intent_created_at(first, OLD)])
    await stores.cold.executions.record_intents([intent_created_at(second, OLD, retry_of=first)])
    await finish(stores, {first: OLD})
    assert await stores.forget(BEFORE) == 0

    await finish(stores, {second: OLD})
    assert await stores.forget(BEFORE) == 2
    assert await stored_ids(stores) == set()


async def test_numbers_go_on_after_everything_is_forgotten(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    first = next(execution_ids)
    second = next(execution_ids)
    await cold.executions.record_intents([intent_created_at(first, OLD)])
    await finish(stores, {first: OLD})
    end = await cold.executions.commits_end()
    dead_letter_id = (await cold.dead_letters.dead_letters(DeadLetterSearch()))[0].id
    assert await stores.forget(BEFORE) == 1
    assert await cold.executions.commits_end() == end

    await cold.executions.record_intents([intent_created_at(second, OLD)])
    await finish(stores, {second: OLD})
    assert (await cold.executions.commits_end()) > end
    assert (await cold.dead_letters.dead_letters(DeadLetterSearch()))[0].id > dead_letter_id
