"""What the orchestrator's parts count.

Commits with their times, lost tasks, executions that the reconciler found.
"""

import asyncio

from penstock.contract.facts import hand_out
from penstock.engine.commands import Commands, NodeRun, Transition
from penstock.engine.events import TaskError, TaskFailed
from penstock.engine.states import ExecutionState, NodeState
from penstock.orchestrator import meter as metering
from penstock.orchestrator.meter import Meter, levels
from penstock.orchestrator.reaper import Reaper
from penstock.orchestrator.recovery import sweep
from penstock.stores.task_keys import key_of
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import QUICK, Desk, diamond, look, node, quick
from tests.waiting import until


class Watched(Desk):
    """A desk whose commits are read by a meter."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics = Metrics()
        self.meter = Meter(self.metrics, lambda: self.now)

    def _note(self, _plan: object, changes: list[Commands], _ended: object) -> None:
        self.meter.on_commit(changes)


def test_a_hop_and_a_wait_are_measured_from_the_decision_and_from_its_commit() -> None:
    async def scenario() -> Watched:
        desk = Watched()
        owner = await desk.own()
        await desk.start([node("a")])
        events = await owner._next_events()
        await owner._decide(events)
        desk.now += 2.0  # as long as the commit takes
        await owner._commit_batch()
        await owner._committer.wait_landed()
        (task,) = await desk.fetch()
        desk.now += 5.0
        await desk.succeed([task])
        await desk.drain(owner)
        return desk

    metrics = asyncio.run(scenario()).metrics
    assert (metrics.commit_seconds.total, sum(metrics.commit_seconds.counts)) == (2.0, 2)
    assert (metrics.hop_seconds.total, metrics.queue_wait_seconds.total) == (7.0, 5.0)
    assert (metrics.executions_started, dict(metrics.executions_finished)) == (1, {"COMPLETED": 1})


def test_many_executions_of_one_commit_are_all_counted_and_some_of_them_timed() -> None:
    async def scenario() -> Watched:
        desk = Watched()
        owner = await desk.own()
        for _ in range(200):
            await desk.start(diamond())
        await desk.work(owner)
        return desk

    metrics = asyncio.run(scenario()).metrics
    assert (metrics.executions_started, dict(metrics.executions_finished)) == (
        200,
        {"COMPLETED": 200},
    )
    assert metrics.commit_executions.total >= 200
    timed = sum(metrics.hop_seconds.counts)
    assert timed == sum(metrics.queue_wait_seconds.counts)
    assert 4 * metering.TIMED_EXECUTIONS_MAX / 2 <= timed < 4 * 200


def test_an_attempt_that_is_queued_again_in_the_same_commit_is_not_mistimed() -> None:
    async def scenario() -> Watched:
        desk = Watched()
        owner = await desk.own()
        await desk.start(
            [node("a", retry={"max_attempts": 2, "initial_delay_seconds": 0, "jitter_seconds": 0})]
        )
        await desk.drain(owner)
        (task,) = await desk.fetch()
        desk.now += 3.0
        await desk.report(
            TaskFailed(*key_of(task), "worker-1", desk.now, TaskError("handler", "no"))
        )
        await desk.drain(owner)
        await desk.work(owner)
        return desk

    metrics = asyncio.run(scenario()).metrics
    assert (sum(metrics.hop_seconds.counts), metrics.hop_seconds.total) == (1, 0.0)


def test_the_memory_of_commits_does_not_grow() -> None:
    metrics = Metrics()
    now = 0.0
    meter = Meter(metrics, lambda: now)
    for number in range(5 * metering.REMEMBERED):
        now = float(number + 1)
        line = Transition(1, now, "a", NodeState.PENDING, NodeState.QUEUED, 1)
        meter.on_commit(
            [Commands("e", history=[line], nodes={"a": NodeRun("a", NodeState.QUEUED, 1, now)})]
        )
    assert len(meter._landed) + len(meter._landed_before) <= 2 * metering.REMEMBERED + 1


def test_a_resumed_execution_has_not_started_again() -> None:
    metrics = Metrics()
    line = Transition(9, 1.0, "", ExecutionState.PAUSED, ExecutionState.RUNNING, 0)
    Meter(metrics, lambda: 1.0).on_commit([Commands("e", history=[line], record=object())])  # type: ignore[arg-type]
    assert metrics.executions_started == 0


def test_tasks_of_dead_workers_are_counted() -> None:
    async def scenario() -> Metrics:
        stores, metrics = Desk().stores, Metrics()
        owner, _ = await hand_out(stores, "a", "b")
        await stores.queue.fetch("worker-1", {"echo"}, 10)
        reaper = Reaper(stores.queue, owner.lease, metrics, timing=QUICK)
        await look(reaper, QUICK.worker_dead_seconds)
        await look(reaper, QUICK.worker_dead_seconds)
        return metrics

    assert asyncio.run(scenario()).tasks_lost == 2


def test_a_start_that_got_lost_is_swept_and_one_on_its_way_is_not_counted() -> None:
    async def scenario() -> None:
        desk = Desk()
        plan = await desk.workflow([node("a")])
        await desk.record_intent(plan)
        assert await sweep(desk.stores, 0, 10.0) == 0
        await desk.record_intent(plan)
        desk.now += 10.0
        assert await sweep(desk.stores, 0, 10.0) == 1, (
            "the first one's start waits in the inbox since the last time"
        )
        await desk.work(await desk.own())
        assert await sweep(desk.stores, 0, 10.0) == 0

    asyncio.run(scenario())


def test_an_orchestrator_counts_what_its_sweeps_find() -> None:
    async def scenario() -> None:
        desk = Desk(timing=quick(reconcile_seconds=0.01, stale_seconds=0.01))
        metrics = Metrics()
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        await orchestrator.recovered.wait()
        name = await desk.record_intent(await desk.workflow([node("a")]))
        desk.now += 1.0
        await until(lambda: metrics.swept)
        await until(lambda: metrics.executions_started)
        assert metrics.levels is not None
        levels = await metrics.levels()
        assert (levels.workers, dict(levels.queues)) == (0, {"work": (1, 0)})
        await orchestrator.stop()
        assert await desk.state(name) == "RUNNING"

    asyncio.run(scenario())


def test_a_new_owner_counts_what_it_looked_at() -> None:
    async def scenario() -> int:
        desk, metrics = Desk(), Metrics()
        for _ in range(3):
            await desk.start([node("a")])
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        await orchestrator.recovered.wait()
        await orchestrator.stop()
        return metrics.recovered

    assert asyncio.run(scenario()) == 3


def test_the_lag_is_what_the_inbox_holds_beyond_the_last_commit() -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        for _ in range(3):
            await desk.start([node("a")])
        assert (await levels(desk.stores, {0: owner})).inbox == {0: 3}
        await desk.drain(owner)
        assert (await levels(desk.stores, {0: owner})).inbox == {0: 0}

    asyncio.run(scenario())
