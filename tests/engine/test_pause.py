"""Pausing holds dispatch and retries; outcomes are recorded and the execution's deadline runs."""

from __future__ import annotations

import pytest

from penstock.engine.execution import BACKSTOP_SECONDS
from tests.engine.trial import Trial, decision, node, once

with_and_without_a_crash = pytest.mark.parametrize("crash", [False, True])


def perhaps_lose_the_owner(trial: Trial, *, crash: bool) -> None:
    if crash:
        trial.lose_the_owner()


def test_a_pause_tells_the_store_to_hand_out_nothing_and_a_resume_to_go_on():
    trial = Trial(node("a"))
    assert trial.pause().paused is True
    assert trial.state == "PAUSED"
    assert trial.resume().paused is False
    assert trial.state == "RUNNING"


@with_and_without_a_crash
def test_outcomes_are_recorded_while_paused_but_nothing_is_dispatched(crash):
    trial = Trial(node("a"), node("b", "a"))
    trial.pause()
    trial.succeed("a", {"x": 1})
    perhaps_lose_the_owner(trial, crash=crash)
    assert trial.states == {"a": "COMPLETED", "b": "PENDING"}
    assert trial.dispatches == [("a", 1)]
    trial.resume()
    assert trial.states == {"a": "COMPLETED", "b": "QUEUED"}


@with_and_without_a_crash
def test_data_nodes_and_conditions_wait_too(crash):
    trial = Trial(node("a"), decision("d", "a", gives=True), node("b", "d", condition="d.result"))
    trial.pause()
    trial.succeed("a")
    perhaps_lose_the_owner(trial, crash=crash)
    assert trial.states == {"a": "COMPLETED", "d": "PENDING", "b": "PENDING"}
    trial.resume()
    assert trial.states == {"a": "COMPLETED", "d": "COMPLETED", "b": "QUEUED"}


@with_and_without_a_crash
def test_a_retry_that_comes_due_while_paused_waits_for_the_resume(crash):
    trial = Trial(node("a", retry={"jitter": 0}))
    trial.fail("a", at=1.0, retryable=True)
    trial.pause()
    perhaps_lose_the_owner(trial, crash=crash)
    trial.timer(at=2.0)
    trial.timer(at=500.0)
    assert trial.states == {"a": "RETRYING"}
    perhaps_lose_the_owner(trial, crash=crash)
    trial.resume(at=501.0)
    assert trial.states == {"a": "QUEUED"}
    assert trial.dispatches == [("a", 1), ("a", 2)]


@with_and_without_a_crash
def test_a_retry_that_is_not_due_yet_waits_on_after_the_resume(crash):
    trial = Trial(node("a", retry={"initial_delay_seconds": 20, "jitter": 0}))
    trial.fail("a", at=1.0, retryable=True)
    trial.pause(at=2.0)
    perhaps_lose_the_owner(trial, crash=crash)
    trial.resume(at=3.0)
    assert trial.states == {"a": "RETRYING"}
    assert trial.wake_at == 21.0


def test_a_retry_that_waits_for_the_resume_does_not_make_the_timer_fire_for_ever():
    trial = Trial(node("a", retry={"jitter": 0}), timeout_seconds=1000)
    trial.fail("a", at=1.0, retryable=True)
    trial.pause()
    trial.timer(at=2.0)
    assert trial.wake_at == 1000.0
    trial.lose_the_owner()
    trial.timer(at=3.0)
    assert trial.wake_at == 1000.0


@with_and_without_a_crash
def test_a_task_lost_while_paused_is_handed_out_after_the_resume(crash):
    trial = Trial(node("a"))
    trial.pause()
    trial.lose("a", at=5.0)
    perhaps_lose_the_owner(trial, crash=crash)
    assert trial.states == {"a": "RETRYING"}
    assert trial.dispatches == [("a", 1)]
    trial.resume(at=6.0)
    assert trial.dispatches == [("a", 1), ("a", 2)]


@with_and_without_a_crash
def test_the_deadline_of_the_execution_runs_while_paused(crash):
    trial = Trial(node("a"), timeout_seconds=60)
    trial.pause(at=1.0)
    perhaps_lose_the_owner(trial, crash=crash)
    trial.timer(at=60.0)
    assert trial.state == "FAILED"
    assert trial.states == {"a": "CANCELLED"}


def test_an_attempt_that_runs_while_paused_may_time_out():
    trial = Trial(node("a", timeout_seconds=20))
    trial.started("a", at=1.0)
    trial.pause()
    trial.timer(at=21.0 + BACKSTOP_SECONDS)
    assert trial.states == {"a": "RETRYING"}


def test_a_pause_does_not_use_up_the_time_that_a_task_may_wait_in_its_queue():
    """No worker may take it while the execution is paused, so nobody can be late."""
    trial = Trial(node("a", queue_timeout_seconds=30))
    trial.pause(at=1.0)
    trial.timer(at=30.0)
    assert trial.states == {"a": "QUEUED"}
    trial.resume(at=100.0)
    assert trial.states == {"a": "QUEUED"}
    trial.timer(at=128.0)
    assert trial.states == {"a": "QUEUED"}
    trial.timer(at=131.0)
    assert trial.states == {"a": "FAILED"}


def test_skips_that_need_no_work_are_decided_while_paused():
    trial = Trial(once("a"), node("b", "a"), node("c", "b"), node("other"), on_failure="continue")
    trial.pause()
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "SKIPPED", "c": "SKIPPED", "other": "QUEUED"}


def test_a_failure_while_paused_ends_the_execution_at_once_unless_clean_up_waits():
    trial = Trial(once("a"), node("b"))
    trial.pause()
    trial.fail("a")
    assert trial.state == "FAILED"

    trial = Trial(once("a"), node("b"), node("clean", "a", trigger_rule="all_done"))
    trial.pause()
    trial.fail("a")
    assert trial.state == "PAUSED"
    assert trial.states == {"a": "FAILED", "b": "CANCELLED", "clean": "PENDING"}
    trial.resume()
    assert trial.states["clean"] == "QUEUED"


def test_the_last_outcome_completes_a_paused_execution():
    trial = Trial(node("a"))
    trial.pause()
    trial.succeed("a")
    assert trial.state == "COMPLETED"


def test_pausing_twice_or_resuming_what_runs_changes_nothing():
    trial = Trial(node("a"))
    assert not trial.resume().history
    trial.pause()
    commands = trial.pause()
    assert not commands.history
    assert commands.paused is None


def test_what_has_not_started_is_not_paused():
    trial = Trial(node("a"), start=False)
    trial.pause()
    assert trial.state == "PENDING"
    trial.begin()
    assert trial.states == {"a": "QUEUED"}
