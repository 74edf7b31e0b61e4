"""What is recorded of a run: times, workers, logs, the history.

And batches of events before one commit.
"""

from __future__ import annotations

from penstock.engine import events as ev
from penstock.engine import handling
from tests.engine.replica import commit_weight
from tests.engine.trial import ID, Trial, node, once


def test_the_times_of_a_node_and_of_the_execution_are_recorded():
    trial = Trial(node("a"), start=False)
    trial.begin(at=100.0)
    trial.started("a", at=101.0)
    trial.succeed("a", at=105.0)
    run, record = trial.run("a"), trial.execution.record
    assert (run.queued_at, run.started_at, run.finished_at, run.worker_id) == (
        100.0,
        101.0,
        105.0,
        "worker-1",
    )
    assert (record.started_at, record.finished_at) == (100.0, 105.0)


def test_a_short_task_that_never_reported_its_start_has_one_all_the_same():
    trial = Trial(node("a"))
    trial.send(ev.TaskSucceeded(ID, "a", 1, 1, "worker-7", started_at=3.0, output=b"1"), at=4.0)
    assert (trial.run("a").started_at, trial.run("a").worker_id) == (3.0, "worker-7")
    assert [line.after for line in trial.last.history] == ["RUNNING", "COMPLETED", "COMPLETED"]
    assert [line.at for line in trial.last.history] == [3.0, 4.0, 4.0]


def test_the_next_attempt_starts_with_a_clean_record_and_the_old_errors():
    trial = Trial(node("a"))
    trial.started("a", at=1.0)
    trial.lose("a", at=2.0)
    run = trial.run("a")
    assert (run.attempt, run.queued_at, run.started_at, run.due_at, run.worker_id) == (
        2,
        2.0,
        None,
        None,
        None,
    )
    assert [(failure.attempt, failure.worker_id) for failure in run.failures] == [(1, "worker-1")]
    assert run.reason is None


def test_a_task_lost_before_its_start_was_reported_names_the_worker_that_had_it():
    trial = Trial(once("a"))
    trial.lose("a", at=2.0)
    [failure] = trial.run("a").failures
    assert failure.worker_id == "worker-1"
    assert "worker-1" in failure.error.message


def test_the_history_has_every_change_once_with_its_attempt_and_reason():
    trial = Trial(once("a"), node("b", "a"))
    trial.fail("a", at=2.0)
    lines = [
        (line.seq, line.node_id, line.before, line.after, line.attempt, line.reason)
        for line in trial.committed.history
    ]
    assert lines == [
        (1, "", "PENDING", "RUNNING", 0, None),
        (2, "a", "PENDING", "QUEUED", 1, None),
        (3, "a", "QUEUED", "RUNNING", 1, None),
        (4, "a", "RUNNING", "FAILED", 1, "handler"),
        (5, "b", "PENDING", "SKIPPED", 0, "upstream_failed"),
        (6, "", "RUNNING", "FAILED", 0, "handler"),
    ]


def test_a_new_owner_goes_on_with_the_numbers_of_the_history():
    trial = Trial(node("a"), node("b", "a"))
    trial.lose_the_owner()
    trial.succeed("a")
    assert [line.seq for line in trial.committed.history] == [1, 2, 3, 4, 5]


def test_logs_are_kept_for_the_attempt_that_wrote_them_and_only_for_one_that_counts():
    trial = Trial(node("a"), node("b"))
    about = (ID, "a", 1, 1, "worker-1")
    error = ev.TaskError("handler", "no")
    trial.send(ev.TaskFailed(*about, started_at=0.0, error=error, retry_after=0.0, logs="first"))
    assert trial.last.logs == [("a", 1, "first")]
    trial.send(ev.TaskSucceeded(*about, started_at=0.0, output=b"1", logs="late"))
    assert trial.last.logs == []
    trial.send(
        ev.TaskSucceeded(ID, "a", 1, 2, "worker-1", started_at=0.0, output=b"1", logs="second")
    )
    assert trial.last.logs == [("a", 2, "second")]
    trial.succeed("b")
    assert trial.last.logs == []


def test_a_task_says_all_that_a_worker_needs():
    trial = Trial(node("a", queue="slow", timeout_seconds=7, config={"x": 1}))
    [task] = trial.tasks
    assert (task.execution_id, task.workflow, task.node_id, task.handler) == (
        ID,
        "trial",
        "a",
        "noop",
    )
    assert (task.generation, task.attempt, task.queue, task.timeout_seconds) == (1, 1, "slow", 7.0)
    assert (task.config, task.inputs, task.secrets) == (b'{"x":1}', [], ())


def test_the_idempotency_key_names_the_first_execution_of_a_chain_of_retries():
    trial = Trial(node("a"), start=False)
    trial.execution.record.first_execution_id = "execution-0"
    handling.handle(trial.execution, ev.ExecutionStarted(ID), 0.0)
    assert [task.idempotency_key for task in trial.execution.take_commands().tasks] == [
        "execution-0:a"
    ]


def test_a_batch_of_events_is_one_commit():
    trial = Trial(node("a"), node("b"), node("join", "a", "b"))
    for name in ("a", "b"):
        handling.handle(
            trial.execution,
            ev.TaskSucceeded(ID, name, 1, 1, "worker-1", started_at=0.0, output=b"1"),
            1.0,
        )
    commands = trial.execution.take_commands()
    assert [task.node_id for task in commands.tasks] == ["join"]
    assert list(commands.nodes) == ["a", "b", "join"]
    assert list(commands.outputs) == ["a", "b"]
    assert [line.seq for line in commands.history] == [4, 5, 6, 7, 8]


def test_the_last_event_of_a_batch_says_whether_there_is_more():
    trial = Trial(node("a"), *[node(f"c{i}", "a") for i in range(5)])
    with commit_weight(3):
        handling.handle(
            trial.execution,
            ev.TaskSucceeded(ID, "a", 1, 1, "worker-1", started_at=0.0, output=b"1"),
            1.0,
        )
        assert trial.execution.commands.has_more
        handling.handle(trial.execution, ev.CancelRequested(ID), 2.0)
    commands = trial.execution.take_commands()
    assert not commands.has_more
    assert commands.finished


def test_what_was_taken_for_a_commit_is_not_handed_over_again():
    trial = Trial(node("a"))
    trial.started("a")
    assert trial.last.history
    commands = trial.go_on()
    assert not commands.history
    assert not commands.nodes
    assert commands.record is None
