"""A hot store that has lost its data, or gone back in time, is built again from the cold one."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from penstock.engine.commands import Task
from penstock.engine.events import (
    CancelRequested,
    PauseRequested,
    ResumeRequested,
    TaskFailed,
    TaskStarted,
)
from penstock.engine.events import TaskError as Error
from penstock.engine.states import ExecutionState
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.recovery import recover
from penstock.orchestrator.tiering.portions import Portions
from penstock.stores.base import Intent, ReusedOutput
from penstock.stores.task_keys import key_of
from penstock.stores.tiering import REBUILD_JUMP
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import TieredDesk, diamond, node, quick
from tests.waiting import until


async def _owner(desk: TieredDesk, name: str = "owner-1") -> PartitionOwner:
    """Of a partition that is built."""
    owner = await desk.own(name)
    await desk.build(owner)
    return owner


async def _lose(desk: TieredDesk) -> PartitionOwner:
    """Everything, and a new owner builds it again and recovers."""
    desk.stores.lose_everything()
    owner = await _owner(desk, "owner-2")
    await recover(desk.stores, desk.plans, 0, owner.lease.position)
    await desk.drain(owner)
    return owner


def _keys(tasks: list[Task]) -> list[tuple[str, int, int]]:
    return sorted((task.node_id, task.generation, task.attempt) for task in tasks)


async def _say_it_runs(desk: TieredDesk, task: Task) -> None:
    await desk.stores.queue.started("worker-1", [TaskStarted(*key_of(task), "worker-1", desk.now)])


def test_a_new_store_is_marked_and_the_next_owner_finds_it_built() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        assert await desk.build(owner) == 0
        assert desk.stores.hot.marks == ["the store"]
        assert owner.lease.commit_number == REBUILD_JUMP
        assert await desk.build(await desk.own("owner-1")) is None

    asyncio.run(scenario())


def test_what_runs_goes_on_from_its_checkpoint_in_a_new_generation_and_costs_no_attempt() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start(diamond(), defaults={"retry": {"max_attempts": 1}})
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'{"x":1}')
        await desk.drain(owner)
        b, _c = await desk.fetch()
        await _say_it_runs(desk, b)
        await desk.drain(owner)
        await desk.checkpoint(owner)
        owner = await _lose(desk)
        assert await desk.states(name) == {"a": "COMPLETED", "b": "QUEUED", "c": "QUEUED"}
        tasks = await desk.fetch()
        generation = (await desk.stored(name)).record.generation
        assert generation > 1
        assert _keys(tasks) == [("b", generation, 1), ("c", generation, 1)]
        assert tasks[0].inputs == [("a", b'{"x":1}')]
        await desk.succeed(tasks)
        await desk.work(owner)
        assert await desk.state(name) == "COMPLETED"
        stored = await desk.stored(name)
        assert [line.seq for line in stored.history] == list(range(1, len(stored.history) + 1))

    asyncio.run(scenario())


def test_what_a_worker_of_the_lost_generation_reports_changes_nothing() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a")])
        await desk.drain(owner)
        old = await desk.fetch()
        await desk.checkpoint(owner)
        owner = await _lose(desk)
        await desk.succeed(old)
        await desk.drain(owner)
        assert await desk.states(name) == {"a": "QUEUED"}
        assert _keys(await desk.fetch()) == [("a", 3, 1)]

    asyncio.run(scenario())


def test_what_was_never_checkpointed_begins_again_in_the_new_generation() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a")])
        await desk.drain(owner)
        assert _keys(await desk.fetch()) == [("a", 1, 1)]
        owner = await _lose(desk)
        tasks = await desk.fetch()
        assert _keys(tasks) == [("a", 3, 1)], "or two workers would have the same task"
        await desk.succeed(tasks)
        await desk.drain(owner)
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_what_has_ended_and_was_archived_does_not_come_back() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a")])
        await desk.work(owner)
        await desk.archiver(owner).drain()
        owner = await _lose(desk)
        assert not desk.stores.hot.changes
        assert await desk.fetch() == []
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_what_ends_while_it_is_looked_for_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a")])
        intents = desk.stores.cold.executions.intents

        async def ended_since(names: Collection[str]) -> Mapping[str, Intent]:
            stored = await intents(names)
            stored[name].record.state = ExecutionState.CANCELLED
            return stored

        monkeypatch.setattr(desk.stores.cold.executions, "intents", ended_since)
        owner = await _lose(desk)
        assert not desk.stores.hot.changes
        assert not owner._cache
        assert await desk.fetch() == []

    asyncio.run(scenario())


def test_a_retry_is_due_when_it_was() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        await desk.start([node("a", retry={"initial_delay_seconds": 20, "jitter_seconds": 0})])
        await desk.drain(owner)
        (task,) = await desk.fetch()
        await desk.report(TaskFailed(*key_of(task), "worker-1", desk.now, Error("handler", "no")))
        await desk.drain(owner)
        await desk.checkpoint(owner)
        owner = await _lose(desk)
        assert await desk.stores.hot.next_due(0) == 1020.0
        assert await desk.fetch() == []
        desk.now = 1020.0
        await desk.drain(owner)
        assert _keys(await desk.fetch()) == [("a", 3, 2)]

    asyncio.run(scenario())


def test_a_paused_execution_is_paused_still_and_goes_on_with_the_resume() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a")])
        await desk.stores.hot.append([PauseRequested(name)])
        await desk.drain(owner)
        await desk.checkpoint(owner)
        owner = await _lose(desk)
        assert await desk.state(name) == "PAUSED"
        assert desk.stores.queue.depth() == 0
        await desk.stores.hot.append([ResumeRequested(name)])
        assert _keys(await desk.work(owner)) == [("a", 3, 1)]
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_a_control_request_that_is_newer_than_the_checkpoint_is_asked_for_again() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a")])
        await desk.drain(owner)
        await desk.checkpoint(owner)
        await desk.stores.cold.executions.request_control(name, "cancel")
        await desk.stores.hot.append([CancelRequested(name)])
        await desk.drain(owner)
        await _lose(desk)
        assert await desk.state(name) == "CANCELLED"

    asyncio.run(scenario())


def test_nothing_is_handed_out_of_what_somebody_has_stopped_since() -> None:
    """Also of what was never checkpointed, before the reconciler looks for control requests."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        copied = [await desk.start([node("a")]) for _ in range(2)]
        await desk.drain(owner)
        await desk.checkpoint(owner)
        fresh = [await desk.start([node("a")]) for _ in range(2)]
        for paused, cancelled in (copied, fresh):
            await desk.stores.cold.executions.request_control(paused, "pause")
            await desk.stores.cold.executions.request_control(cancelled, "cancel")
        desk.stores.lose_everything()
        desk.changes.clear()
        owner = await _owner(desk, "owner-2")
        await desk.drain(owner)
        assert not [
            commands
            for changes in desk.changes
            for commands in changes
            if commands.tasks and not commands.paused
        ]
        assert [await desk.state(name) for name in copied + fresh] == ["PAUSED", "CANCELLED"] * 2

    asyncio.run(scenario())


def test_nodes_that_a_retry_reuses_are_reused_again() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        await _owner(desk)
        plan = await desk.workflow([node("a"), node("b", "a")])
        name = await desk.record_intent(plan)
        intent = await desk.stores.cold.executions.intent(name)
        assert intent is not None
        desk.stores.cold.executions._write(Intent(intent.record, reused=[ReusedOutput("a", b"{}")]))
        owner = await _lose(desk)
        assert [task.node_id for task in await desk.work(owner)] == ["b"]

    asyncio.run(scenario())


def test_a_store_that_has_gone_back_in_time_is_built_again_also_if_only_its_owner_knows() -> None:
    async def scenario(*, cold_knows: bool) -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start(diamond())
        await desk.drain(owner)
        await desk.checkpoint(owner)
        image = desk.stores.hot.image()
        await desk.succeed(await desk.fetch())
        await desk.drain(owner)
        if cold_knows:
            await desk.checkpoint(owner)
        desk.stores.hot.become(image)
        later = await desk.own("owner-1")
        assert later.lease.commit_number < owner.lease.commit_number
        assert await desk.build(later, 0 if cold_knows else owner.lease.commit_number) == 1
        await desk.drain(later)
        expected = (
            {"a": "COMPLETED", "b": "QUEUED", "c": "QUEUED"} if cold_knows else {"a": "QUEUED"}
        )
        assert await desk.states(name) == expected

    asyncio.run(scenario(cold_knows=True))
    asyncio.run(scenario(cold_knows=False))


def test_a_hot_store_that_was_built_for_another_cold_store_is_not_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        await desk.start(diamond())
        await desk.drain(owner)
        monkeypatch.setattr(desk.stores.tiering.cold, "store_id", "another")
        assert await desk.build(await desk.own("owner-1")) is not None
        assert desk.stores.hot.marks == ["another"]

    asyncio.run(scenario())


def test_a_rebuild_that_was_broken_off_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has its mark and a commit number that nobody else doubts: but it is wiped."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start(diamond())
        await desk.drain(owner)
        await desk.checkpoint(owner)
        known_number = owner.lease.commit_number + 5
        with pytest.MonkeyPatch.context() as outage:
            outage.setattr(desk.stores.tiering.hot, "restore", _fails)
            with pytest.raises(StoreUnavailable):
                await desk.build(owner, known_number)
        assert not desk.stores.hot.changes
        later = await desk.own("owner-1")
        assert await desk.build(later) == 1
        await desk.drain(later)
        assert await desk.states(name) == {"a": "QUEUED"}

    asyncio.run(scenario())


async def _fails(*_: object) -> None:
    raise StoreUnavailable("no answer")


def test_an_owner_that_is_none_any_more_rebuilds_nothing() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        zombie = await desk.own("owner-1", seconds=1.0)
        desk.now += 5.0
        owner = await _owner(desk, "owner-2")
        name = await desk.start([node("a")])
        await desk.drain(owner)
        with pytest.raises(Fenced):
            await desk.build(zombie)
        assert await desk.states(name) == {"a": "QUEUED"}

    asyncio.run(scenario())


def test_many_come_back_in_portions() -> None:
    async def scenario() -> None:
        desk = TieredDesk(portions=Portions(rebuild_executions_max=3))
        owner = await _owner(desk)
        names = [await desk.start([node("a")]) for _ in range(10)]
        await desk.drain(owner)
        checkpointer = desk.checkpointer(owner)
        checkpointer.dirty.update(names[::2])
        await checkpointer.copy()
        owner = await _lose(desk)
        assert len(await desk.work(owner)) == 10
        assert {await desk.state(name) for name in names} == {"COMPLETED"}

    asyncio.run(scenario())


def test_an_execution_whose_checkpoint_cannot_be_read_begins_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        names = [await desk.start([node("a")]) for _ in range(2)]
        await desk.drain(owner)
        await desk.checkpoint(owner)
        desk.stores.rows.changes[names[0]] = [b"\xc1"]
        owner = await _lose(desk)
        await desk.work(owner)
        assert {await desk.state(name) for name in names} == {"COMPLETED"}

    with caplog.at_level(logging.CRITICAL, "penstock.orchestrator"):
        asyncio.run(scenario())


def test_an_orchestrator_builds_its_partition_again_by_itself() -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=quick(lease_seconds=0.1))
        metrics = Metrics()
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        name = await desk.start([node("a"), node("b", "a")])
        await until(desk.stores.queue.depth)
        old: Any = await desk.fetch()
        desk.stores.lose_everything()
        await until(desk.stores.queue.depth)
        await desk.succeed(old)
        await desk.succeed(await desk.fetch())
        await until(desk.stores.queue.depth)
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(name).record.state == "COMPLETED")
        assert metrics.rebuilt
        await orchestrator.stop()

    asyncio.run(scenario())


def test_an_owner_with_nothing_to_do_notices_that_its_store_has_gone_back_in_time() -> None:
    """Without a broken connection, and with its lease: only a commit can tell."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        image = desk.stores.hot.image()
        await desk.start([node("a")])
        await desk.work(owner)
        desk.stores.hot.become(image)
        assert await desk.stores.hot.renew(owner.lease, 60.0)
        desk.now += 60.0
        with pytest.raises(Fenced):
            await owner.step()

    asyncio.run(scenario())


def test_an_orchestrator_notices_that_its_store_has_gone_back_behind_what_it_has_seen_itself() -> (
    None
):
    async def scenario() -> None:
        desk = TieredDesk(timing=quick(lease_seconds=0.2))
        metrics = Metrics()
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        await orchestrator.recovered.wait()
        await desk.start([node("a"), node("b", "a")])
        await until(desk.stores.queue.depth)
        image = desk.stores.hot.image()
        await desk.succeed(await desk.fetch())
        await until(desk.stores.queue.depth)
        known_number = desk.stores.hot._partitions[0].commit_number
        desk.stores.hot.become(image)
        assert (
            desk.stores.rows.numbers[0]
            < desk.stores.hot._partitions[0].commit_number
            < known_number
        )
        # and it has nothing to write, because it reads on from a position that isn't there yet
        desk.now += 60.0
        await until(lambda: metrics.rebuilt == 1)
        await until(desk.stores.queue.depth)
        assert _keys(await desk.fetch()) == [("a", 3, 1)]
        assert metrics.fenced
        await orchestrator.stop()

    asyncio.run(scenario())
