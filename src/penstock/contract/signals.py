"""Signals to executions: numbered, stored once per request, and kept until they are delivered."""

import asyncio

import pytest

from penstock.contract.facts import (
    Owner,
    begin,
    ended,
    new_execution_ids,
    new_intent,
    running,
)
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict, KeyReused, NotFound, Overloaded
from penstock.stores.base import KEY_SECONDS, Stores
from penstock.stores.signals import KEPT_MAX, NewSignal

ODD_TEXTS = ("é", "🦀", "a'b", "x" * 128)


def new_signal(
    execution_id: str, name: str = "paid", payload: bytes = b'{"sum":7}', **fields: object
) -> NewSignal:
    about = {"execution_id": execution_id, "name": name, "payload": payload, "at": 1003.0}
    return NewSignal(**{**about, **fields})  # type: ignore[arg-type]


async def _begun(stores: Stores) -> tuple[Owner, str]:
    execution_id = next(new_execution_ids(stores))
    return await begin(stores, execution_id), execution_id


async def test_signals_are_numbered_and_come_back_as_they_were(stores: Stores) -> None:
    _, execution_id = await _begun(stores)
    first = await stores.cold.signals.put(new_signal(execution_id, sender="key billing"))
    second = await stores.cold.signals.put(new_signal(execution_id, "refused", correlation="o-7"))
    assert (tuple(first), tuple(second)) == ((1, True), (2, True))

    signals = (await stores.cold.signals.of([execution_id, "nobody"]))[execution_id]
    assert [signal.number for signal in signals] == [1, 2]
    assert signals[0].payload == b'{"sum":7}'
    assert (signals[0].name, signals[0].sender, signals[0].at) == ("paid", "key billing", 1003.0)
    assert (signals[0].correlation, signals[1].correlation) == (None, "o-7")


async def test_signals_at_once_all_get_numbers_of_their_own(stores: Stores) -> None:
    _, execution_id = await _begun(stores)
    stored = await asyncio.gather(
        *(stores.cold.signals.put(new_signal(execution_id, f"s{number}")) for number in range(20))
    )
    assert sorted(signal.number for signal in stored) == list(range(1, 21))
    signals = (await stores.cold.signals.of([execution_id]))[execution_id]
    assert {signal.name for signal in signals} == {f"s{number}" for number in range(20)}


async def test_texts_of_any_kind_come_back(stores: Stores) -> None:
    _, execution_id = await _begun(stores)
    for text in ODD_TEXTS:
        await stores.cold.signals.put(new_signal(execution_id, text, correlation=text))
    signals = (await stores.cold.signals.of([execution_id]))[execution_id]
    assert tuple(signal.name for signal in signals) == ODD_TEXTS
    assert tuple(signal.correlation for signal in signals) == ODD_TEXTS


async def test_a_signal_for_nobody_is_refused(stores: Stores) -> None:
    with pytest.raises(NotFound):
        await stores.cold.signals.put(new_signal("nobody"))


async def test_a_signal_for_an_execution_that_has_ended_or_waits_is_refused(
    stores: Stores,
) -> None:
    owner, execution_id = await _begun(stores)
    await owner.commit(ended(execution_id))
    with pytest.raises(Conflict, match="COMPLETED"):
        await stores.cold.signals.put(new_signal(execution_id))

    *_, waiting = zip(range(2), new_execution_ids(stores), strict=False)
    await stores.cold.executions.record_intents([new_intent(waiting[1], waits=True)])
    with pytest.raises(Conflict, match="trigger"):
        await stores.cold.signals.put(new_signal(waiting[1]))
    assert await stores.cold.signals.of([execution_id, waiting[1]]) == {}


async def test_the_same_request_again_is_the_same_signal_for_a_day(stores: Stores) -> None:
    _, execution_id = await _begun(stores)
    signal = new_signal(execution_id, idempotency_key="k")
    assert tuple(await stores.cold.signals.put(signal)) == (1, True)
    assert tuple(await stores.cold.signals.put(signal)) == (1, False)
    other = new_signal(execution_id, "other", idempotency_key="k")
    with pytest.raises(KeyReused):
        await stores.cold.signals.put(other)

    later = new_signal(execution_id, idempotency_key="k", at=1004.0 + KEY_SECONDS)
    assert tuple(await stores.cold.signals.put(later)) == (2, True)


async def test_an_execution_has_only_so_many_signals_that_nobody_took(stores: Stores) -> None:
    _, execution_id = await _begun(stores)
    signals = [new_signal(execution_id) for _ in range(KEPT_MAX)]
    await asyncio.gather(*map(stores.cold.signals.put, signals[:50]))
    for signal in signals[50:]:
        await stores.cold.signals.put(signal)
    with pytest.raises(Overloaded):
        await stores.cold.signals.put(new_signal(execution_id))
    stored = await stores.cold.signals.put(new_signal(execution_id), taken=1)
    assert stored.number == KEPT_MAX + 1


async def test_a_signal_is_undelivered_until_a_copy_of_its_execution_has_it(
    stores: Stores,
) -> None:
    if not stores.topology.tasks_are_durable:
        return  # there the inbox is made again from everything that is stored
    owner, execution_id = await _begun(stores)
    for _ in range(2):
        await stores.cold.signals.put(new_signal(execution_id))
    partition = owner.lease.partition
    first, second = await stores.cold.signals.undelivered(partition)
    assert (first.number, second.number) == (1, 2)

    paused = running(new_intent(execution_id), ExecutionState.PAUSED)
    paused.signals = [first]
    await owner.commit(paused)
    assert [signal.number for signal in await stores.cold.signals.undelivered(partition)] == [2]


async def test_signals_are_forgotten_with_their_execution(stores: Stores) -> None:
    owner, execution_id = await _begun(stores)
    await stores.cold.signals.put(new_signal(execution_id))
    await owner.commit(ended(execution_id))
    assert len((await stores.cold.signals.of([execution_id]))[execution_id]) == 1
    await stores.forget(2000.0)
    assert await stores.cold.signals.of([execution_id]) == {}
