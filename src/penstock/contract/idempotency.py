"""Idempotency keys: the same request twice is one execution."""

import asyncio
from itertools import islice

import pytest

from penstock.contract.facts import new_execution_ids, new_intent, submitted
from penstock.errors import Conflict, KeyReused, StoreError
from penstock.stores.base import KEY_SECONDS, Intent, Stores

ODD_KEYS = (
    "",
    " ",
    "é",
    "🦀",
    "x" * 10_000,
    "a\x00b",
    "'; DROP TABLE executions; --",
    "half \ud800",
)


async def test_the_same_idempotency_key_gives_the_same_execution(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    a, b, c, d = islice(execution_ids, 4)
    batch = [
        new_intent(a, idempotency_key="k", request_hash="h"),
        new_intent(b),
        new_intent(c, idempotency_key="k", request_hash="h"),
    ]
    assert await cold.executions.record_intents(batch) == [a, b, a]

    again = new_intent(d, idempotency_key="k", request_hash="h")
    assert await cold.executions.record_intents([again]) == [a]
    assert sorted(await cold.executions.started(0)) == sorted([a, b])
    assert await cold.executions.execution(d) is None


async def test_the_same_key_from_many_at_once_gives_one_execution(stores: Stores) -> None:
    execution_ids = list(islice(new_execution_ids(stores), 20))
    intents = [
        new_intent(execution_id, idempotency_key="k", request_hash="h")
        for execution_id in execution_ids
    ]
    answers = await asyncio.gather(
        *(stores.cold.executions.record_intents([intent]) for intent in intents)
    )
    assert len({answer for (answer,) in answers}) == 1
    assert len(await stores.cold.executions.started(0)) == 1


async def test_the_same_key_for_another_request_is_refused_and_stores_nothing(
    stores: Stores,
) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    a, b, c = islice(execution_ids, 3)
    await cold.executions.record_intents([new_intent(a, idempotency_key="k", request_hash="h")])
    changed = new_intent(c, idempotency_key="k", request_hash="another")
    with pytest.raises(Conflict, match="'k'"):
        await cold.executions.record_intents([new_intent(b), changed])
    assert await cold.executions.started(0) == [a]
    assert await cold.executions.execution(b) is None


async def test_a_key_of_any_text_is_a_key_or_refused_and_the_store_goes_on(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    for key in ODD_KEYS:
        execution_id = next(execution_ids)
        intent = new_intent(execution_id, idempotency_key=key, request_hash="h")
        try:
            async with asyncio.timeout(5):
                recorded = await stores.cold.executions.record_intents([intent])
        except (Conflict, StoreError, UnicodeEncodeError):
            continue
        assert recorded == [execution_id], key

    last = next(execution_ids)
    assert await stores.cold.executions.record_intents([new_intent(last)]) == [last]


async def test_the_same_key_twice_in_one_call_for_two_requests_is_refused_and_stores_nothing(
    stores: Stores,
) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    a = next(execution_ids)
    b = next(execution_ids)
    two = [
        new_intent(a, idempotency_key="k", request_hash="h"),
        new_intent(b, idempotency_key="k", request_hash="another"),
    ]
    with pytest.raises(KeyReused, match="'k'"):
        await cold.executions.record_intents(two)
    assert await cold.executions.started(0) == []
    assert await cold.executions.record_intents(two[1:]) == [b]


async def test_each_scope_has_keys_of_its_own(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    a, b, c = islice(execution_ids, 3)
    keys = [("", "x:y"), ("x", "y"), ("x:y", "")]
    intents = [
        new_intent(execution_id, idempotency_key=key, key_scope=scope, request_hash=execution_id)
        for execution_id, (scope, key) in zip((a, b, c), keys, strict=True)
    ]
    assert await stores.cold.executions.record_intents(intents) == [a, b, c]

    again = [new_intent(next(execution_ids), idempotency_key="y", key_scope="x", request_hash=b)]
    assert await stores.cold.executions.record_intents(again) == [b]


async def test_a_key_is_forgotten_after_a_day(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    a, b, c, d = islice(execution_ids, 4)
    assert await cold.executions.record_intents([_keyed(a, 0.0, "h")]) == [a]
    assert await cold.executions.record_intents([_keyed(b, KEY_SECONDS - 1, "h")]) == [a]
    with pytest.raises(KeyReused):
        await cold.executions.record_intents([_keyed(b, KEY_SECONDS - 1, "another")])
    assert await cold.executions.record_intents([_keyed(c, KEY_SECONDS, "another")]) == [c]
    assert await cold.executions.record_intents([_keyed(d, KEY_SECONDS + 1, "another")]) == [c]
    assert sorted(await cold.executions.started(0)) == sorted([a, c])

    intent = await cold.executions.intent(a)
    assert intent is not None
    assert intent.idempotency_key == "k"


async def test_of_many_keys_in_one_call_the_known_ones_give_what_they_made(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = list(islice(new_execution_ids(stores), 600))
    first = [
        new_intent(execution_id, idempotency_key=f"k{i}", request_hash="h")
        for i, execution_id in enumerate(execution_ids[:300])
    ]
    assert await cold.executions.record_intents(first) == execution_ids[:300]

    second = [
        new_intent(execution_id, idempotency_key=f"k{i}", request_hash="h")
        for i, execution_id in enumerate(execution_ids[300:], start=150)
    ]
    expected = execution_ids[150:300] + execution_ids[450:]
    assert await cold.executions.record_intents(second) == expected
    assert len(await cold.executions.started(0)) == 450


def _keyed(execution_id: str, seconds: float, request_hash: str) -> Intent:
    intent = submitted(execution_id, created_at=1000.0 + seconds)
    intent.idempotency_key = "k"
    intent.request_hash = request_hash
    return intent
