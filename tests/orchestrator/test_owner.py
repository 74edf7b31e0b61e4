"""One owner, step by step: load, decide, commit, and whatever can go wrong with each."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from penstock.engine import handling
from penstock.engine.commands import COMMIT_WEIGHT, Commands
from penstock.engine.events import (
    AnyEvent,
    Blob,
    Continued,
    ExecutionBroke,
    ExecutionStarted,
    TaskError,
    TaskFailed,
    TaskSucceeded,
    TimerFired,
)
from penstock.engine.state import Execution
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.owner import PartitionOwner
from penstock.stores import codec
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.task_keys import key_of
from tests.orchestrator.desk import Desk, diamond, node


def test_an_execution_runs_to_its_end() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start(diamond())
        tasks = await desk.work(await desk.own())
        assert [task.node_id for task in tasks] == ["a", "b", "c", "d"]
        assert await desk.state(name) == "COMPLETED"
        assert desk.stores.hot.inbox_depth() == desk.stores.queue.depth() == 0
        assert await desk.stores.hot.active(0) == []

    asyncio.run(scenario())


def test_a_new_owner_goes_on_where_the_old_one_was() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start(diamond())
        for turn in range(6):
            owner = await desk.own(f"owner-{turn}" if turn else "owner-0", seconds=0.0)
            await desk.drain(owner)
            desk.now += 1
            await desk.succeed(await desk.fetch(1))
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_events_of_executions_that_ended_or_never_were_change_nothing() -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await desk.start([node("a")])
        (task,) = await desk.work(owner)
        before = await desk.stored(name)
        late: list[AnyEvent] = [
            TaskSucceeded(*key_of(task), "worker-9", 1.0, b"2"),
            ExecutionStarted(name),
            TimerFired(name),
        ]
        await desk.stores.hot.append(
            [*late, ExecutionStarted("never-accepted"), TimerFired("never-accepted")]
        )
        await desk.drain(owner)
        assert await desk.stored(name) == before
        assert not owner._cache, "or whoever has ended would stay in memory for ever"
        assert await desk.stores.hot.load(["never-accepted"]) == {}
        assert desk.stores.hot.inbox_depth() == 0

    asyncio.run(scenario())


def test_what_ended_while_it_was_refused_is_left_as_it_ended() -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await desk.start([node("a")])
        await desk.work(owner)
        before = await desk.stored(name)
        assert (
            await owner._on_rejected(name, ValueError("of a commit that has happened all the same"))
            is None
        )
        await desk.drain(owner)
        assert await desk.stored(name) == before

    asyncio.run(scenario())


def test_a_start_that_comes_twice_starts_once() -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await desk.start([node("a"), node("b")])
        await desk.stores.hot.append([ExecutionStarted(name)])
        await desk.drain(owner)
        await desk.stores.hot.append([ExecutionStarted(name)])
        assert sorted(task.node_id for task in await desk.work(owner)) == ["a", "b"]

    asyncio.run(scenario())


def test_a_retry_waits_for_its_timer() -> None:
    async def scenario() -> None:
        desk = Desk()
        retry = {"max_attempts": 3, "initial_delay_seconds": 10, "jitter_seconds": 0}
        name = await desk.start([node("a", retry=retry)])
        owner = await desk.own()
        await desk.drain(owner)
        (task,) = await desk.fetch()
        await desk.report(
            TaskFailed(*key_of(task), "worker-1", desk.now, TaskError("handler", "boom"))
        )
        await desk.drain(owner)
        assert await desk.fetch() == []
        desk.now += 9.9
        await desk.drain(owner)
        assert await desk.fetch() == []
        desk.now += 0.2
        (again,) = await desk.work(owner)
        assert again.attempt == 2
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_an_owner_whose_lease_was_taken_commits_nothing_and_stops() -> None:
    async def scenario() -> None:
        desk = Desk()
        old = await desk.own("old", seconds=1.0)
        name = await desk.start([node("a")])
        await desk.drain(old)
        desk.now += 2
        current = await desk.own("current")
        await desk.succeed(await desk.fetch())
        with pytest.raises(Fenced):
            await old.run()
        assert await desk.states(name) == {"a": "QUEUED"}
        assert desk.stores.hot.fenced == 1
        await desk.drain(current)
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_reply_was_lost_ends_the_owner_and_the_next_one_reads_again(
    when: str,
) -> None:
    """Whether the commit happened or not, the decision is made once.

    Nothing is dispatched twice, and nothing is forgotten.
    """

    async def scenario() -> None:
        desk = Desk()
        name = await desk.start(diamond())
        real = desk.stores.hot.commit
        losing = True

        async def lose(plan: CommitPlan) -> None:
            if when == "after" or not losing:
                await real(plan)
            if losing:
                raise StoreUnavailable("no answer")

        desk.stores.hot.commit = lose  # type: ignore[method-assign]
        tasks = []
        lost = 0
        for turn in range(20):
            owner = await desk.own("owner")
            losing = turn % 2 == 0
            try:
                await desk.drain(owner)
            except StoreUnavailable:
                lost += 1
            fetched = await desk.fetch()
            tasks += fetched
            await desk.succeed(fetched)
        assert lost >= 2
        assert sorted(key_of(task) for task in tasks) == sorted(
            (name, node_id, 1, 1) for node_id in "abcd"
        )
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_a_commit_that_lands_after_the_next_owner_has_read_the_state_is_refused() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start([node("a"), node("b", "a")])
        real = desk.stores.hot.commit
        late: list[CommitPlan] = []

        async def delay(plan: CommitPlan) -> None:
            late.append(plan)
            raise StoreUnavailable("no answer")

        desk.stores.hot.commit = delay  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await (await desk.own("owner")).step()
        desk.stores.hot.commit = real  # type: ignore[method-assign]
        current = await desk.own("owner")
        with pytest.raises(Fenced):
            await real(late[0])
        await desk.drain(current)
        with pytest.raises(Fenced):
            await real(late[0])
        assert len(await desk.work(current)) == 2
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_a_zombie_worker_changes_nothing_after_its_task_was_taken_back() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start([node("a")])
        owner = await desk.own()
        await desk.drain(owner)
        (zombie_task,) = await desk.stores.queue.fetch("zombie", {"work"}, 1)
        assert await desk.stores.queue.reap(0, owner.lease.token, "zombie") == 1
        stale = TaskSucceeded(*key_of(zombie_task), "zombie", 1.0, b'"stale"')
        await desk.stores.queue.report("zombie", [stale])
        assert desk.stores.hot.inbox_depth() == 1
        await desk.drain(owner)
        await desk.stores.hot.append([stale])
        (again,) = await desk.work(owner, b'"fresh"')
        assert again.attempt == 2
        assert (await desk.stored(name)).outputs == {"a": b'"fresh"'}

    asyncio.run(scenario())


def test_large_configs_travel_as_blobs_that_are_there_before_the_commit() -> None:
    async def scenario() -> None:
        desk = Desk(inline_max_bytes=1000)
        small = {"text": "x" * 900}
        large = {"text": "x" * 1100}
        await desk.start([node("small", config=small), node("large", config=large)])
        real = desk.stores.hot.commit
        seen: list[bytes] = []

        async def watch(plan: CommitPlan) -> None:
            configs = [task.config for task in plan.tasks]
            seen.extend(
                [
                    await desk.stores.blobs.get(config)
                    for config in configs
                    if isinstance(config, Blob)
                ]
            )
            await real(plan)

        desk.stores.hot.commit = watch  # type: ignore[method-assign]
        await desk.drain(await desk.own())
        configs = {task.node_id: task.config for task in await desk.fetch()}
        assert isinstance(configs["small"], bytes)
        assert isinstance(configs["large"], Blob)
        assert [len(data) for data in seen] == [configs["large"].size]

    asyncio.run(scenario())


def test_a_task_with_many_inputs_is_no_larger_than_one_with_a_large_config() -> None:
    """docs/design.md, Commit: large values are an output, or a config with its inputs."""

    async def scenario() -> None:
        desk = Desk(inline_max_bytes=1000)
        parents = [f"p{number}" for number in range(50)]
        await desk.start([*(node(parent) for parent in parents), node("join", *parents)])
        owner = await desk.own()
        await desk.drain(owner)
        await desk.succeed(await desk.fetch(), b'"' + b"x" * 900 + b'"')
        await desk.drain(owner)
        (join,) = await desk.fetch()
        ((name, blob),) = join.inputs
        assert name == ""
        assert isinstance(blob, Blob)
        assert len(codec.decode_inputs(await desk.stores.blobs.get(blob))) == 50

    asyncio.run(scenario())


def test_the_list_of_a_map_travels_as_a_blob_if_it_is_large() -> None:
    async def scenario() -> None:
        desk = Desk(inline_max_bytes=1000)
        each = {"id": "each", "for_each": [1, 2], "handler": "work"}
        after = node("z", "each", config={"first": "{{ each.0.text }}"})
        name = await desk.start([each, after])
        owner = await desk.own()
        text = "x" * 600
        tasks = await desk.work(owner, b'{"text":"%b"}' % text.encode())
        stored = await desk.stored(name)
        blob = stored.outputs["each"]
        assert isinstance(blob, Blob)
        assert json.loads(await desk.stores.blobs.get(blob)) == [{"text": text}] * 2
        assert tasks[-1].config == b'{"first":"%b"}' % text.encode()
        assert tasks[-1].inputs == [("each", blob)]
        assert stored.record.state == "COMPLETED"

    asyncio.run(scenario())


def test_a_node_that_refers_to_a_large_output_starts_with_it() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start([node("a"), node("b", "a", config={"x": "{{ a.x }}"})])
        owner = await desk.own()
        await desk.drain(owner)
        (task,) = await desk.fetch()
        blob = await desk.stores.blobs.put(b'{"x":[1,2]}')
        await desk.report(TaskSucceeded(*key_of(task), "worker-1", desk.now, blob))
        await desk.drain(owner)
        (task,) = await desk.fetch()
        assert task.config == b'{"x":[1,2]}'
        assert (await desk.stored(name)).outputs == {"a": blob}

    asyncio.run(scenario())


def test_ten_thousand_ready_nodes_are_dispatched_over_several_commits_each_once() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start([node(f"n{number}") for number in range(10_000)])
        await desk.plans.need("flow", 1)  # it would be compiled in the background
        await desk.drain(await desk.own())
        written = [sum(len(commands.history) for commands in changes) for changes in desk.changes]
        assert max(written) <= COMMIT_WEIGHT + 1
        assert len(written) >= 10
        tasks = await desk.fetch()
        assert len({task.node_id for task in tasks}) == len(tasks) == 10_000
        assert set((await desk.states(name)).values()) == {"QUEUED"}

    asyncio.run(scenario())


def test_an_owner_that_dies_between_these_commits_leaves_the_rest_to_the_next_one() -> None:
    async def scenario() -> None:
        desk = Desk()
        name = await desk.start([node(f"n{number}") for number in range(3_000)])
        await desk.plans.need("flow", 1)  # it would be compiled in the background
        await (await desk.own("first", seconds=0.0)).step()
        assert len(await desk.states(name)) < 3_000
        desk.now += 1
        await desk.drain(await desk.own("second"))
        tasks = await desk.fetch()
        assert len({task.node_id for task in tasks}) == len(tasks) == 3_000

    asyncio.run(scenario())


def test_many_executions_that_start_at_once_do_not_make_one_huge_commit() -> None:
    """docs/design.md, Commit: at most about 1,000 lines, or a store is blocked for long."""

    async def scenario() -> None:
        desk = Desk()
        nodes = [node(f"n{number}") for number in range(100)]
        names = [await desk.start(nodes) for _ in range(60)]
        await desk.drain(await desk.own())
        written = [sum(len(commands.history) for commands in changes) for changes in desk.changes]
        assert sum(written) == 60 * 101
        assert max(written) <= 2 * COMMIT_WEIGHT
        assert len(await desk.fetch()) == 100 * len(names)

    asyncio.run(scenario())


Breaks = Callable[[Execution, AnyEvent], bool]


def _spoil(monkeypatch: pytest.MonkeyPatch, breaks: Breaks) -> None:
    """The core raises in the cases that `breaks` says."""
    handle = handling.handle

    def spoiled(self: Execution, event: AnyEvent, now: float) -> Commands:
        commands = handle(self, event, now)
        if not isinstance(event, ExecutionBroke) and breaks(self, event):
            raise KeyError("a bug in the core")
        return commands

    monkeypatch.setattr(handling, "handle", spoiled)


@pytest.mark.parametrize("kind", [ExecutionStarted, TaskSucceeded])
def test_an_exception_in_the_core_fails_that_execution_and_no_other(
    kind: type, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        desk = Desk()
        names = [await desk.start(diamond()) for _ in range(3)]
        _spoil(
            monkeypatch,
            lambda execution, event: (
                execution.record.execution_id == names[1] and isinstance(event, kind)
            ),
        )
        with caplog.at_level(logging.ERROR):
            await desk.work(await desk.own())
        assert [await desk.state(name) for name in names] == ["COMPLETED", "FAILED", "COMPLETED"]
        record = (await desk.stored(names[1])).record
        assert record.error is not None
        assert (record.error.category, "a bug in the core" in record.error.message) == (
            "internal_error",
            True,
        )
        assert {"QUEUED", "RUNNING", "PENDING"}.isdisjoint((await desk.states(names[1])).values())
        assert desk.stores.hot.inbox_depth() == desk.stores.queue.depth() == 0

    asyncio.run(scenario())
    assert "Traceback" in caplog.text
    assert "execution-2" in caplog.text


def test_an_exception_after_a_large_output_was_fetched_fails_that_execution_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = Desk()
        nodes = [node("a"), node("b", "a", config={"x": "{{ a.x }}"})]
        bad, good = [await desk.start(nodes) for _ in range(2)]
        owner = await desk.own()
        await desk.drain(owner)
        blob = await desk.stores.blobs.put(b'{"x":1}')
        await desk.report(
            *(
                TaskSucceeded(*key_of(task), "worker-1", desk.now, blob)
                for task in await desk.fetch()
            )
        )
        _spoil(
            monkeypatch,
            lambda execution, event: (
                execution.record.execution_id == bad and isinstance(event, Continued)
            ),
        )
        await _insist(desk, owner)
        assert (await desk.state(bad), await desk.state(good)) == ("FAILED", "COMPLETED")

    asyncio.run(scenario())


def test_an_execution_that_cannot_be_loaded_fails_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        desk = Desk()
        bad, good = [await desk.start([node("a"), node("b", "a")]) for _ in range(2)]
        await desk.drain(await desk.own("owner"))
        restore = Execution.__init__

        def spoiled(self: Execution, plan: Any, record: Any, runs: Any = (), *rest: Any) -> None:
            if record.execution_id == bad and list(runs):
                raise KeyError("a node that the plan doesn't have")
            restore(self, plan, record, runs, *rest)

        monkeypatch.setattr(Execution, "__init__", spoiled)
        await desk.succeed(await desk.fetch())
        await _insist(desk, await desk.own("owner"))
        assert (await desk.state(bad), await desk.state(good)) == ("FAILED", "COMPLETED")

    asyncio.run(scenario())


def test_an_execution_whose_workflow_is_gone_fails_and_no_other() -> None:
    async def scenario() -> None:
        desk = Desk()
        without_workflow = await desk.start([node("a")], name="gone")
        healthy = await desk.start([node("a")], name="kept")
        del desk.stores.cold.definitions._workflows["gone"]
        await _insist(desk, await desk.own("owner"))
        assert (await desk.state(without_workflow), await desk.state(healthy)) == (
            "FAILED",
            "COMPLETED",
        )

    asyncio.run(scenario())


def test_an_execution_whose_large_output_is_gone_fails_and_no_other() -> None:
    async def scenario() -> None:
        desk = Desk()
        bad, good = [
            await desk.start([node("a"), node("b", "a", config={"x": "{{ a.x }}"})])
            for _ in range(2)
        ]
        owner = await desk.own("owner")
        await desk.drain(owner)
        values: dict[str, Any] = {bad: Blob("never-put", 9), good: b'{"x":1}'}
        tasks = await desk.fetch()
        await desk.report(
            *(
                TaskSucceeded(*key_of(task), "worker-1", desk.now, values[task.execution_id])
                for task in tasks
            )
        )
        await _insist(desk, owner)
        assert (await desk.state(bad), await desk.state(good)) == ("FAILED", "COMPLETED")

    asyncio.run(scenario())


def test_a_commit_refused_for_its_content_is_divided_until_the_rejected_execution_is_found() -> (
    None
):
    async def scenario() -> None:
        desk = Desk()
        names = [await desk.start(diamond()) for _ in range(5)]
        real = desk.stores.hot.commit

        async def refuse(plan: CommitPlan) -> None:
            ended = {execution.execution_id for execution in plan.ended}
            for execution_id, data in plan.changes:
                nodes = {run.node_id for run in codec.decode_change(data).nodes}
                if execution_id == names[3] and "b" in nodes and execution_id not in ended:
                    raise ValueError("can't be written")
            await real(plan)

        desk.stores.hot.commit = refuse  # type: ignore[method-assign]
        await _insist(desk, await desk.own("owner"))
        states = [await desk.state(name) for name in names]
        assert states == ["COMPLETED"] * 3 + ["FAILED", "COMPLETED"]

    asyncio.run(scenario())


async def _insist(desk: Desk, owner: PartitionOwner) -> None:
    """As the orchestrator does: an owner that breaks is followed by another, a few times over."""
    for _ in range(10):
        try:
            await desk.work(owner)
        except Exception:  # noqa: BLE001 -- whatever it is, the next owner gets its chance
            owner = await desk.own("owner")
        else:
            return
    raise AssertionError("one bad execution stops the whole partition")
