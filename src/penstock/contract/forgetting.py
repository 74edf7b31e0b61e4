"""Retention: what ended, or was never triggered, long ago goes with all that is its own; nothing else does."""

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
OLD, YOUNG = 10.0, 2000.0


def made(execution_id: str, created_at: float, **fields: Any) -> Intent:
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


async def names_in(stores: Stores) -> set[str]:
    return {row.execution_id for row in await stores.cold.search(Search(limit=100))}


async def test_what_ended_long_ago_goes_with_all_that_is_its_own(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    old, young, runs = next(execution_ids), next(execution_ids), next(execution_ids)
    await stores.cold.record_intents(
        [
            made(execution_id, OLD, labels={"of": execution_id}, idempotency_key=execution_id)
            for execution_id in (old, young, runs)
        ]
    )
    await finish(stores, {old: OLD, young: YOUNG})
    assert await stores.forget(BEFORE) == 1
    assert await names_in(stores) == {young, runs}
    assert await stores.cold.execution(old) is None
    assert await stores.cold.history(old) is None
    assert await stores.cold.search(Search(labels={"of": old})) == []
    assert await stores.cold.key_use("", young) is not None
    assert [
        row.dead_letter.execution_id for row in await stores.cold.dead_letters(DeadLetterSearch())
    ] == [young]
    assert await stores.cold.execution(young) is not None
    assert await stores.forget(BEFORE) == 0


async def test_what_was_never_triggered_has_an_age_limit_too(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    old, young, triggered, cancelled = (next(execution_ids) for _ in range(4))
    await stores.cold.record_intents(
        [made(execution_id, OLD, waits=True) for execution_id in (old, triggered, cancelled)]
    )
    await stores.cold.record_intents([made(young, YOUNG, waits=True)])
    await stores.cold.trigger(triggered, None, {})
    await stores.cold.request_control(cancelled, "cancel")
    assert await stores.forget(BEFORE) == 1
    assert await names_in(stores) == {young, triggered, cancelled}
    with pytest.raises(NotFound):
        await stores.cold.trigger(old, None, {})


async def test_an_execution_stays_as_long_as_a_retry_of_it(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    first, second = next(execution_ids), next(execution_ids)
    await stores.cold.record_intents([made(first, OLD)])
    await stores.cold.record_intents([made(second, OLD, retry_of=first)])
    await finish(stores, {first: OLD})
    assert await stores.forget(BEFORE) == 0
    await finish(stores, {second: OLD})
    assert await stores.forget(BEFORE) == 2
    assert await names_in(stores) == set()


async def test_numbers_go_on_after_everything_is_forgotten(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    first, second = next(execution_ids), next(execution_ids)
    await stores.cold.record_intents([made(first, OLD)])
    await finish(stores, {first: OLD})
    end = await stores.cold.commits_end()
    dead_letter_id = (await stores.cold.dead_letters(DeadLetterSearch()))[0].id
    assert await stores.forget(BEFORE) == 1
    assert await stores.cold.commits_end() == end
    await stores.cold.record_intents([made(second, OLD)])
    await finish(stores, {second: OLD})
    assert (await stores.cold.commits_end()) > end
    assert (await stores.cold.dead_letters(DeadLetterSearch()))[0].id > dead_letter_id
