"""Clean-up nodes run when an execution is cancelled or runs out of time: once, in limited time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.replica import commit_weight
from tests.engine.trial import Trial, node, once


def with_clean_up(**workflow: Any) -> Trial:
    return Trial(
        node("a"),
        node("b", "a"),
        node("clean", "b", trigger_rule="all_done"),
        node("after", "clean"),
        **workflow,
    )


def end_by_cancel(trial: Trial) -> None:
    trial.cancel(at=5.0)


def end_by_timeout(trial: Trial) -> None:
    trial.timer(at=60.0)


ENDS = pytest.mark.parametrize(
    ("end_early", "pending", "state"),
    [(end_by_cancel, "CANCELLED", "CANCELLED"), (end_by_timeout, "SKIPPED", "FAILED")],
)


@ENDS
def test_clean_up_runs_and_everything_else_ends_at_once(end_early, pending, state):
    trial = with_clean_up(timeout_seconds=60)
    end_early(trial)
    assert trial.state == "RUNNING"
    assert trial.states == {"a": "CANCELLED", "b": pending, "clean": "QUEUED", "after": pending}
    assert [(stop.node_id, stop.attempt) for stop in trial.stops] == [("a", 1)]
    trial.succeed("clean", at=61.0)
    assert trial.state == state
    assert trial.states["clean"] == "COMPLETED"
    assert trial.last.finished


@ENDS
def test_clean_up_has_a_time_limit_of_its_own(end_early, pending, state):
    trial = with_clean_up(timeout_seconds=60, cleanup_timeout_seconds=100)
    end_early(trial)
    ended_at = trial.now
    trial.timer(at=ended_at + 99.0)
    assert trial.state == "RUNNING"
    trial.timer(at=ended_at + 100.0)
    assert trial.state == state
    assert (trial.states["clean"], trial.states["after"]) == ("CANCELLED", pending)
    assert trial.execution.runs["clean"].reason == "cleanup_timeout"


@ENDS
def test_a_new_owner_goes_on_with_the_clean_up(end_early, pending, state):
    trial = with_clean_up(timeout_seconds=60, cleanup_timeout_seconds=100)
    end_early(trial)
    ended_at = trial.now
    trial.lose_the_owner()
    assert trial.dispatches == [("a", 1), ("clean", 1)]
    trial.timer(at=ended_at + 100.0)
    assert trial.state == state
    assert trial.states["after"] == pending


@ENDS
def test_another_cancel_changes_nothing_while_clean_up_runs(end_early, pending, state):
    trial = with_clean_up(timeout_seconds=60)
    end_early(trial)
    assert not trial.cancel(reason="again").history
    trial.succeed("clean")
    assert trial.state == state
    assert trial.states["b"] == pending


def test_a_cancel_does_not_stop_clean_up_that_runs_after_a_failure():
    trial = Trial(once("bad"), node("clean", "bad", trigger_rule="all_done"))
    trial.fail("bad")
    trial.cancel()
    assert (trial.state, trial.states["clean"]) == ("RUNNING", "QUEUED")
    assert trial.dispatches == [("bad", 1), ("clean", 1)]
    trial.succeed("clean")
    assert trial.state == "CANCELLED"


def test_a_paused_execution_that_is_cancelled_goes_on_with_its_clean_up():
    trial = with_clean_up()
    trial.pause()
    trial.cancel(at=5.0)
    assert (trial.state, trial.states["clean"]) == ("RUNNING", "QUEUED")
    assert trial.last.paused is False
    trial.pause()
    assert trial.state == "RUNNING"


def test_a_paused_execution_that_runs_out_of_time_goes_on_with_its_clean_up():
    trial = with_clean_up(timeout_seconds=60)
    trial.pause()
    trial.timer(at=60.0)
    assert (trial.state, trial.states["clean"]) == ("RUNNING", "QUEUED")
    trial.succeed("clean")
    assert trial.state == "FAILED"
    assert trial.execution.record.error is not None
    assert trial.execution.record.error.category == "timeout"


def test_an_execution_that_never_began_has_nothing_to_clean_up():
    trial = Trial(node("a"), node("clean", "a", trigger_rule="all_done"), start=False)
    trial.cancel()
    assert trial.state == "CANCELLED"
    assert trial.states == {"a": "CANCELLED", "clean": "CANCELLED"}


def test_a_node_that_waits_for_failures_does_not_run_when_nothing_failed():
    trial = Trial(node("a"), node("alarm", "a", trigger_rule="one_failed"))
    trial.cancel()
    assert trial.state == "CANCELLED"
    assert trial.states == {"a": "CANCELLED", "alarm": "CANCELLED"}


def test_a_clean_up_that_fails_stays_visible_in_the_error():
    trial = Trial(node("a"), once("clean", "a", trigger_rule="all_done"))
    trial.cancel()
    trial.fail("clean")
    assert trial.state == "CANCELLED"
    assert trial.execution.record.error_node_id == "clean"


def test_what_an_earlier_execution_has_completed_is_recorded_before_the_clean_up():
    names = [f"n{i}" for i in range(5)]
    with commit_weight(2):
        trial = Trial(
            *(node(name) for name in names),
            node("clean", "n0", trigger_rule="all_done"),
            reused=dict.fromkeys(names, b"1"),
        )
        assert set(trial.states.values()) == {"COMPLETED", "PENDING"}
        trial.cancel()
    assert [trial.states[name] for name in names] == ["COMPLETED"] * 5


def test_clean_up_that_has_ended_does_not_keep_a_cancelled_execution_going():
    trial = Trial(node("a"), node("clean", "a", trigger_rule="all_done"), node("b", "clean"))
    trial.succeed("a")
    trial.succeed("clean")
    trial.pause()
    trial.cancel()
    last = trial.last.history[-1]
    assert (last.before, last.after) == ("PAUSED", "CANCELLED")
    assert trial.execution.record.ending is None
