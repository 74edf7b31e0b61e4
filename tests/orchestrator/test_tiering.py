"""What has finished goes to the cold store and leaves the hot one; what runs is copied there."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from penstock.engine.events import (
    CancelRequested,
    ExecutionStarted,
    PauseRequested,
    TaskFailed,
    TaskStarted,
)
from penstock.engine.events import TaskError as Error
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.orchestrator.tiering.portions import Portions
from penstock.stores.records import DeadLetterSearch
from penstock.stores.task_keys import key_of
from penstock.stores.tiering import Copy, Written, summary_from
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import TieredDesk, diamond, node, quick
from tests.waiting import until

Put = Callable[[int, int, Sequence[Copy]], Any]


def _refuse(
    desk: TieredDesk,
    monkeypatch: pytest.MonkeyPatch,
    why: Callable[[Sequence[Copy]], Exception | None],
) -> None:
    """The cold store fails with what `why` answers."""
    put = desk.stores.rows.put_copies

    async def refuse(partition: int, number: int, copies: Sequence[Copy], **named: Any) -> Written:
        if (error := why(copies)) is not None:
            raise error
        return await put(partition, number, copies, **named)

    monkeypatch.setattr(desk.stores.tiering.cold, "put_copies", refuse)


def test_what_has_ended_is_in_the_cold_store_with_everything_and_in_the_hot_store_no_more() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await desk.own()
        name = await desk.start(diamond())
        await desk.work(owner)
        before = await desk.stored(name)
        desk.now += 0.25
        await desk.archiver(owner, metrics).drain()
        assert not desk.stores.hot.changes
        assert not desk.stores.hot.boxes[0]
        assert await desk.stored(name) == desk.row(name) == before
        assert desk.stores.rows.numbers == [owner.lease.commit_number]
        assert metrics.archived == 1
        assert metrics.archive_seconds.total == pytest.approx(0.25)

    asyncio.run(scenario())


def test_an_owner_that_is_never_at_rest_is_waited_for_until_its_commit_has_landed_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PartitionOwner, "is_at_rest", False)

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        covering = asyncio.create_task(desk.cold_writer(owner)._covering())
        await asyncio.sleep(0)
        assert not covering.done()
        owner.lease.commit_number += 1
        assert await asyncio.wait_for(covering, 30) == owner.lease.commit_number

    asyncio.run(scenario())


def test_a_start_that_comes_after_its_execution_was_archived_begins_nothing() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start([node("a")])
        await desk.work(owner)
        await desk.archiver(owner).drain()
        await desk.stores.hot.append([ExecutionStarted(name), CancelRequested(name)])
        await desk.drain(owner)
        assert not desk.stores.hot.changes
        assert not owner._cache
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_many_are_archived_until_the_outbox_is_empty() -> None:
    async def scenario() -> None:
        desk = TieredDesk(portions=Portions(outbox_entries_max=7))
        owner = await desk.own()
        names = [await desk.start([node("a")]) for _ in range(30)]
        await desk.work(owner)
        await desk.archiver(owner).drain()
        assert {str(desk.row(name).record.state) for name in names} == {"COMPLETED"}
        assert not desk.stores.hot.changes

    asyncio.run(scenario())


def test_an_execution_that_is_paused_says_so_in_the_cold_store_and_stays_in_the_hot_one() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(diamond())
        await desk.stores.hot.append([PauseRequested(name)])
        await desk.drain(owner)
        await desk.archiver(owner).drain()
        assert desk.row(name).record.state == "PAUSED"
        assert name in desk.stores.hot.changes

    asyncio.run(scenario())


def test_dead_letters_are_brought_once_also_while_their_execution_runs() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        nodes = [node("bad", retry={"max_attempts": 1}), node("slow")]
        await desk.start(nodes, on_failure="continue")
        await desk.drain(owner)
        bad, slow = sorted(await desk.fetch(), key=lambda task: task.node_id)
        await desk.report(TaskFailed(*key_of(bad), "worker-1", desk.now, Error("handler", "no")))
        await desk.drain(owner)
        archive = desk.archiver(owner)
        await archive.drain()
        assert [
            row.dead_letter.node_id
            for row in await desk.stores.cold.dead_letters.dead_letters(DeadLetterSearch())
        ] == ["bad"]
        await desk.succeed([slow])
        await desk.drain(owner)
        await archive.drain()
        assert len(await desk.stores.cold.dead_letters.dead_letters(DeadLetterSearch())) == 1
        assert not desk.stores.hot.changes

    asyncio.run(scenario())


def test_a_cold_store_that_is_away_is_waited_for_and_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start([node("a")])
        await desk.work(owner)
        left = iter(range(5))
        _refuse(
            desk,
            monkeypatch,
            lambda _: StoreUnavailable("away") if next(left, None) is not None else None,
        )
        await desk.archiver(owner).drain()
        assert desk.row(name).record.state == "COMPLETED"

    with caplog.at_level(logging.WARNING, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert [record.message for record in caplog.records] == [
        "partition 0 can't be archived, and waits: away"
    ]


def test_what_the_cold_store_refuses_for_its_content_stays_in_the_hot_store_and_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        names = [await desk.start([node("a")]) for _ in range(9)]
        bad = names[4]
        await desk.work(owner)
        _refuse(
            desk,
            monkeypatch,
            lambda copies: (
                ValueError("\\u0000") if bad in {c.execution_id for c in copies} else None
            ),
        )
        await desk.archiver(owner).drain()
        assert not desk.stores.hot.boxes[0]
        assert set(desk.stores.hot.changes) == {bad}
        states = {name: str(desk.row(name).record.state) for name in names}
        assert states.pop(bad) == "PENDING"
        assert set(states.values()) == {"COMPLETED"}
        assert await desk.state(bad) == "COMPLETED", "readers ask the hot store first"

    with caplog.at_level(logging.ERROR, "penstock.orchestrator"):
        asyncio.run(scenario())
    assert len(caplog.records) == 1


def test_a_cold_store_that_refuses_everything_is_away_and_nothing_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        names = [await desk.start([node("a")]) for _ in range(4)]
        await desk.work(owner)
        left = iter(range(9))
        _refuse(
            desk,
            monkeypatch,
            lambda _: RuntimeError("a bug") if next(left, None) is not None else None,
        )
        await desk.archiver(owner).drain()
        assert {str(desk.row(name).record.state) for name in names} == {"COMPLETED"}
        assert not desk.stores.hot.changes

    asyncio.run(scenario())


def test_only_the_owner_takes_entries_off_the_outbox() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        zombie = await desk.own("owner-1", seconds=1.0)
        name = await desk.start([node("a")])
        await desk.work(zombie)
        desk.now += 5.0
        await desk.own("owner-2")
        with pytest.raises(Fenced):
            await desk.archiver(zombie).drain()
        assert len(desk.stores.hot.boxes[0]) == 1
        assert name in desk.stores.hot.changes

    asyncio.run(scenario())


def test_an_end_is_not_archived_when_what_led_to_it_was_lost_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A FLUSHALL after the outbox was read, and before the executions were."""

    async def scenario() -> None:
        desk = TieredDesk()
        empty = desk.stores.hot.image()
        owner = await desk.own()
        name = await desk.start([node("a")])
        await desk.work(owner)
        changes = desk.stores.tiering.hot.changes

        async def too_late(names: Collection[str]) -> Any:
            desk.stores.hot.become(empty)
            return await changes(names)

        monkeypatch.setattr(desk.stores.tiering.hot, "changes", too_late)
        with pytest.raises(Fenced):
            await desk.archiver(owner).drain()
        assert str(desk.row(name).record.state) == "PENDING"

    asyncio.run(scenario())


def test_a_call_that_takes_entries_off_is_never_made_twice_by_one_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its answer may be lost and the call still take effect, later.

    It would remove what was never archived.
    """

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.start([node("a")])
        await desk.work(owner)
        calls = 0

        async def lost(_lease: object, count: int, _gone: object) -> None:
            nonlocal calls
            if count:  # else it takes nothing, and only asks whether it may
                calls += 1
                raise StoreUnavailable("no answer")

        monkeypatch.setattr(desk.stores.tiering.hot, "acknowledge_outbox", lost)
        with pytest.raises(StoreUnavailable):
            await desk.archiver(owner).drain()
        assert calls == 1

    asyncio.run(scenario())


def test_what_runs_is_copied_as_it_is_and_what_has_ended_is_left_to_the_archiver() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        metrics = Metrics()
        owner = await desk.own()
        over = await desk.start([node("a")])
        await desk.work(owner)
        name = await desk.start(diamond())
        await desk.drain(owner)
        (task,) = await desk.fetch()
        await desk.stores.queue.started(
            "worker-1", [TaskStarted(*key_of(task), "worker-1", desk.now)]
        )
        await desk.drain(owner)
        checkpointer = desk.checkpointer(owner, metrics)
        checkpointer.dirty.update({name, over, "unknown"})
        await checkpointer.copy()
        assert desk.row(name) == await desk.stored(name)
        assert desk.row(name).runs["a"].state == "RUNNING"
        assert desk.row(over).record.state == "PENDING"
        assert metrics.checkpointed == 1
        assert not checkpointer.dirty

    asyncio.run(scenario())


def test_a_late_checkpoint_does_not_undo_an_archive() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(diamond())
        await desk.drain(owner)
        late = list(desk.stores.hot.changes[name])
        await desk.work(owner)
        await desk.archiver(owner).drain()
        await desk.cold_writer(owner).put([Copy(name, summary_from(late), late)])
        assert desk.row(name).record.state == "COMPLETED"
        assert str((await desk.stored(name)).record.state) == "COMPLETED"

    asyncio.run(scenario())


def test_copies_come_with_a_commit_number_that_covers_what_is_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that the store has and the owner hasn't heard of yet may be part of them."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start(diamond())
        commit = desk.stores.hot.commit
        heard = asyncio.Event()

        async def done_but_not_heard(plan: Any) -> None:
            await commit(plan)
            await heard.wait()

        monkeypatch.setattr(desk.stores.hot, "commit", done_but_not_heard)
        stepping = asyncio.create_task(owner.step())
        await until(lambda: name in desk.stores.hot.changes)
        assert owner.lease.commit_number == 0
        checkpointing = asyncio.create_task(desk.checkpoint(owner))
        asyncio.get_running_loop().call_later(0.05, heard.set)
        await checkpointing
        await stepping
        assert desk.stores.rows.numbers == [1]

    asyncio.run(scenario())


def test_a_start_of_an_execution_that_has_been_archived_runs_nothing() -> None:
    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        name = await desk.start([node("a")])
        await desk.work(owner)
        await desk.archiver(owner).drain()
        await desk.stores.hot.append([ExecutionStarted(name), CancelRequested(name)])
        assert await desk.work(owner) == []
        assert desk.row(name).record.state == "COMPLETED"
        assert not desk.stores.hot.changes

    asyncio.run(scenario())


def test_an_orchestrator_archives_and_checkpoints_by_itself() -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=quick(checkpoint_seconds=0.01))
        metrics = Metrics()
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        name = await desk.start([node("a"), node("b", "a")])
        await until(desk.stores.queue.depth)
        await until(lambda: desk.row(name).record.state == "RUNNING")
        await desk.succeed(await desk.fetch())
        await until(desk.stores.queue.depth)
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(name).record.state == "COMPLETED")
        await until(lambda: not desk.stores.hot.changes)
        assert metrics.archived == 1
        assert metrics.checkpointed
        assert metrics.fenced == 0
        await orchestrator.stop()

    asyncio.run(scenario())


def test_while_the_cold_store_is_away_what_runs_goes_on_and_what_was_to_begin_begins_later() -> (
    None
):
    calls = 0

    async def away(*_: object) -> None:
        nonlocal calls
        calls += 1
        raise StoreUnavailable("away")

    async def scenario() -> None:
        desk = TieredDesk(timing=quick(reconcile_seconds=0.05))
        orchestrator = desk.orchestrator()
        orchestrator.start()
        runs = await desk.start([node("a")])
        await until(desk.stores.queue.depth)
        owner = orchestrator.owned[0]
        with pytest.MonkeyPatch.context() as outage:
            for name in ("intents", "started", "control_requests"):
                outage.setattr(desk.stores.cold.executions, name, away)
            outage.setattr(desk.stores.cold.definitions, "get_workflow", away)
            outage.setattr(desk.stores.tiering.cold, "put_copies", _unavailable)
            waits = await desk.record_intent(await desk.plans.need("flow", 1))
            await desk.stores.hot.append([ExecutionStarted(waits)])
            await desk.succeed(await desk.fetch())
            await until(lambda: desk.stores.hot.boxes[0])
            assert await desk.state(runs) == "COMPLETED"
            assert desk.stores.queue.depth() == 0
            calls_before = calls
            await until(lambda: calls > calls_before + 3)
            assert orchestrator.owned == {0: owner}, "it owns the partition all the while"
        await until(lambda: desk.row(runs).record.state == "COMPLETED")
        await until(desk.stores.queue.depth)
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(waits).record.state == "COMPLETED")
        await orchestrator.stop()

    asyncio.run(scenario())


def test_an_execution_whose_plan_cannot_be_read_holds_up_no_other() -> None:
    """PostgreSQL goes between the intent and the plan, or before what a retry reuses is read."""

    async def scenario() -> None:
        desk = TieredDesk()
        owner = await desk.own()
        await desk.build(owner)
        begun = await desk.start([node("a"), node("b", "a")])
        retried = await desk.start([node("a")], name="retried")
        await desk.drain(owner)
        tasks = await desk.fetch()
        owner._cache.clear()
        later = await desk.start([node("a")], name="later")
        with pytest.MonkeyPatch.context() as outage:
            outage.setattr(desk.stores.cold.definitions, "get_workflow", _unavailable)
            outage.setattr(desk.plans, "_plans", {})
            await desk.succeed(tasks)
            await desk.drain(owner)
            assert await desk.state(later) == "PENDING"
            assert await desk.state(begun) == "RUNNING"
        desk.now += desk.timing.cold_away_retry_seconds
        await desk.stores.hot.append([ExecutionStarted(later)])
        await desk.drain(owner)
        await desk.work(owner)
        for name in (begun, retried, later):
            assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


async def _unavailable(*_: object, **_named: object) -> None:
    raise StoreUnavailable("away")


def test_what_runs_does_not_wait_for_a_cold_store_that_says_nothing() -> None:
    requests: list[Collection[str]] = []

    async def silent(names: Collection[str]) -> Any:
        requests.append(names)
        await asyncio.Event().wait()

    async def scenario() -> None:
        desk = TieredDesk(timing=quick(intents_seconds=0.01))
        owner = await desk.own()
        runs = await desk.start([node("a"), node("b", "a")])
        await desk.drain(owner)
        with pytest.MonkeyPatch.context() as silence:
            silence.setattr(desk.stores.cold.executions, "intents", silent)
            begins = await desk.start([node("a")])
            await desk.work(owner)
            await desk.stores.hot.append([ExecutionStarted(begins)])
            await desk.drain(owner)
        assert await desk.state(runs) == "COMPLETED"
        assert len(requests) == 1, "and the next batch doesn't wait at all"
        assert await desk.state(begins) == "PENDING"

    asyncio.run(scenario())
