"""What a failed node does to the rest: failing fast, going on, optional nodes, clean-up."""

from __future__ import annotations

import pytest

from penstock.engine import events as ev
from penstock.engine import transitions
from penstock.engine.events import TaskError
from penstock.engine.states import NODE_TRANSITIONS, NodeState
from penstock.errors import InvalidTransition
from tests.engine.trial import ID, Trial, node, once


def test_failing_fast_stops_what_runs_skips_what_waits_and_ends_the_execution_at_once():
    trial = Trial(
        once("bad"), node("running"), node("queued"), node("waits", "running"), node("child", "bad")
    )
    trial.started("running", at=1.0)
    trial.fail("bad", at=2.0)
    assert trial.states == {
        "bad": "FAILED",
        "running": "CANCELLED",
        "queued": "CANCELLED",
        "waits": "SKIPPED",
        "child": "SKIPPED",
    }
    assert {(stop.node_id, stop.attempt) for stop in trial.stops} == {("running", 1), ("queued", 1)}
    assert trial.state == "FAILED"
    assert trial.last.finished
    assert trial.run("child").reason == "upstream_failed"
    assert trial.run("waits").reason == "execution_failed"


def test_failing_fast_ends_a_node_that_waits_for_its_retry():
    trial = Trial(once("bad"), node("retrying"))
    trial.fail("retrying", at=1.0, retryable=True)
    trial.fail("bad", at=1.5)
    assert trial.states == {"bad": "FAILED", "retrying": "CANCELLED"}
    assert trial.stops == []
    trial.timer(at=10.0)
    assert trial.dispatches == [("bad", 1), ("retrying", 1)]


def test_a_failed_attempt_that_will_be_retried_fails_nothing_yet():
    trial = Trial(node("flaky"), node("other"))
    trial.fail("flaky", at=1.0, retryable=True)
    assert trial.states == {"flaky": "RETRYING", "other": "QUEUED"}
    assert trial.state == "RUNNING"


def test_going_on_lets_other_branches_finish_and_then_fails():
    trial = Trial(
        once("bad"), node("child", "bad"), node("good"), node("next", "good"), on_failure="continue"
    )
    trial.fail("bad")
    assert trial.states == {
        "bad": "FAILED",
        "child": "SKIPPED",
        "good": "QUEUED",
        "next": "PENDING",
    }
    assert trial.state == "RUNNING"
    trial.succeed("good")
    trial.succeed("next")
    assert trial.state == "FAILED"
    assert trial.stops == []


def test_the_first_error_is_the_error_of_the_execution():
    trial = Trial(once("first"), once("second"), on_failure="continue")
    trial.fail("second", at=1.0)
    trial.fail("first", at=2.0)
    record = trial.execution.record
    assert record.error_node_id == "second"
    assert record.error is not None
    assert record.error.message == "second failed"


@pytest.mark.parametrize("on_failure", ["fail_fast", "continue"])
def test_an_optional_node_that_fails_stays_visible_but_counts_as_success(on_failure):
    trial = Trial(
        once("extra", optional=True),
        node("main"),
        node("join", "extra", "main"),
        on_failure=on_failure,
    )
    trial.fail("extra")
    assert trial.states == {"extra": "FAILED", "main": "QUEUED", "join": "PENDING"}
    trial.succeed("main")
    trial.succeed("join")
    assert trial.states["extra"] == "FAILED"
    assert trial.state == "COMPLETED"
    assert trial.execution.record.error is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"optional": True}, False),
        ({"optional": True, "dead_letter": True}, True),
        ({"dead_letter": False}, False),
    ],
)
def test_an_optional_node_leaves_a_dead_letter_only_if_it_is_asked_to(fields, expected):
    trial = Trial(once("extra", **fields))
    trial.fail("extra")
    assert trial.states["extra"] == "FAILED"
    assert [letter.node_id for letter in trial.dead_letters] == (["extra"] if expected else [])


def test_an_optional_node_is_retried_before_it_fails():
    trial = Trial(node("extra", optional=True))
    trial.fail("extra", retryable=True)
    assert trial.states == {"extra": "RETRYING"}


@pytest.mark.parametrize("rule", ["all_done", "one_failed"])
def test_clean_up_still_runs_when_failing_fast_and_only_then_the_execution_is_failed(rule):
    trial = Trial(
        once("bad"),
        node("other"),
        node("never", "other"),
        node("clean", "bad", trigger_rule=rule),
        node("after", "clean"),
    )
    trial.fail("bad")
    assert trial.states == {
        "bad": "FAILED",
        "other": "CANCELLED",
        "never": "SKIPPED",
        "clean": "QUEUED",
        "after": "SKIPPED",
    }
    assert trial.state == "RUNNING"
    trial.succeed("clean")
    assert trial.state == "FAILED"


def test_clean_up_after_a_node_that_was_told_to_stop_runs_too():
    trial = Trial(
        once("bad"), node("resource"), node("release", "resource", trigger_rule="all_done")
    )
    trial.fail("bad")
    assert trial.states == {"bad": "FAILED", "resource": "CANCELLED", "release": "QUEUED"}


def test_clean_up_may_have_steps_and_retries():
    trial = Trial(
        once("bad"),
        node("clean", "bad", trigger_rule="all_done", retry={"max_attempts": 2, "jitter": 0}),
        node("notify", "clean", trigger_rule="all_done"),
    )
    trial.fail("bad", at=1.0)
    trial.fail("clean", at=2.0, retryable=True)
    assert trial.states["clean"] == "RETRYING"
    trial.timer(at=3.0)
    trial.fail("clean", at=4.0, retryable=True)
    assert trial.states == {"bad": "FAILED", "clean": "FAILED", "notify": "QUEUED"}
    trial.succeed("notify", at=5.0)
    assert trial.state == "FAILED"


def test_a_clean_up_that_runs_already_is_not_stopped_by_a_failure_elsewhere():
    trial = Trial(node("a"), node("clean", "a", trigger_rule="all_done"), once("bad"))
    trial.succeed("a")
    trial.fail("bad")
    assert trial.states == {"a": "COMPLETED", "clean": "QUEUED", "bad": "FAILED"}
    trial.succeed("clean")
    assert trial.state == "FAILED"


def test_an_alarm_for_a_branch_without_a_failure_does_not_ring():
    trial = Trial(once("bad"), node("fine"), node("alarm", "fine", trigger_rule="one_failed"))
    trial.fail("bad")
    assert trial.states == {"bad": "FAILED", "fine": "CANCELLED", "alarm": "SKIPPED"}
    assert trial.state == "FAILED"


def test_failing_fast_decides_parents_before_children_so_the_alarm_hears_of_the_failure():
    """Something before `pick` failed, whichever of its parents is looked at first."""
    trial = Trial(
        once("bad"),
        node("slow"),
        node("late", "slow"),
        node("pick", "bad", "late", trigger_rule="one_success"),
        node("alarm", "pick", trigger_rule="one_failed"),
    )
    trial.fail("bad")
    assert trial.run("pick").reason == "upstream_failed"
    assert trial.states["alarm"] == "QUEUED"


def test_a_node_that_was_told_to_stop_does_not_hurry_its_children_past_their_other_parents():
    trial = Trial(
        once("bad"),
        node("running"),
        node("child", "bad"),
        node("pick", "running", "child", trigger_rule="one_success"),
        node("alarm", "pick", trigger_rule="one_failed"),
    )
    trial.fail("bad")
    assert trial.run("child").reason == "upstream_failed"
    assert trial.run("pick").reason == "upstream_failed"
    assert trial.states["alarm"] == "QUEUED"


def test_failing_fast_while_a_large_output_is_fetched_starts_nothing():
    trial = Trial(node("big"), once("bad"), node("use", "big", config={"x": "{{ big.value }}"}))
    trial.succeed("big", ev.Blob("key", 1_000_000))
    assert trial.execution.wanted == {"big": ev.Blob("key", 1_000_000)}
    trial.fail("bad")
    assert trial.states == {"big": "COMPLETED", "bad": "FAILED", "use": "SKIPPED"}
    assert trial.state == "FAILED"
    trial.provide(big={"value": 1})
    assert trial.dispatches == [("big", 1), ("bad", 1)]


def test_clean_up_that_waits_for_a_large_output_survives_failing_fast():
    trial = Trial(
        node("big"),
        once("bad"),
        node("clean", "big", trigger_rule="all_done", config={"x": "{{ big.value }}"}),
    )
    trial.succeed("big", ev.Blob("key", 1_000_000))
    trial.fail("bad")
    assert trial.state == "RUNNING"
    trial.provide(big={"value": 7})
    assert trial.config("clean") == {"x": 7}
    trial.succeed("clean")
    assert trial.state == "FAILED"


def test_an_exception_in_the_core_fails_this_execution_and_says_so():
    trial = Trial(node("a"), node("b", "a"))
    trial.send(ev.ExecutionBroke(ID, "division by zero"))
    assert trial.state == "FAILED"
    assert trial.states == {"a": "CANCELLED", "b": "SKIPPED"}
    assert trial.execution.record.error is not None
    assert (trial.execution.record.error.category, trial.execution.record.error.message) == (
        "internal_error",
        "division by zero",
    )
    assert [stop.node_id for stop in trial.stops] == ["a"]


def test_an_exception_while_it_was_started_fails_the_execution_too():
    trial = Trial(node("a"), start=False)
    trial.send(ev.ExecutionBroke(ID, "division by zero"))
    assert trial.state == "FAILED"
    assert trial.last.finished


def test_an_execution_that_cannot_be_handled_any_more_is_failed_from_its_records_alone():
    trial = Trial(node("done"), node("running"), node("retrying"), node("waits", "running"))
    trial.succeed("done", at=1.0)
    trial.started("running", at=1.0)
    trial.fail("retrying", at=1.0, retryable=True)
    execution = trial.execution
    commands = transitions.fail_from_records(
        execution.record, execution.runs, execution.last_seq, "no plan", 2.0
    )
    trial.committed.commit(commands)
    assert commands.finished
    assert [(stop.node_id, stop.attempt) for stop in commands.stops] == [("running", 1)]
    assert trial.states | {"waits": "any"} == {
        "done": "COMPLETED",
        "running": "CANCELLED",
        "retrying": "CANCELLED",
        "waits": "any",
    }
    trial.lose_the_owner()
    assert trial.state == "FAILED"
    assert trial.execution.record.error == TaskError("internal_error", "no plan")
    assert trial.execution.record.finished_at == 2.0


def test_an_execution_that_has_ended_is_not_failed_from_its_records():
    trial = Trial(node("a"))
    trial.succeed("a")
    execution = trial.execution
    with pytest.raises(InvalidTransition):
        transitions.fail_from_records(
            execution.record, execution.runs, execution.last_seq, "late", 2.0
        )
    assert trial.states == {"a": "COMPLETED"}


def test_what_runs_is_cancelled_from_the_records_by_the_table(monkeypatch: pytest.MonkeyPatch):
    trial = Trial(node("a"))
    trial.started("a")
    execution = trial.execution
    monkeypatch.setitem(NODE_TRANSITIONS, NodeState.RUNNING, frozenset())
    with pytest.raises(InvalidTransition):
        transitions.fail_from_records(
            execution.record, execution.runs, execution.last_seq, "no plan", 2.0
        )


def test_an_error_of_the_whole_execution_names_no_node():
    trial = Trial(once("bad"), node("slow"), on_failure="continue", timeout_seconds=10)
    trial.fail("bad", at=1.0)
    trial.timer(at=10.0)
    record = trial.execution.record
    assert record.error is not None
    assert record.error.category == "timeout"
    assert record.error_node_id is None


def test_a_task_says_whether_it_is_the_last_attempt():
    trial = Trial(node("a", retry={"max_attempts": 2, "initial_delay_seconds": 0, "jitter": 0}))
    trial.fail("a", retryable=True)
    assert [task.is_last for task in trial.tasks] == [False, True]


def test_an_attempt_that_was_handed_back_is_not_counted_towards_the_last():
    trial = Trial(node("a", retry={"max_attempts": 2, "initial_delay_seconds": 0, "jitter": 0}))
    trial.lose("a", interrupted=True)
    assert [(task.attempt, task.is_last) for task in trial.tasks] == [(1, False), (2, False)]
