"""A commit is all or nothing, and what is loaded is the sum of the commits."""

import random
from itertools import islice

import pytest

from penstock.contract.facts import (
    Owner,
    begin,
    dead_letter,
    ended,
    new_execution_ids,
    new_intent,
    queued,
    record,
    started,
    stop,
    task,
)
from penstock.engine.commands import AttemptFailure, Commands, ExecutionRecord, NodeRun, Transition
from penstock.engine.events import Blob, ExecutionStarted, TaskError, Value
from penstock.engine.states import ExecutionState, NodeState
from penstock.errors import StoreError
from penstock.stores.base import Stored, Stores
from penstock.stores.records import DeadLetterSearch, Search


async def test_everything_in_a_commit_is_there_afterwards(stores: Stores) -> None:
    hot = stores.hot
    execution_id = next(new_execution_ids(stores))
    await stores.cold.executions.record_intents([new_intent(execution_id)])
    await hot.append([ExecutionStarted(execution_id)])
    owner = await Owner.of(stores)
    owner.position = (await hot.receive(0, 0, 10, 0.0))[-1][0]
    failed = NodeRun(
        "b",
        NodeState.FAILED,
        2,
        1.0,
        2.0,
        3.0,
        reason="http",
        worker_id="worker-1",
        failures=[
            AttemptFailure(
                1, 2.5, TaskError("http", "500", "HTTPError", {"status": 500}, "Trace"), "worker-1"
            )
        ],
        failures_dropped=3,
        logs_size=7,
    )
    dispatched = task(execution_id, "c")
    changes = Commands(
        execution_id,
        record=record(
            execution_id,
            ExecutionState.RUNNING,
            started_at=1.0,
            failing=True,
            error=TaskError("http", "500"),
        ),
        nodes={
            "a": NodeRun("a", NodeState.COMPLETED, 1),
            "b": failed,
            "c": NodeRun("c", NodeState.QUEUED, 1),
        },
        outputs={"a": b'{"x":1}', "big": Blob("ab12", 300_000)},
        history=[
            Transition(1, 1.0, "", "PENDING", "RUNNING", 0),
            Transition(2, 2.0, "a", "QUEUED", "RUNNING", 1, "r"),
        ],
        logs=[("a", 1, "line\nanother"), ("b", 2, "é")],
        failures=[("b", failed.failures[0])],
        dead_letters=[dead_letter(execution_id, "b")],
        tasks=[dispatched],
        wake_at=5000.0,
        timer_changed=True,
    )
    await owner.commit(changes)
    assert changes.record is not None

    expected = Stored(
        changes.record, changes.nodes, changes.outputs, 2, changes.history, changes.logs
    )
    stored = await hot.load([execution_id])
    assert stored == {execution_id: expected}

    active = await hot.active(0)
    assert active == [execution_id]

    next_due = await hot.next_due(0)
    assert next_due == 5000.0

    rows = await stores.cold.dead_letters.dead_letters(DeadLetterSearch())
    assert [row.dead_letter for row in rows] == [dead_letter(execution_id, "b")]

    fetched = await stores.queue.fetch("worker-1", {"echo"}, 10)
    assert fetched == [dispatched]

    inbox = await owner.inbox()
    assert inbox == []


async def test_failures_are_kept_beside_their_node_and_written_once(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    run = NodeRun("a", NodeState.RETRYING)
    for attempt in (1, 2, 3):
        failure = AttemptFailure(attempt, 2.0, TaskError("http", "500"), "worker-1")
        run.attempt = attempt
        run.failures = [*run.failures, failure]
        line = Transition(attempt + 1, 2.0, "a", "RUNNING", "RETRYING", attempt)
        await owner.commit(
            Commands(execution_id, nodes={"a": run}, history=[line], failures=[("a", failure)])
        )
        stored = (await stores.hot.load([execution_id]))[execution_id]
        assert stored.runs == {"a": run}

    line = Transition(5, 2.0, "a", "RETRYING", "QUEUED", 4)
    await owner.commit(Commands(execution_id, nodes={"a": run}, history=[line]))
    stored = (await stores.hot.load([execution_id]))[execution_id]
    assert [failure.attempt for failure in stored.runs["a"].failures] == [1, 2, 3]


async def test_nothing_shows_before_the_commit(stores: Stores) -> None:
    hot = stores.hot
    execution_id = next(new_execution_ids(stores))
    await stores.cold.executions.record_intents([new_intent(execution_id)])
    stored = await hot.load([execution_id, "unknown"])
    assert stored == {}

    active = await hot.active(0)
    assert active == []

    next_due = await hot.next_due(0)
    assert next_due is None


async def test_what_is_loaded_is_the_fold_of_the_commits(stores: Stores) -> None:
    generator = random.Random(7)
    execution_ids = list(islice(new_execution_ids(stores), 3))
    owner = await begin(stores, *execution_ids)
    model = {execution_id: _just_started(execution_id) for execution_id in execution_ids}
    for seq in range(2, 60):
        touched = generator.sample(execution_ids, generator.randint(1, 3))
        changes = [_random_change(generator, model[execution_id], seq) for execution_id in touched]
        await owner.commit(*changes)

    stored = await stores.hot.load(execution_ids)
    assert stored == model


async def test_a_commit_may_touch_many_executions(stores: Stores) -> None:
    execution_ids = list(islice(new_execution_ids(stores), 300))
    owner = await begin(stores, *execution_ids)
    active = await stores.hot.active(0)
    assert sorted(active) == sorted(execution_ids)

    await owner.commit(*(ended(execution_id) for execution_id in execution_ids))
    active = await stores.hot.active(0)
    assert active == []
    assert await stores.cold.executions.started(0) == []

    completed = await stores.cold.executions.search(Search(states=("COMPLETED",), limit=1000))
    assert len(completed) == 300


async def test_an_empty_commit_moves_the_inbox_on(stores: Stores) -> None:
    hot = stores.hot
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await hot.append([ExecutionStarted(execution_id)] * 3)
    owner.position = (await hot.receive(0, 0, 10, 0.0))[-1][0]
    await owner.commit()
    received = await hot.receive(0, 0, 10, 0.0)
    assert received == []


async def test_what_the_caller_changes_afterwards_does_not_leak_in(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    run = NodeRun("a", NodeState.QUEUED, 1)
    running = record(execution_id, ExecutionState.RUNNING)
    await owner.commit(
        Commands(execution_id, record=running, nodes={"a": run}, history=[_queued_line(2)])
    )
    run.state = NodeState.COMPLETED
    run.attempt = 7
    running.error = TaskError("x", "y")
    stored = (await stores.hot.load([execution_id]))[execution_id]
    assert stored.runs == {"a": NodeRun("a", NodeState.QUEUED, 1)}
    assert stored.record.error is None

    stored.runs["a"].attempt = 9
    loaded_again = (await stores.hot.load([execution_id]))[execution_id]
    assert loaded_again.runs["a"].attempt == 1


async def test_a_commit_whose_content_cannot_be_written_leaves_nothing_of_any_execution(
    stores: Stores,
) -> None:
    hot = stores.hot
    good, bad = islice(new_execution_ids(stores), 2)
    owner = await begin(stores, good, bad)
    before = await hot.load([good, bad])
    await hot.append([ExecutionStarted(good)])
    spoiled = Commands(bad, history=[_queued_line(2)], logs=[("a", 1, "half a character: \ud800")])
    owner.position = (await hot.receive(0, 0, 10, 0.0))[-1][0]
    with pytest.raises((StoreError, ValueError)):
        await hot.commit(owner.commit_of(queued(task(good)), spoiled))

    following = await Owner.of(stores)
    stored = await hot.load([good, bad])
    assert stored == before

    inbox = await following.inbox()
    assert len(inbox) == 1

    await following.commit(queued(task(good)))
    fetched = await stores.queue.fetch("worker-1", {"echo"}, 10)
    assert len(fetched) == 1


async def test_logs_are_kept_even_when_no_state_changed(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(Commands(execution_id, logs=[("a", 1, "still at it")]))
    stored = (await stores.hot.load([execution_id]))[execution_id]
    assert stored.logs == [("a", 1, "still at it")]


async def test_timers_come_due_in_order_and_stay_due_until_a_commit_says_otherwise(
    stores: Stores,
) -> None:
    hot = stores.hot
    execution_ids = list(islice(new_execution_ids(stores), 4))
    owner = await begin(stores, *execution_ids)
    wakes = (300.0, 100.0, 200.0, 900.0)
    timers = [
        _timer(execution_id, wake_at)
        for execution_id, wake_at in zip(execution_ids, wakes, strict=True)
    ]
    await owner.commit(*timers)
    next_due = await hot.next_due(0)
    assert next_due == 100.0

    due = await hot.due(0, 99.9, 10)
    assert due == []

    by_wake_time = [execution_ids[1], execution_ids[2], execution_ids[0]]
    due = await hot.due(0, 300.0, 10)
    assert due == by_wake_time

    due = await hot.due(0, 300.0, 2)
    assert due == by_wake_time[:2]

    due = await hot.due(0, 300.0, 10)
    assert due == by_wake_time

    next_due = await hot.next_due(0)
    assert next_due == 100.0


async def test_an_execution_has_one_timer_the_last_one_set(stores: Stores) -> None:
    hot = stores.hot
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    for at in (100.0, 50.0, 700.0):
        await owner.commit(_timer(execution_id, at))

    next_due = await hot.next_due(0)
    assert next_due == 700.0

    due = await hot.due(0, 699.0, 10)
    assert due == []

    due = await hot.due(0, 700.0, 10)
    assert due == [execution_id]


async def test_a_commit_without_a_word_about_the_timer_leaves_it(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(_timer(execution_id, 100.0))
    await owner.commit(queued(task(execution_id)))
    next_due = await stores.hot.next_due(0)
    assert next_due == 100.0


async def test_a_cleared_timer_does_not_fire(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(_timer(execution_id, 100.0))
    await owner.commit(_timer(execution_id, None))
    next_due = await stores.hot.next_due(0)
    assert next_due is None

    due = await stores.hot.due(0, 1000.0, 10)
    assert due == []


async def test_an_execution_that_ended_has_no_timer_and_is_not_active(stores: Stores) -> None:
    hot = stores.hot
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(_timer(execution_id, 100.0))
    active = await hot.active(0)
    assert active == [execution_id]

    await owner.commit(ended(execution_id))
    active = await hot.active(0)
    assert active == []

    next_due = await hot.next_due(0)
    assert next_due is None

    due = await hot.due(0, 1000.0, 10)
    assert due == []


async def test_a_timer_that_is_set_by_the_commit_that_ends_the_execution_does_not_fire(
    stores: Stores,
) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    await owner.commit(ended(execution_id, timer_changed=True, wake_at=100.0))
    next_due = await stores.hot.next_due(0)
    assert next_due is None

    due = await stores.hot.due(0, 1000.0, 10)
    assert due == []


async def test_an_execution_may_start_and_end_in_one_commit(stores: Stores) -> None:
    execution_id = next(new_execution_ids(stores))
    await stores.cold.executions.record_intents([new_intent(execution_id)])
    owner = await Owner.of(stores)
    await owner.commit(ended(execution_id))
    active = await stores.hot.active(0)
    assert active == []

    stored = await stores.cold.executions.execution(execution_id)
    assert stored is not None
    assert stored.record.state == ExecutionState.COMPLETED


async def test_a_task_stopped_by_the_commit_that_hands_it_out_is_not_handed_out(
    stores: Stores,
) -> None:
    execution_id = next(new_execution_ids(stores))
    owner = await begin(stores, execution_id)
    dropped = task(execution_id, "dropped")
    remaining = task(execution_id, "kept")
    changes = queued(dropped, remaining)
    changes.stops = [stop(dropped)]
    await owner.commit(changes)
    fetched = await stores.queue.fetch("worker-1", {"echo"}, 10)
    assert fetched == [remaining]


def _timer(execution_id: str, at: float | None) -> Commands:
    return Commands(execution_id, timer_changed=True, wake_at=at)


def _queued_line(seq: int) -> Transition:
    return Transition(seq, 1.0, "a", "PENDING", "QUEUED", 1)


def _just_started(execution_id: str) -> Stored:
    changes = started(execution_id)
    assert changes.record is not None
    return Stored(changes.record, {}, {}, 1, list(changes.history), [])


def _random_change(generator: random.Random, stored: Stored, seq: int) -> Commands:
    """Random changes of an execution, which are applied to the model as well."""
    execution_id = stored.record.execution_id
    changes = Commands(
        execution_id, history=[Transition(seq, float(seq), "n", "QUEUED", "RUNNING", 1)]
    )
    for _ in range(generator.randint(0, 3)):
        node = f"n{generator.randint(0, 5)}"
        changes.nodes[node] = NodeRun(
            node, generator.choice(list(NodeState)), generator.randint(1, 9)
        )
        values: list[Value] = [b"1", b'{"a":"\xc3\xa9"}', Blob("k", seq)]
        changes.outputs[node] = generator.choice(values)
        changes.logs.append((node, seq, f"line {seq}"))

    if generator.random() < 0.3:
        changes.record = ExecutionRecord(
            execution_id, "w", 1, ExecutionState.RUNNING, b"{}", 0.0, error_node_id=f"n{seq}"
        )
        stored.record = changes.record

    if stored.outputs and generator.random() < 0.3:
        changes.dropped.append(generator.choice(list(stored.outputs)))
    for address in changes.dropped:
        del stored.outputs[address]
    stored.runs.update(changes.nodes)
    stored.outputs.update(changes.outputs)
    stored.history.extend(changes.history)
    stored.logs.extend(changes.logs)
    stored.last_seq = seq
    return changes
