"""What a new owner finds, and what it does about it before it reads its inbox."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from penstock.contract.facts import (
    Owner,
    begin,
    ended,
    new_intent,
    queued,
    record,
    started,
    submitted,
    task,
)
from penstock.engine.children import start_of
from penstock.engine.commands import Commands, More, NodeRun, Parent, Transition
from penstock.engine.events import (
    AnyEvent,
    CancelRequested,
    ChildEnded,
    Continued,
    ExecutionStarted,
    ResumeRequested,
    TaskLost,
    TaskReturned,
)
from penstock.engine.states import ExecutionState, NodeState
from penstock.orchestrator.children import ends_of
from penstock.orchestrator.recovery import CHUNK, recover, sweep
from penstock.stores.base import Stores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.sqlite import SqliteStores
from penstock.stores.task_keys import key_of
from tests.orchestrator.desk import Desk, TieredDesk, diamond, node


def _after_a_restart(
    folder: Path, before: Callable[[SqliteStores], Awaitable[None]]
) -> tuple[list[AnyEvent], set[str]]:
    """The events that a recovery appends to the inbox of a file, and what stays noted.

    The file was left as `before` says.
    """

    async def scenario() -> tuple[list[AnyEvent], set[str]]:
        stores = SqliteStores(folder / "store.db")
        await before(stores)
        await stores.close()
        stores = SqliteStores(folder / "store.db")
        await recover(stores, PlanCache(stores.cold, dict), 0)
        events = await _inbox(stores)
        await stores.close()
        stores = SqliteStores(folder / "store.db")
        noted = {key[1] for key in stores.queue.orphans()}
        await stores.close()
        return events, noted

    return asyncio.run(scenario())


async def _inbox(stores: Stores) -> list[AnyEvent]:
    return [event for _, event in await stores.hot.receive(0, 0, 100_000, 0.0)]


def test_an_execution_that_was_accepted_and_never_started_is_started(tmp_path: Path) -> None:
    async def record_two(stores: SqliteStores) -> None:
        await stores.cold.executions.record_intents([new_intent("e1"), new_intent("e2")])

    events, _ = _after_a_restart(tmp_path, record_two)
    assert events == [ExecutionStarted("e1"), ExecutionStarted("e2")]


def test_a_queued_node_is_handed_out_again_and_one_in_a_workers_hands_has_lost_its_attempt(
    tmp_path: Path,
) -> None:
    async def leave_in_the_middle(stores: SqliteStores) -> None:
        owner = await begin(stores, "e1")
        await owner.commit(
            queued(task("e1", "fetched", attempt=2), task("e1", "waiting", attempt=3))
        )
        for fetched in await stores.queue.fetch("worker-1", {"echo"}, 1):
            stores.queue.begin(key_of(fetched))

    events, noted = _after_a_restart(tmp_path, leave_in_the_middle)
    lost, returned, last = events
    assert isinstance(lost, TaskLost)
    assert key_of(lost) == ("e1", "fetched", 1, 2)
    assert isinstance(returned, TaskReturned)
    assert key_of(returned) == ("e1", "waiting", 1, 3)
    assert last == Continued("e1")
    assert noted == {"fetched"}, "noted until its loss is committed"


def test_a_node_that_said_it_was_running_has_lost_its_attempt(tmp_path: Path) -> None:
    async def leave_in_the_middle(stores: SqliteStores) -> None:
        owner = await begin(stores, "e1")
        run = NodeRun("a", NodeState.RUNNING, 4, 1.0, 2.0, worker_id="worker-7")
        await owner.commit(
            Commands(
                "e1", nodes={"a": run}, history=[Transition(2, 2.0, "a", "QUEUED", "RUNNING", 4)]
            )
        )

    events, _ = _after_a_restart(tmp_path, leave_in_the_middle)
    assert events == [TaskLost("e1", "a", 1, 4, "worker-7"), Continued("e1")]


def test_what_has_ended_is_left_alone_and_its_notes_are_forgotten(tmp_path: Path) -> None:
    async def leave_in_the_middle(stores: SqliteStores) -> None:
        owner = await begin(stores, "over", "active")
        await owner.commit(queued(task("over", "a")), queued(task("active", "b")))
        for fetched in await stores.queue.fetch("worker-1", {"echo"}, 10):
            stores.queue.begin(key_of(fetched))
        done = NodeRun("b", NodeState.COMPLETED, 1)
        line = Transition(3, 2.0, "b", "QUEUED", "COMPLETED", 1)
        await owner.commit(ended("over"), Commands("active", nodes={"b": done}, history=[line]))

    events, noted = _after_a_restart(tmp_path, leave_in_the_middle)
    assert events == [Continued("active")]
    assert noted == set()


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED"])
def test_a_parent_is_told_of_a_child_that_ended_before_it_heard(state: str, tmp_path: Path) -> None:
    config = b'{"workflow":"report","version":1,"input":{}}'

    async def leave_before_the_parent_heard(stores: SqliteStores) -> None:
        document = {"name": "report", "nodes": [{"id": "a", "handler": "echo"}]}
        await stores.cold.definitions.put_workflow("report", "1", json.dumps(document).encode(), 1)
        owner = await begin(stores, "e1")
        for child in ("over", "active"):
            more = More(child=child, config=config, kind="workflow")
            run = NodeRun(child, NodeState.WAITING, 2, started_at=1002.0, more=more)
            line = Transition(2, 2.0, child, "PENDING", "WAITING", 2)
            start = start_of(record("e1"), run)
            assert start is not None
            commands = Commands("e1", nodes={child: run}, history=[line], sends=[start])
            await owner.commit(commands)
            await owner.commit(started(child, record=start.record))
        (over,) = (await stores.cold.executions.intents(["over"])).values()
        end = structs.replace(over.record, state=ExecutionState(state), finished_at=3.0)
        await owner.commit(ended("over", record=end, outputs={"a": b"7"}))

    events, _ = _after_a_restart(tmp_path, leave_before_the_parent_heard)
    (told,) = [event for event in events if isinstance(event, ChildEnded)]
    output = b'{"a":7}' if state == "COMPLETED" else None
    assert told == ChildEnded("e1", "over", 2, "over", state, output)


def test_nothing_is_told_of_a_child_that_goes_on_and_one_that_is_nowhere_is_named(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        stores = SqliteStores(tmp_path / "store.db")
        parent = Parent("e1", "bill", 1, "e1", 1)
        await stores.cold.executions.record_intents([submitted("active", parent=parent)])
        plans = PlanCache(stores.cold, dict)
        assert await ends_of(stores, plans, ["active", "nobody"]) == ([], {"nobody"})
        await stores.close()

    asyncio.run(scenario())


def test_all_of_many_executions_are_looked_at(tmp_path: Path) -> None:
    names = [f"e{number}" for number in range(2 * CHUNK + 1)]

    async def leave_in_the_middle(stores: SqliteStores) -> None:
        owner = await begin(stores, *names[:-1])
        await owner.commit(*(queued(task(name)) for name in names[:-1]))
        await stores.cold.executions.record_intents([new_intent(names[-1])])

    events, _ = _after_a_restart(tmp_path, leave_in_the_middle)
    assert sum(isinstance(event, TaskReturned) for event in events) == 2 * CHUNK
    assert events[-1] == ExecutionStarted(names[-1])


def test_where_the_store_keeps_its_tasks_only_starts_are_made_up_for() -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.start(diamond())
        await desk.drain(await desk.own())
        missing = await desk.record_intent(await desk.workflow([node("a")], name="other"))
        assert await recover(desk.stores, desk.plans, 0) == 2
        assert await _inbox(desk.stores) == [ExecutionStarted(missing)]

    asyncio.run(scenario())


def test_recovering_twice_does_no_harm(tmp_path: Path) -> None:
    """Owners may come and go in one process: what the queue or a worker has stays there."""

    async def scenario() -> None:
        stores = SqliteStores(tmp_path / "store.db")
        owner = await begin(stores, "e1")
        await owner.commit(queued(task("e1", "held"), task("e1", "waiting")))
        for fetched in await stores.queue.fetch("worker-1", {"echo"}, 1):
            stores.queue.begin(key_of(fetched))
        for _ in range(2):
            await recover(stores, PlanCache(stores.cold, dict), 0)
        lost = [event for event in await _inbox(stores) if isinstance(event, TaskLost)]
        assert lost == [], "its worker lives, and runs it"
        await stores.close()

    asyncio.run(scenario())


def test_a_worker_that_lives_on_through_a_change_of_owner_keeps_its_running_task(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        stores = SqliteStores(tmp_path / "store.db")
        owner = await begin(stores, "e1")
        await owner.commit(queued(task("e1", "a")))
        for fetched in await stores.queue.fetch("worker-1", {"echo"}, 1):
            stores.queue.begin(key_of(fetched))
        run = NodeRun("a", NodeState.RUNNING, 1, 1.0, 2.0, worker_id="worker-1")
        await owner.commit(
            Commands(
                "e1", nodes={"a": run}, history=[Transition(3, 2.0, "a", "QUEUED", "RUNNING", 1)]
            )
        )
        await Owner.of(stores)
        await recover(stores, PlanCache(stores.cold, dict), 0)
        assert not any(isinstance(event, TaskLost) for event in await _inbox(stores))
        await stores.close()

    asyncio.run(scenario())


def test_a_task_that_waits_through_a_change_of_owner_is_not_handed_out_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        stores = SqliteStores(tmp_path / "store.db")
        owner = await begin(stores, "e1")
        await owner.commit(queued(task("e1", "a")))
        await Owner.of(stores)
        await recover(stores, PlanCache(stores.cold, dict), 0)
        assert await _inbox(stores) == [Continued("e1")]
        await stores.close()

    asyncio.run(scenario())


def test_a_control_request_that_was_stored_and_perhaps_never_handled_is_asked_for_again(
    tmp_path: Path,
) -> None:
    async def ask_and_die(stores: SqliteStores) -> None:
        await begin(stores, "e1")
        await stores.cold.executions.request_control("e1", "cancel")

    events, _ = _after_a_restart(tmp_path, ask_and_die)
    assert events == [Continued("e1"), CancelRequested("e1")]


def test_a_start_that_waits_in_the_inbox_is_not_lost_however_long_it_waits() -> None:
    async def scenario() -> None:
        desk = Desk()
        names = [await desk.start([node("a")]) for _ in range(20)]
        missing = await desk.record_intent(await desk.workflow([node("a")]))
        desk.now += 60.0
        assert await sweep(desk.stores, 0, 10.0) == 1
        starts = [event.execution_id for event in await _inbox(desk.stores)]
        assert starts == [*names, missing]

    asyncio.run(scenario())


def test_only_what_is_behind_the_position_still_waits() -> None:
    """Events before it are handled; a store that hasn't trimmed them yet makes no difference."""

    async def scenario() -> None:
        desk = Desk()
        name = await desk.start([node("a")])
        position = (await desk.stores.hot.receive(0, 0, 1, 0.0))[0][0]
        desk.now += 60.0
        assert await sweep(desk.stores, 0, 10.0, position) == 1
        assert await _inbox(desk.stores) == [ExecutionStarted(name)] * 2

    asyncio.run(scenario())


def test_an_execution_that_ends_and_leaves_the_hot_store_while_it_is_looked_for_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.start([node("a")])
        real_known = desk.stores.hot.known
        started = desk.stores.cold.executions.started

        async def later(partition: int) -> list[str]:
            names = await started(partition)
            await desk.work(owner)
            await desk.archiver(owner).drain()
            return names

        monkeypatch.setattr(desk.stores.cold.executions, "started", later)
        desk.now += 60.0
        assert await sweep(desk.stores, 0, 10.0) == 0
        assert not await real_known(["execution-1"])
        assert await _inbox(desk.stores) == []

    asyncio.run(scenario())


def test_one_that_begins_between_two_looks_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        await desk.start([node("a")])
        receive = desk.stores.hot.receive

        async def later(*arguments: Any) -> Any:
            monkeypatch.undo()
            await desk.drain(owner)
            return await receive(*arguments)

        monkeypatch.setattr(desk.stores.hot, "receive", later)
        desk.now += 60.0
        assert await sweep(desk.stores, 0, 10.0) == 0

    asyncio.run(scenario())


def test_where_the_store_keeps_its_tasks_nothing_is_loaded_to_recover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = Desk()
        await desk.start(diamond())
        await desk.drain(await desk.own())
        monkeypatch.setattr(desk.stores.hot, "load", None)
        assert await recover(desk.stores, desk.plans, 0) == 1

    asyncio.run(scenario())


def test_where_the_store_keeps_its_tasks_control_requests_are_asked_for_again_too() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start(diamond())
        await desk.drain(await desk.own())
        await desk.stores.cold.executions.request_control(name, "cancel")
        await recover(desk.stores, desk.plans, 0)
        assert await _inbox(desk.stores) == [CancelRequested(name)]

    asyncio.run(scenario())


def test_a_control_request_that_was_fulfilled_is_not_asked_for_again() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(diamond())
        await desk.stores.cold.executions.request_control(name, "pause")
        assert await sweep(desk.stores, 0, 10.0) == 0
        await desk.drain(owner)
        await desk.archiver(owner).drain()
        await sweep(desk.stores, 0, 10.0)
        assert await _inbox(desk.stores) == []
        await desk.stores.cold.executions.request_control(name, "resume")
        await sweep(desk.stores, 0, 10.0)
        assert await _inbox(desk.stores) == [ResumeRequested(name)]

    asyncio.run(scenario())


def test_a_control_request_is_not_followed_by_an_older_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stored, and its own event appended, while the hot store is asked what it knows."""

    async def scenario() -> None:
        desk = Desk()
        name = await desk.start(diamond())
        await desk.drain(await desk.own())
        await desk.stores.cold.executions.request_control(name, "pause")
        real_known = desk.stores.hot.known

        async def meanwhile(names: Collection[str]) -> set[str]:
            monkeypatch.undo()
            await desk.stores.cold.executions.request_control(name, "resume")
            await desk.stores.hot.append([ResumeRequested(name)])
            return await real_known(names)

        monkeypatch.setattr(desk.stores.hot, "known", meanwhile)
        await sweep(desk.stores, 0, 10.0)
        assert await _inbox(desk.stores) == [ResumeRequested(name)] * 2

    asyncio.run(scenario())


def test_what_the_cold_store_has_a_copy_of_is_not_looked_for_in_the_hot_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.start(diamond())
        await desk.drain(owner)
        await desk.checkpoint(owner)
        monkeypatch.setattr(desk.stores.hot, "known", None)
        assert await sweep(desk.stores, 0, 10.0) == 0

    asyncio.run(scenario())
