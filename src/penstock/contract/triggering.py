"""Executions that wait for their trigger: they are stored, and not run before it."""

import asyncio
from itertools import islice
from typing import Any

import pytest

from penstock.contract.facts import Owner, begin, ended, new_execution_ids, new_intent, started
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict, NotFound
from penstock.stores.base import ReusedOutput, Stores
from penstock.stores.records import Search


async def test_one_that_waits_is_stored_and_not_started(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    waiting = next(execution_ids)
    other = next(execution_ids)
    intent = new_intent(waiting, waits=True)
    await cold.executions.record_intents([intent, new_intent(other)])
    assert await cold.executions.started(0) == [other]
    assert await cold.executions.intent(waiting) == intent
    assert await stores.hot.load([waiting]) == {}

    stored = await cold.executions.execution(waiting)
    assert stored is not None
    assert stored.record.state == ExecutionState.PENDING

    rows = await cold.executions.search(Search(states=("PENDING",)))
    assert [row.execution_id for row in rows] == [other, waiting]


async def test_a_trigger_starts_it_with_the_input_that_it_brings(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    intent = new_intent(
        execution_id,
        waits=True,
        retry_of="before",
        reused=[ReusedOutput("a", b"1")],
        idempotency_key="k",
        request_hash="h",
    )
    intent.record.overrides = {"a": {"x": 1}, "b": {"y": 1}}
    await cold.executions.record_intents([intent])
    await cold.executions.trigger(execution_id, b'{"lang":"fr"}', {"b": {"z": [2]}})
    assert await cold.executions.started(0) == [execution_id]

    intent.waits = False
    intent.record.input = b'{"lang":"fr"}'
    intent.record.overrides = {"a": {"x": 1}, "b": {"z": [2]}}
    for _ in range(2):
        assert await cold.executions.intent(execution_id) == intent

    stored = await cold.executions.execution(execution_id)
    assert stored is not None
    assert stored.record == intent.record

    owner = await Owner.of(stores)
    await owner.commit(started(execution_id))
    loaded = (await stores.hot.load([execution_id]))[execution_id]
    assert loaded.record.state == ExecutionState.RUNNING


async def test_a_trigger_without_an_input_keeps_the_one_that_there_is(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    intent = new_intent(execution_id, waits=True)
    await cold.executions.record_intents([intent])
    await cold.executions.trigger(execution_id, None, {})
    intent.waits = False
    assert await cold.executions.intent(execution_id) == intent


async def test_of_many_triggers_at_once_one_wins(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await cold.executions.record_intents([new_intent(execution_id, waits=True)])
    triggers = (
        cold.executions.trigger(execution_id, str(number).encode(), {}) for number in range(10)
    )
    answers = await asyncio.gather(*triggers, return_exceptions=True)
    (winner,) = [number for number, answer in enumerate(answers) if answer is None]
    assert all(isinstance(answer, Conflict) for answer in answers if answer is not None)

    intent = await cold.executions.intent(execution_id)
    assert intent is not None
    assert intent.record.input == str(winner).encode()


async def test_what_does_not_wait_cannot_be_triggered(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    unbegun, begun, finished = islice(execution_ids, 3)
    await cold.executions.record_intents([new_intent(unbegun)])
    owner = await begin(stores, begun, finished)
    await owner.commit(ended(finished))
    for execution_id in (unbegun, begun, finished):
        with pytest.raises(Conflict, match="can be triggered"):
            await cold.executions.trigger(execution_id, b"{}", {})
    for unknown in ("unknown", "", "half \ud800"):
        with pytest.raises(NotFound, match="there is no execution"):
            await cold.executions.trigger(unknown, b"{}", {})

    intent = await cold.executions.intent(unbegun)
    assert intent is not None
    assert intent.record.input == new_intent(unbegun).record.input


async def test_a_cancel_makes_it_begin_so_that_it_can_end(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await cold.executions.record_intents([new_intent(execution_id, waits=True)])
    await cold.executions.request_control(execution_id, "cancel")
    assert await cold.executions.started(0) == [execution_id]
    assert dict(await cold.executions.control_requests(0)) == {execution_id: "cancel"}

    intent = await cold.executions.intent(execution_id)
    assert intent is not None
    assert not intent.waits
    with pytest.raises(Conflict, match="can be triggered"):
        await cold.executions.trigger(execution_id, None, {})
    assert await stores.hot.load([execution_id]) == {}

    owner = await Owner.of(stores)
    await owner.commit(ended(execution_id, ExecutionState.CANCELLED))
    assert await cold.executions.started(0) == []


async def test_it_cannot_be_paused_or_resumed(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await cold.executions.record_intents([new_intent(execution_id, waits=True)])
    with pytest.raises(Conflict, match="hasn't been triggered"):
        await cold.executions.request_control(execution_id, "pause")
    with pytest.raises(Conflict, match="hasn't been triggered"):
        await cold.executions.request_control(execution_id, "resume")
    assert await cold.executions.started(0) == []

    await cold.executions.trigger(execution_id, None, {})
    assert dict(await cold.executions.control_requests(0)) == {}

    await cold.executions.request_control(execution_id, "pause")
    assert dict(await cold.executions.control_requests(0)) == {execution_id: "pause"}


async def test_a_known_key_gives_the_one_that_waits(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    first = next(execution_ids)
    second = next(execution_ids)
    fields: dict[str, Any] = {"idempotency_key": "k", "request_hash": "h"}
    await cold.executions.record_intents([new_intent(first, waits=True, **fields)])
    again = new_intent(second, waits=True, **fields)
    assert await cold.executions.record_intents([again]) == [first]

    await cold.executions.trigger(first, None, {})
    assert await cold.executions.started(0) == [first]
