"""Several API processes at once.

Here these are several stores, each with connections of its own, on one database.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from penstock.contract.facts import submitted
from penstock.errors import Conflict
from penstock.stores.base import KEY_SECONDS, Intent
from penstock.stores.postgres.cold import PostgresColdStore
from tests.postgres.opened import new_intent
from tests.servers import database_url


def test_the_same_key_from_several_processes_at_once_makes_one_execution() -> None:
    async def scenario(stores: list[PostgresColdStore]) -> None:
        for attempt in range(10):
            key = f"key-{attempt}"
            intents = [
                new_intent(f"{key}-{number}", idempotency_key=key, request_hash="h")
                for number in range(12)
            ]
            answers = await asyncio.gather(
                *(
                    _pick(stores, i).executions.record_intents([intent])
                    for i, intent in enumerate(intents)
                )
            )
            (winner,) = {answer for (answer,) in answers}
            assert await stores[0].executions.execution(winner) is not None
        assert len(await stores[0].executions.started(0)) == 10

    _run(scenario)


def test_many_keys_in_any_order_do_not_wait_in_a_circle() -> None:
    async def scenario(stores: list[PostgresColdStore]) -> None:
        keys = [f"key-{number}" for number in range(50)]
        batches = []
        for caller in range(6):
            order = keys[caller * 7 :] + keys[: caller * 7]
            batches.append(
                [
                    _keyed(f"{caller}-{key}", key, 1000.0)
                    for key in (order if caller % 2 else order[::-1])
                ]
            )
        answers = await asyncio.gather(
            *(_pick(stores, i).executions.record_intents(batch) for i, batch in enumerate(batches))
        )
        assert all(len(answer) == 50 for answer in answers)
        assert len({name for answer in answers for name in answer}) == 50
        assert len(await stores[0].executions.started(0)) == 50

    _run(scenario)


def test_a_key_that_has_expired_is_renewed_by_one_of_many() -> None:
    async def scenario(stores: list[PostgresColdStore]) -> None:
        await stores[0].executions.record_intents([_keyed("old", "k", 1000.0)])
        later = [_keyed(f"new-{number}", "k", 1000.0 + KEY_SECONDS) for number in range(12)]
        answers = await asyncio.gather(
            *(
                _pick(stores, i).executions.record_intents([intent])
                for i, intent in enumerate(later)
            )
        )
        assert len({answer for (answer,) in answers}) == 1
        assert answers[0] != ["old"]
        assert len(await stores[0].executions.started(0)) == 2

    _run(scenario)


def test_of_triggers_and_cancels_from_several_processes_one_begins_it() -> None:
    async def scenario(stores: list[PostgresColdStore]) -> None:
        names = [f"waits-{number}" for number in range(10)]
        await stores[0].executions.record_intents([new_intent(name, waits=True) for name in names])
        for name in names:
            triggers = [
                _pick(stores, i).executions.trigger(name, str(i).encode(), {}) for i in range(6)
            ]
            answers = await asyncio.gather(
                *triggers,
                _pick(stores, 1).executions.request_control(name, "cancel"),
                return_exceptions=True,
            )
            assert Counter(type(answer) for answer in answers[:6])[Conflict] >= 5
            begun = [number for number, answer in enumerate(answers[:6]) if answer is None]
            intent = await stores[0].executions.intent(name)
            assert intent is not None
            assert not intent.waits
            assert intent.record.input == (
                str(begun[0]).encode() if begun else new_intent(name).record.input
            )
        assert set(await stores[0].executions.control_requests(0)) == set(names)

    _run(scenario)


def test_versions_from_several_processes_are_numbered_without_a_gap() -> None:
    async def scenario(stores: list[PostgresColdStore]) -> None:
        puts = (
            _pick(stores, i).definitions.put_workflow("flow", f"hash-{i % 10}", b"text", 1.0)
            for i in range(30)
        )
        versions = await asyncio.gather(*puts)
        assert {version.version for version in versions} == set(range(1, 11))
        assert len({(version.version, version.content_hash) for version in versions}) == 10

    _run(scenario)


def _keyed(name: str, key: str, created_at: float) -> Intent:
    intent = submitted(name, created_at=created_at)
    intent.idempotency_key, intent.request_hash = key, "h"
    return intent


def _pick(stores: list[PostgresColdStore], number: int) -> PostgresColdStore:
    return stores[number % len(stores)]


def _run(scenario, count: int = 3) -> None:
    async def run() -> None:
        url = database_url(1)
        async with AsyncExitStack() as stack:
            stores = [PostgresColdStore(url) for _ in range(count)]
            for store in stores:
                stack.push_async_callback(store.close)
                await store.open()
            await scenario(stores)

    asyncio.run(run())
