"""Deadlines: of an attempt, in a queue, of the whole execution."""

from __future__ import annotations

import pytest

from penstock.engine import events as ev
from penstock.engine.deadlines import BACKSTOP_SECONDS
from tests.engine.trial import ID, Trial, node, once


def test_the_execution_times_out_with_everything_in_it():
    trial = Trial(node("running"), node("retrying"), node("waits", "running"), timeout_seconds=60)
    trial.started("running", at=1.0)
    trial.fail("retrying", at=59.9, retryable=True)
    trial.timer(at=60.0)
    assert trial.state == "FAILED"
    assert trial.states == {"running": "CANCELLED", "retrying": "CANCELLED", "waits": "SKIPPED"}
    assert [stop.node_id for stop in trial.stops] == ["running"]
    error = trial.execution.record.error
    assert error is not None
    assert (error.category, error.message) == ("timeout", "the execution didn't end within 60 s")


def test_the_execution_has_a_deadline_from_its_start_and_a_timer_before_it_changes_nothing():
    trial = Trial(node("a"), timeout_seconds=60, start=False)
    trial.begin(at=100.0)
    assert trial.wake_at == 160.0
    trial.timer(at=159.9)
    assert trial.state == "RUNNING"
    assert trial.wake_at == 160.0


def test_every_deadline_is_the_same_for_a_new_owner():
    trial = Trial(
        node("running", timeout_seconds=20, retry={"jitter": 0}),
        node("queued", queue_timeout_seconds=50),
        node("retrying", retry={"initial_delay_seconds": 25, "jitter": 0}),
        timeout_seconds=60,
        start=False,
    )
    trial.begin(at=100.0)
    trial.started("running", at=101.0)
    trial.fail("retrying", at=102.0, retryable=True)
    for at, due in ((103.0, 127.0), (127.0, 131.0), (131.0, 132.0), (132.0, 150.0)):
        trial.lose_the_owner()
        trial.timer(at=at)
        assert trial.wake_at == due
    trial.started("queued", at=149.0)
    trial.lose_the_owner()
    trial.timer(at=160.0)
    assert trial.state == "FAILED"
    assert trial.execution.record.error is not None
    assert trial.execution.record.error.category == "timeout"


def test_clean_up_after_a_failure_has_its_own_time_limit_once_the_execution_is_out_of_time():
    trial = Trial(
        once("bad"),
        node("clean", "bad", trigger_rule="all_done"),
        timeout_seconds=10,
        cleanup_timeout_seconds=20,
    )
    trial.fail("bad", at=5.0)
    trial.timer(at=10.0)
    assert trial.states == {"bad": "FAILED", "clean": "QUEUED"}
    trial.timer(at=30.0)
    assert trial.state == "FAILED"
    assert trial.states == {"bad": "FAILED", "clean": "CANCELLED"}
    assert trial.execution.record.error is not None
    assert trial.execution.record.error.category == "timeout"


def test_a_task_that_nobody_takes_in_time_fails_without_a_retry():
    trial = Trial(node("a", queue_timeout_seconds=30, retry={"max_attempts": 5}))
    assert trial.wake_at == 30.0
    trial.timer(at=30.0)
    assert trial.states == {"a": "FAILED"}
    assert trial.run("a").reason == "queue_timeout"
    assert [(stop.node_id, stop.attempt) for stop in trial.stops] == [("a", 1)]
    assert [dead_letter.node_id for dead_letter in trial.dead_letters] == ["a"]


def test_a_task_that_was_taken_does_not_time_out_in_the_queue():
    trial = Trial(node("a", queue_timeout_seconds=30))
    trial.started("a", at=29.0)
    trial.timer(at=30.0)
    assert trial.states == {"a": "RUNNING"}


def test_each_attempt_waits_in_the_queue_for_itself():
    trial = Trial(node("a", queue_timeout_seconds=30, retry={"max_attempts": 2}))
    trial.lose("a", at=29.0)
    trial.timer(at=30.0)
    assert trial.states == {"a": "QUEUED"}
    assert trial.wake_at == 59.0
    trial.timer(at=59.0)
    assert trial.states == {"a": "FAILED"}


@pytest.mark.parametrize("late", [0.0, 100.0])
def test_what_follows_from_a_deadline_comes_before_the_next_one(late):
    wait = node("wait", handler="wait", config={"seconds": 10})
    trial = Trial(wait, node("done", "wait", handler="output"), timeout_seconds=11)
    trial.timer(at=11 + late)
    assert trial.execution.record.state == "COMPLETED"


@pytest.mark.parametrize("late", [0.0, 100.0])
def test_an_item_that_ends_at_a_deadline_makes_room_before_the_next_one(late):
    """However late the timer is: the second item fails, and the third one is open by then."""
    trial = Trial(
        node(
            "each",
            handler="wait",
            for_each=[1, 50, 50],
            max_parallel=2,
            item_timeout_seconds=4,
            on_item_failure="fail_fast",
            config={"seconds": "{{ item }}"},
        )
    )
    trial.timer(at=4 + late)
    assert trial.states == {
        "each": "FAILED",
        "each[0]": "COMPLETED",
        "each[1]": "FAILED",
        "each[2]": "CANCELLED",
    }


def test_the_execution_runs_out_of_time_although_much_is_left_to_start():
    trial = Trial(node("a"), *[node(f"b{n}", "a") for n in range(3000)], timeout_seconds=60)
    trial.succeed("a", at=59)
    assert trial.last.has_more
    trial.timer(at=60)
    assert trial.execution.record.state == "FAILED"


def test_a_timer_that_fires_again_waits_for_what_follows_from_the_deadline_before():
    wait = node("wait", handler="wait", config={"seconds": 10})
    trial = Trial(wait, *[node(f"b{n}", "wait") for n in range(1500)], timeout_seconds=60)
    trial.timer(at=60)
    assert trial.last.has_more
    trial.timer(at=60)
    assert trial.execution.record.state == "FAILED"
    assert len(trial.tasks) == 1500


def test_without_a_queue_timeout_a_task_may_wait_for_ever():
    trial = Trial(node("a"))
    assert trial.wake_at is None
    trial.timer(at=1e9)
    assert trial.states == {"a": "QUEUED"}


def test_an_attempt_whose_worker_did_not_stop_it_is_ended_by_the_owner_and_retried():
    trial = Trial(node("a", timeout_seconds=20, retry={"max_attempts": 2, "jitter": 0}))
    trial.started("a", at=5.0)
    due = 25.0 + BACKSTOP_SECONDS
    assert trial.wake_at == due
    trial.timer(at=due - 0.1)
    assert trial.states == {"a": "RUNNING"}
    trial.timer(at=due)
    assert trial.states == {"a": "RETRYING"}
    assert [(stop.node_id, stop.attempt) for stop in trial.stops] == [("a", 1)]
    trial.timer(at=due + 1.0)
    assert trial.dispatches == [("a", 1), ("a", 2)]
    trial.started("a", at=due + 1.0)
    trial.timer(at=due + 21.0 + BACKSTOP_SECONDS)
    assert trial.states == {"a": "FAILED"}
    assert [failure.error.category for failure in trial.run("a").failures] == ["timeout", "timeout"]


def test_an_attempt_has_five_minutes_by_default():
    trial = Trial(node("a"))
    trial.started("a", at=1.0)
    assert trial.tasks[0].timeout_seconds == 300.0
    assert trial.wake_at == 301.0 + BACKSTOP_SECONDS


def test_the_deadline_of_an_old_attempt_does_not_touch_the_next():
    trial = Trial(node("a", timeout_seconds=20))
    trial.started("a", at=1.0)
    trial.lose("a", at=2.0)
    trial.started("a", at=3.0)
    trial.timer(at=21.0 + BACKSTOP_SECONDS)
    assert trial.states == {"a": "RUNNING"}
    assert trial.run("a").attempt == 2
    assert trial.wake_at == 23.0 + BACKSTOP_SECONDS


def test_a_start_is_never_recorded_before_the_dispatch_or_after_now():
    """A worker's clock may be wrong by an hour."""
    trial = Trial(node("early"), node("late"), start=False)
    trial.begin(at=10_000.0)
    for name, at in (("early", 6_400.0), ("late", 13_600.0)):
        trial.send(ev.TaskStarted(ID, name, 1, 1, "worker-1", started_at=at), 10_005.0)
    assert trial.run("early").started_at == 10_000.0
    assert trial.run("late").started_at == 10_005.0


def test_the_store_keeps_one_timer_and_it_is_the_earliest():
    trial = Trial(
        node("a", queue_timeout_seconds=30),
        node("b", queue_timeout_seconds=10),
        timeout_seconds=100,
    )
    assert trial.wake_at == 10.0
    trial.started("b", at=9.0)
    trial.timer(at=10.0)
    assert trial.wake_at == 30.0
    trial.succeed("a", at=11.0)
    trial.timer(at=30.0)
    assert trial.wake_at == 100.0


def test_a_timer_that_fired_for_the_last_time_is_taken_off():
    trial = Trial(node("a", queue_timeout_seconds=5), node("b"))
    trial.succeed("a", at=1.0)
    commands = trial.timer(at=5.0)
    assert commands.timer_changed
    assert commands.wake_at is None


def test_timers_that_are_due_together_all_have_their_effect():
    trial = Trial(
        node("a", retry={"max_attempts": 2, "jitter": 0}),
        node("b", queue_timeout_seconds=1),
        on_failure="continue",
    )
    trial.fail("a", at=0.5, retryable=True)
    trial.timer(at=50.0)
    assert trial.states == {"a": "QUEUED", "b": "FAILED"}


def test_a_timer_that_fires_for_nothing_changes_nothing():
    trial = Trial(node("a"))
    before = trial.states
    commands = trial.timer(at=5.0)
    assert trial.states == before
    assert not commands.history
    assert not commands.tasks
