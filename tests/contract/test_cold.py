"""The cold store: definitions, intents, what has ended."""

import asyncio

import pytest

from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict, NotFound, StoreError
from penstock.stores.base import Stores, WorkflowVersion
from tests.contract.facts import Owner, begin, ended, execution_ids, letter, new, started
from tests.contract.suite import on_every_store


@on_every_store
async def test_the_same_content_is_the_same_version_and_changed_content_the_next(stores: Stores) -> None:
    first = await stores.cold.put_workflow("report", "hash-1", b"one", 1.0)
    second = await stores.cold.put_workflow("report", "hash-2", b"two", 2.0)
    assert first == WorkflowVersion("report", 1, "hash-1", b"one", 1.0)
    assert second == WorkflowVersion("report", 2, "hash-2", b"two", 2.0)
    assert await stores.cold.put_workflow("report", "hash-2", b"two", 3.0) == second
    assert await stores.cold.put_workflow("report", "hash-1", b"one", 4.0) == first
    assert (await stores.cold.put_workflow("other", "hash-1", b"one", 5.0)).version == 1


@on_every_store
async def test_a_version_is_found_by_number_and_the_latest_without(stores: Stores) -> None:
    versions = [await stores.cold.put_workflow("report", f"hash-{n}", f"text {n}".encode(), n) for n in (1.0, 2.0, 3.0)]
    for version in versions:
        assert await stores.cold.get_workflow("report", version.version) == version
    assert await stores.cold.get_workflow("report") == versions[-1]
    for name, number in (("report", 4), ("report", 0), ("report", -1), ("unknown", None), ("unknown", 1)):
        assert await stores.cold.get_workflow(name, number) is None


@on_every_store
async def test_the_same_content_from_many_at_once_is_one_version(stores: Stores) -> None:
    puts = (stores.cold.put_workflow("report", f"hash-{n % 2}", b"text", 1.0) for n in range(20))
    versions = await asyncio.gather(*puts)
    assert {(each.content_hash, each.version) for each in versions} in (
        {("hash-0", 1), ("hash-1", 2)},
        {("hash-1", 1), ("hash-0", 2)},
    )


@on_every_store
async def test_a_created_execution_should_run_and_can_be_looked_at(stores: Stores) -> None:
    name = next(execution_ids(stores))
    intent = new(name, labels={"team": "é", "n": 1}, idempotency_key="key", request_hash="hash", retry_of="before")
    assert await stores.cold.create([intent]) == [name]
    assert await stores.cold.started(0) == [name]
    stored = await stores.cold.execution(name)
    assert stored is not None
    assert stored.record == intent.record
    assert (stored.runs, stored.outputs, stored.history, stored.last_seq) == ({}, {}, [], 0)
    for _ in range(2):
        assert await stores.cold.intent(name) == intent


@on_every_store
async def test_an_unknown_execution_is_none(stores: Stores) -> None:
    assert await stores.cold.execution("unknown") is None
    assert await stores.cold.intent("unknown") is None
    assert await stores.cold.started(0) == []


@on_every_store
async def test_the_same_idempotency_key_gives_the_same_execution(stores: Stores) -> None:
    names = execution_ids(stores)
    a, b, c, d = (next(names) for _ in range(4))
    batch = [new(a, idempotency_key="k", request_hash="h"), new(b), new(c, idempotency_key="k", request_hash="h")]
    assert await stores.cold.create(batch) == [a, b, a]
    assert await stores.cold.create([new(d, idempotency_key="k", request_hash="h")]) == [a]
    assert sorted(await stores.cold.started(0)) == sorted([a, b])
    assert await stores.cold.execution(d) is None


@on_every_store
async def test_the_same_key_from_many_at_once_gives_one_execution(stores: Stores) -> None:
    names = [name for name, _ in zip(execution_ids(stores), range(20), strict=False)]
    creates = (stores.cold.create([new(name, idempotency_key="k", request_hash="h")]) for name in names)
    answers = await asyncio.gather(*creates)
    assert len({answer for (answer,) in answers}) == 1
    assert len(await stores.cold.started(0)) == 1


@on_every_store
async def test_the_same_key_for_another_request_is_refused_and_stores_nothing(stores: Stores) -> None:
    names = execution_ids(stores)
    a, b, c = (next(names) for _ in range(3))
    await stores.cold.create([new(a, idempotency_key="k", request_hash="h")])
    with pytest.raises(Conflict, match="'k'"):
        await stores.cold.create([new(b), new(c, idempotency_key="k", request_hash="another")])
    assert await stores.cold.started(0) == [a]
    assert await stores.cold.execution(b) is None


@on_every_store
async def test_a_key_of_any_text_is_a_key_or_refused_and_the_store_goes_on(stores: Stores) -> None:
    names = execution_ids(stores)
    for key in ("", " ", "é", "🦀", "x" * 10_000, "a\x00b", "'; DROP TABLE executions; --", "half \ud800"):
        name = next(names)
        try:
            async with asyncio.timeout(5):
                made = await stores.cold.create([new(name, idempotency_key=key, request_hash="h")])
        except (Conflict, StoreError, UnicodeEncodeError):
            continue
        assert made == [name], key
    assert await stores.cold.create([new(last := next(names))]) == [last]


@on_every_store
async def test_an_execution_that_ended_is_kept_and_no_longer_started(stores: Stores) -> None:
    name = next(execution_ids(stores))
    owner = await begin(stores, name)
    over = ended(name, ExecutionState.FAILED)
    assert over.record is not None
    over.record.error = TaskError("handler", "boom")
    await owner.commit(over)
    assert await stores.cold.started(0) == []
    stored = await stores.cold.execution(name)
    assert stored is not None
    assert stored.record == over.record
    assert [line.seq for line in stored.history] == [1, 99]


@on_every_store
async def test_executions_are_listed_newest_first_and_by_state(stores: Stores) -> None:
    names = [name for name, _ in zip(execution_ids(stores), range(5), strict=False)]
    await stores.cold.create([new(name) for name in names])
    owner = await Owner.of(stores)
    await owner.commit(started(names[1]), started(names[2]), started(names[3]), started(names[4]))
    await owner.commit(ended(names[2]), ended(names[3], ExecutionState.FAILED), ended(names[4]))
    listed = [each.execution_id for each in await stores.cold.executions()]
    assert listed == names[::-1]
    assert [each.execution_id for each in await stores.cold.executions(limit=2)] == names[:2:-1]
    expected = {
        ExecutionState.PENDING: [names[0]],
        ExecutionState.RUNNING: [names[1]],
        ExecutionState.COMPLETED: [names[4], names[2]],
        ExecutionState.FAILED: [names[3]],
        ExecutionState.CANCELLED: [],
    }
    for state, wanted in expected.items():
        found = await stores.cold.executions(state)
        assert [each.execution_id for each in found] == wanted, state
        assert {each.state for each in found} <= {state}


@on_every_store
async def test_dead_letters_are_listed_newest_first(stores: Stores) -> None:
    name = next(execution_ids(stores))
    owner = await begin(stores, name)
    for node in "abc":
        await owner.commit(ended(name, dead_letters=[letter(name, node)], finished=False))
    assert [each.node for each in await stores.cold.dead_letters()] == ["c", "b", "a"]
    assert [each.node for each in await stores.cold.dead_letters(limit=1)] == ["c"]
    assert (await stores.cold.dead_letters())[-1] == letter(name, "a")


@on_every_store
async def test_handlers_are_remembered(stores: Stores) -> None:
    assert await stores.cold.known_handlers() == set()
    await stores.cold.remember_handlers({"a", "b"})
    await stores.cold.remember_handlers(["b", "c"])
    await stores.cold.remember_handlers([])
    assert await stores.cold.known_handlers() == {"a", "b", "c"}


@on_every_store
async def test_the_last_wish_for_an_execution_is_kept_until_it_has_ended(stores: Stores) -> None:
    names = execution_ids(stores)
    steered, other = next(names), next(names)
    owner = await begin(stores, steered)
    await begin(stores, other)
    await stores.cold.steer(steered, "pause")
    await stores.cold.steer(steered, "cancel")
    assert dict(await stores.cold.wishes(0)) == {steered: "cancel"}
    owner = await Owner.of(stores)
    await owner.commit(ended(steered))
    assert dict(await stores.cold.wishes(0)) == {}


@on_every_store
async def test_what_has_ended_or_never_was_cannot_be_steered(stores: Stores) -> None:
    name = next(execution_ids(stores))
    owner = await begin(stores, name)
    await owner.commit(ended(name))
    with pytest.raises(Conflict, match="is COMPLETED"):
        await stores.cold.steer(name, "cancel")
    with pytest.raises(NotFound, match="unknown"):
        await stores.cold.steer("unknown", "cancel")
