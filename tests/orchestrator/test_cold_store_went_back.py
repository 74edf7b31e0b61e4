"""The cold store is put back to an older copy.

What runs goes on and is archived, and its only copy is never removed.
"""

import asyncio
import logging

import pytest

from penstock.engine.events import ExecutionStarted, PauseRequested, TaskFailed
from penstock.engine.events import TaskError as Error
from penstock.errors import NotFound
from penstock.orchestrator.owner import PartitionOwner
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import DeadLetterSearch
from penstock.stores.task_keys import key_of
from penstock.stores.tiering import ColdStoreWentBack, Outgoing
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import WORK, TieredDesk, diamond, node, quick
from tests.waiting import until


async def _owner(
    desk: TieredDesk, name: str = "owner-1", metrics: Metrics | None = None
) -> PartitionOwner:
    """Of a partition that is built."""
    owner = await desk.own(name)
    await desk.build(owner, metrics=metrics)
    return owner


def test_what_ends_without_a_row_is_archived_into_a_new_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await _owner(desk)
        older = desk.stores.cold_image()
        names = [await desk.start(diamond()) for _ in range(5)]
        await desk.work(owner)
        before = [await desk.stored(name) for name in names]
        desk.stores.put_cold_back(older)
        await desk.archiver(owner, metrics).drain()
        assert [desk.row(name) for name in names] == before
        assert not desk.stores.hot.changes
        assert metrics.rewritten == metrics.archived == 5

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert "had lost 5 executions" in caplog.text


def test_what_runs_without_a_row_has_one_after_the_next_checkpoint_and_can_be_cancelled() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await _owner(desk)
        older = desk.stores.cold_image()
        name = await desk.start(diamond())
        await desk.drain(owner)
        desk.stores.put_cold_back(older)
        with pytest.raises(NotFound):
            await desk.stores.cold.executions.request_control(name, "cancel")
        checkpoints = desk.checkpointer(owner, metrics)
        checkpoints.dirty.add(name)
        await checkpoints.copy()
        await desk.stores.cold.executions.request_control(name, "cancel")
        assert metrics.rewritten == 1

    asyncio.run(scenario())


def test_dead_letters_and_pauses_bring_the_whole_execution_if_it_has_no_row() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await _owner(desk)
        older = desk.stores.cold_image()
        name = await desk.start(
            [node("bad", retry={"max_attempts": 1}), node("slow")], on_failure="continue"
        )
        paused = await desk.start(diamond())
        await desk.stores.hot.append([PauseRequested(paused)])
        await desk.drain(owner)
        (bad,) = [task for task in await desk.fetch() if task.node_id == "bad"]
        await desk.report(TaskFailed(*key_of(bad), "worker-1", desk.now, Error("handler", "no")))
        await desk.drain(owner)
        desk.stores.put_cold_back(older)
        await desk.archiver(owner, metrics).drain()
        assert [
            row.dead_letter.node_id
            for row in await desk.stores.cold.dead_letters.dead_letters(DeadLetterSearch())
        ] == ["bad"]
        assert desk.row(name).runs["bad"].state == "FAILED"
        assert desk.row(paused).record.state == "PAUSED"
        assert metrics.rewritten == 2

    asyncio.run(scenario())


def test_an_end_of_which_the_hot_store_has_nothing_is_not_archived(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await _owner(desk)
        older = desk.stores.cold_image()
        name = await desk.start([node("a")])
        await desk.work(owner)
        desk.stores.put_cold_back(older)
        (entry,) = desk.stores.hot.boxes[0]
        desk.stores.hot.boxes[0] = [Outgoing("another", entry.summary), entry]
        await desk.archiver(owner, metrics).drain()
        assert desk.row(name).record.state == "COMPLETED"
        assert metrics.archived == 1

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert "another has no row" in caplog.text


def test_what_the_older_copy_has_as_running_and_the_hot_store_has_let_go_runs_again() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await _owner(desk)
        over, runs = [await desk.start(diamond()) for _ in range(2)]
        await desk.drain(owner)
        tasks = await desk.fetch()
        await desk.checkpoint(owner)
        older = desk.stores.cold_image()
        await desk.succeed([task for task in tasks if task.execution_id == over])
        await desk.drain(owner)
        while mine := await desk.fetch():
            await desk.succeed(mine)
            await desk.drain(owner)
        await desk.archiver(owner).drain()
        assert desk.row(over).record.state == "COMPLETED"
        desk.stores.put_cold_back(older)
        with pytest.raises(ColdStoreWentBack):
            await desk.cold_writer(owner).check()
        again = await _owner(desk, "owner-1", metrics)
        assert metrics.cold_store_went_back == 1
        await desk.drain(again)
        (task,) = await desk.fetch()
        assert (task.execution_id, task.node_id, task.attempt) == (over, "a", 1)
        assert task.generation > 2
        assert await desk.states(runs) == {"a": "QUEUED"}, "what runs isn't touched"
        await desk.succeed([task, *(other for other in tasks if other.execution_id == runs)])
        await desk.work(again)
        await desk.archiver(again).drain()
        assert {str(desk.row(name).record.state) for name in (over, runs)} == {"COMPLETED"}
        await _owner(desk, "owner-1", metrics)
        assert metrics.cold_store_went_back == 1, "it is dealt with once"

    asyncio.run(scenario())


def test_an_orchestrator_with_nothing_to_copy_notices_it_by_itself() -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=quick(checkpoint_seconds=0.05))
        metrics = Metrics()
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        name = await desk.start([node("a")])
        await until(lambda: name in desk.stores.rows.changes, "it is copied")
        older = desk.stores.cold_image()
        await until(desk.stores.queue.depth)
        await desk.succeed(await desk.fetch())
        await until(lambda: metrics.archived == 1)
        assert not desk.stores.hot.changes
        desk.stores.put_cold_back(older)
        await until(lambda: metrics.cold_store_went_back == 1)
        await until(desk.stores.queue.depth)
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(name).record.state == "COMPLETED")
        await orchestrator.stop()

    asyncio.run(scenario())


def test_an_execution_whose_version_is_lost_waits_and_does_not_fail(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        name = await desk.start([node("a"), node("b", "a")])
        await desk.drain(owner)
        (task,) = await desk.fetch()
        lost = desk.stores.cold.definitions._workflows
        desk.stores.cold.definitions._workflows = {}
        desk.plans = PlanCache(desk.stores.cold, lambda: WORK)
        later = await _owner(desk, "owner-1")
        await desk.succeed([task])
        await desk.drain(later)
        assert await desk.state(name) == "RUNNING"
        desk.stores.cold.definitions._workflows = lost
        desk.now += 61
        assert [task.node_id for task in await desk.work(later)] == ["a", "b"]
        assert await desk.state(name) == "COMPLETED"

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert "submit the document again" in caplog.text


def test_what_was_to_begin_and_no_store_knows_is_said_loudly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        older = desk.stores.cold_image()
        await desk.start([node("a")])
        desk.stores.put_cold_back(older)
        await desk.drain(owner)

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert "no store has them" in caplog.text


def test_an_idempotency_key_is_part_of_what_the_hot_store_has() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await _owner(desk)
        plan = await desk.workflow([node("a")])
        name = await desk.record_intent(plan)
        intent = await desk.stores.cold.executions.intent(name)
        assert intent is not None
        intent.idempotency_key = "order-17"
        intent.request_hash = "hash"
        intent.key_scope = "key-1"
        desk.stores.cold.executions._write(intent)
        await desk.stores.hot.append([ExecutionStarted(name)])
        await desk.drain(owner)
        assert (await desk.stored(name)).record.idempotency == ("key-1", "order-17", "hash")

    asyncio.run(scenario())
