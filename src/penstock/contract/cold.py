"""Executions in the cold store: intents, control requests and finished executions."""

import pytest

from penstock.contract.facts import (
    Owner,
    begin,
    ended,
    new_execution_ids,
    new_intent,
    started,
    submitted,
)
from penstock.engine.events import Blob, TaskError
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, NotFound
from penstock.stores.base import Intent, ReusedOutput, Stores


async def test_a_created_execution_should_run_and_can_be_looked_at(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    intent = new_intent(
        execution_id,
        labels={"team": "é", "n": 1},
        idempotency_key="key",
        request_hash="hash",
        retry_of="before",
    )
    assert await cold.executions.record_intents([intent]) == [execution_id]
    assert await cold.executions.started(0) == [execution_id]

    stored = await cold.executions.execution(execution_id)
    assert stored is not None
    assert stored.record == intent.record
    assert (stored.runs, stored.outputs, stored.history, stored.last_seq) == ({}, {}, [], 0)
    for _ in range(2):
        assert await cold.executions.intent(execution_id) == intent


async def test_everything_in_an_intent_is_kept(stores: Stores) -> None:
    execution_ids = new_execution_ids(stores)
    record = submitted(
        next(execution_ids),
        overrides={"a": {"x": [1, None]}},
        priority=-3,
        labels={"é": 1},
        trace="00-1-2-01",
        reused=2,
        first_execution_id="first",
    ).record
    reused = [ReusedOutput("a", b"[1]"), ReusedOutput("b[3]", Blob("key", 999))]
    intents = [
        Intent(record, "key", "hash", "before", reused, waits=False, key_scope="k1"),
        Intent(submitted(next(execution_ids)).record, reused=reused),
        new_intent(next(execution_ids), request_hash="hash"),
        new_intent(next(execution_ids), key_scope="k1", waits=True),
    ]
    await stores.cold.executions.record_intents(intents)
    for intent in intents:
        for _ in range(2):
            assert await stores.cold.executions.intent(intent.record.execution_id) == intent


async def test_an_intent_is_the_readers_own_and_can_be_read_again(stores: Stores) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    recorded = next(execution_ids)
    triggered = next(execution_ids)
    labels = {"team": "a"}
    intent = new_intent(recorded, labels=dict(labels))
    await cold.executions.record_intents(
        [intent, new_intent(triggered, waits=True, labels=dict(labels))]
    )
    await cold.executions.trigger(triggered, None, {"a": {"x": 1}})
    intent.record.labels["team"] = "changed by whoever submitted it"

    for execution_id in (recorded, triggered):
        for _ in range(3):
            read = await cold.executions.intent(execution_id)
            assert read is not None
            assert read.record.state == ExecutionState.PENDING
            assert read.record.labels == labels
            read.record.state = ExecutionState.RUNNING
            read.record.labels["team"] = "changed by an earlier reader"

    assert sorted(await cold.executions.started(0)) == sorted([recorded, triggered])
    owner = await Owner.of(stores)
    await owner.commit(started(recorded))
    read = await cold.executions.intent(recorded)
    assert read is not None
    assert read.record.labels == labels


async def test_a_look_at_the_intent_of_one_that_has_begun_or_ended_changes_nothing(
    stores: Stores,
) -> None:
    execution_ids = new_execution_ids(stores)
    begun = next(execution_ids)
    finished = next(execution_ids)
    owner = await begin(stores, begun, finished)
    await owner.commit(ended(finished))
    for execution_id in (begun, finished):
        for _ in range(2):
            intent = await stores.cold.executions.intent(execution_id)
            assert intent is not None
            # A store whose ended executions leave the hot store gives the final state here.
            intent.record.state = ExecutionState.PENDING
            assert intent == new_intent(execution_id)

    in_hot_store = [begun]
    if stores.tiering is None:
        in_hot_store.append(finished)

    assert sorted(await stores.hot.load([begun, finished])) == sorted(in_hot_store)

    await owner.commit(ended(begun))
    assert await stores.cold.executions.started(0) == []


async def test_an_unknown_execution_is_none(stores: Stores) -> None:
    cold = stores.cold
    assert await cold.executions.execution("unknown") is None
    assert await cold.executions.intent("unknown") is None
    assert await cold.executions.started(0) == []


async def test_an_execution_that_ended_is_kept_and_no_longer_started(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    over = ended(execution_id, ExecutionState.FAILED)
    assert over.record is not None
    over.record.error = TaskError("handler", "boom")
    await owner.commit(over)
    assert await stores.cold.executions.started(0) == []

    stored = await stores.cold.executions.execution(execution_id)
    assert stored is not None
    assert stored.record == over.record
    assert [line.seq for line in stored.history] == [1, 99]


async def test_the_last_control_request_for_an_execution_is_kept_until_it_has_ended(
    stores: Stores,
) -> None:
    cold = stores.cold
    execution_ids = new_execution_ids(stores)
    controlled = next(execution_ids)
    other = next(execution_ids)
    await begin(stores, controlled)
    await begin(stores, other)
    await cold.executions.request_control(controlled, "pause")
    await cold.executions.request_control(controlled, "cancel")
    assert dict(await cold.executions.control_requests(0)) == {controlled: "cancel"}

    owner = await Owner.of(stores)
    await owner.commit(ended(controlled))
    assert dict(await cold.executions.control_requests(0)) == {}


async def test_a_cancel_that_was_asked_for_is_not_overwritten(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await begin(stores, execution_id)
    await cold.executions.request_control(execution_id, "cancel")
    for request in ("pause", "resume"):
        with pytest.raises(Conflict, match="being cancelled"):
            await cold.executions.request_control(execution_id, request)

    await cold.executions.request_control(execution_id, "cancel")
    assert dict(await cold.executions.control_requests(0)) == {execution_id: "cancel"}


async def test_what_is_paused_is_not_paused_again_nor_what_goes_on_resumed(stores: Stores) -> None:
    cold = stores.cold
    execution_id = next(new_execution_ids(stores))
    await begin(stores, execution_id)
    with pytest.raises(Conflict, match="isn't paused"):
        await cold.executions.request_control(execution_id, "resume")

    await cold.executions.request_control(execution_id, "pause")
    with pytest.raises(Conflict, match="is paused already"):
        await cold.executions.request_control(execution_id, "pause")

    await cold.executions.request_control(execution_id, "resume")
    with pytest.raises(Conflict, match="isn't paused"):
        await cold.executions.request_control(execution_id, "resume")


async def test_an_end_that_was_just_committed_cannot_be_controlled(stores: Stores) -> None:
    """Callers see the end at once, even if the cold store gets the archive later."""
    execution_ids = new_execution_ids(stores)
    for state in EXECUTION_ENDS:
        execution_id = next(execution_ids)
        owner = await begin(stores, execution_id)
        await stores.hot.commit(owner.commit_of(ended(execution_id, state)))
        stored = await stores.cold.executions.execution(execution_id)
        assert stored is not None
        assert stored.record.state is state
        for request in ("cancel", "pause", "resume"):
            with pytest.raises(Conflict, match=f"is {state}"):
                await stores.cold.executions.request_control(execution_id, request)


async def test_what_has_ended_or_never_was_cannot_be_controlled(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(ended(execution_id))
    with pytest.raises(Conflict, match="is COMPLETED"):
        await stores.cold.executions.request_control(execution_id, "cancel")
    with pytest.raises(NotFound, match="unknown"):
        await stores.cold.executions.request_control("unknown", "cancel")
