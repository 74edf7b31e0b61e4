"""Cancelling is immediate for the execution, in every state of it and of its nodes."""

from __future__ import annotations

import pytest

from penstock.engine import events as ev
from tests.engine.trial import Trial, node, once


def not_started() -> Trial:
    return Trial(node("a"), start=False)


def queued() -> Trial:
    return Trial(node("a"))


def running() -> Trial:
    trial = Trial(node("a"))
    trial.started("a", at=1.0)
    return trial


def retrying() -> Trial:
    trial = Trial(node("a"))
    trial.fail("a", at=1.0, retryable=True)
    return trial


def paused() -> Trial:
    trial = Trial(node("a"))
    trial.pause()
    return trial


def fetching_a_large_output() -> Trial:
    trial = Trial(node("big"), node("a", "big", config={"x": "{{ big.y }}"}))
    trial.succeed("big", ev.Blob("key", 1_000_000))
    return trial


SITUATIONS = [not_started, queued, running, retrying, paused, fetching_a_large_output]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_cancel_ends_everything_at_once_and_nothing_is_dispatched_afterwards(situation):
    trial = situation()
    dispatched = list(trial.dispatches)
    claimed = {
        (task.node_id, task.attempt)
        for task in trial.tasks
        if trial.states[task.node_id] in {"QUEUED", "RUNNING"}
    }
    trial.cancel(at=5.0)
    assert trial.state == "CANCELLED"
    assert trial.last.finished
    assert trial.states["a"] == "CANCELLED"
    assert trial.execution.record.finished_at == 5.0
    assert {(stop.node_id, stop.attempt) for stop in trial.stops} >= claimed
    trial.begin(at=6.0)
    trial.resume(at=6.0)
    trial.timer(at=1000.0)
    trial.go_on()
    assert trial.dispatches == dispatched
    assert trial.state == "CANCELLED"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_new_owner_of_a_cancelled_execution_does_nothing(situation):
    trial = situation()
    trial.cancel(at=5.0)
    dispatched = list(trial.dispatches)
    commands = trial.lose_the_owner()
    assert not commands.history
    assert commands.record is None
    assert trial.dispatches == dispatched


def test_what_has_ended_before_the_cancel_stays_as_it_was():
    trial = Trial(node("a"), once("b", optional=True), node("c", "a"), node("d", "c"))
    trial.succeed("a")
    trial.fail("b")
    trial.cancel()
    assert trial.states == {"a": "COMPLETED", "b": "FAILED", "c": "CANCELLED", "d": "CANCELLED"}


@pytest.mark.parametrize("on_failure", ["continue", "fail_fast"])
def test_a_cancel_wins_over_a_failure_that_has_not_ended_the_execution_and_keeps_its_error(
    on_failure,
):
    cleanup = node("clean", "bad", trigger_rule="all_done")
    trial = Trial(once("bad"), node("other"), node("next", "other"), cleanup, on_failure=on_failure)
    trial.fail("bad", at=1.0)
    assert trial.state == "RUNNING"
    trial.cancel(at=2.0, reason="asked by jo")
    trial.succeed("clean", at=3.0)
    assert trial.state == "CANCELLED"
    assert (trial.states["bad"], trial.states["clean"]) == ("FAILED", "COMPLETED")
    record = trial.execution.record
    assert record.error is not None
    assert (record.error.message, record.error_node_id) == ("bad failed", "bad")
    last = trial.last.history[-1]
    assert (last.node_id, last.after, last.reason) == ("", "CANCELLED", "asked by jo")
    trial.lose_the_owner()
    assert trial.state == "CANCELLED"


def test_a_cancel_that_comes_after_the_failure_has_ended_the_execution_changes_nothing():
    trial = Trial(once("bad"), node("other"), on_failure="continue")
    trial.fail("bad", at=1.0)
    trial.succeed("other", at=2.0)
    commands = trial.cancel(at=3.0)
    assert trial.state == "FAILED"
    assert not commands.history


def test_the_reason_of_the_cancel_is_in_the_history_of_every_node_that_it_ended():
    trial = Trial(node("a"), node("b", "a"))
    trial.cancel(reason="asked by jo")
    assert [(line.node_id, line.reason) for line in trial.last.history[:2]] == [
        ("a", "asked by jo"),
        ("b", "asked by jo"),
    ]


@pytest.mark.parametrize("late", ["succeed", "fail", "lose", "started", "hand_back"])
def test_an_outcome_that_comes_after_the_cancel_changes_nothing(late):
    trial = Trial(node("a"), node("b", "a"))
    trial.started("a", at=1.0)
    trial.cancel(at=2.0)
    commands = getattr(trial, late)("a", at=3.0)
    assert trial.states == {"a": "CANCELLED", "b": "CANCELLED"}
    assert not commands.history
    assert not commands.nodes
    assert not commands.outputs
    assert commands.record is None
