"""Every attempt of a node with its times, whatever became of it."""

from __future__ import annotations

from typing import Any

from penstock.views.attempts import NodeAttempt, attempts_of
from penstock.views.errors import Error
from tests.engine.test_rebuilding import rebuilt
from tests.engine.trial import Trial, decision, node, once

START = "1970-01-01T00:00:0"


def attempts(trial: Trial, name: str) -> list[NodeAttempt]:
    lines = [line for line in trial.committed.history if line.node_id == name]
    return attempts_of(trial.execution.runs.get(name), lines)


def seen(trial: Trial, name: str) -> list[tuple[Any, ...]]:
    """Number and state, then the seconds at which it was queued, started and finished."""
    return [
        (
            attempt.attempt,
            attempt.state,
            _second(attempt.queued_at),
            _second(attempt.started_at),
            _second(attempt.finished_at),
        )
        for attempt in attempts(trial, name)
    ]


def _second(at: str | None) -> float | None:
    return None if at is None else float(at[17:-1])


def test_a_node_that_has_not_begun_has_none() -> None:
    trial = Trial(node("a"), node("b", "a"))
    assert seen(trial, "b") == []
    assert seen(trial, "a") == [(1, "QUEUED", 0.0, None, None)]


def test_an_attempt_is_followed_from_the_queue_to_its_end() -> None:
    trial = Trial(node("a"))
    trial.started("a", at=1.0)
    assert seen(trial, "a") == [(1, "RUNNING", 0.0, 1.0, None)]
    trial.succeed("a", at=3.0)
    assert seen(trial, "a") == [(1, "COMPLETED", 0.0, 1.0, 3.0)]
    (attempt,) = attempts(trial, "a")
    assert (attempt.worker_id, attempt.error, attempt.at) == ("worker-1", None, None)


def test_attempts_that_were_followed_by_another_have_failed() -> None:
    trial = Trial(node("a", retry={"max_attempts": 3, "jitter_seconds": 0}))
    trial.fail("a", at=1.0, retryable=True)
    assert seen(trial, "a") == [(1, "FAILED", 0.0, 0.0, 1.0)]
    trial.timer(at=2.0)
    trial.lose("a", at=3.0)
    trial.started("a", at=4.0)
    trial.succeed("a", at=5.0)
    assert seen(trial, "a") == [
        (1, "FAILED", 0.0, 0.0, 1.0),
        (2, "FAILED", 2.0, None, 3.0),
        (3, "COMPLETED", 3.0, 4.0, 5.0),
    ]
    first, second, third = attempts(trial, "a")
    assert first.error == Error("handler", "a failed")
    assert second.error is not None
    assert second.error.category == "lost"
    assert (first.at, second.at, third.at) == (f"{START}1.000Z", f"{START}3.000Z", None)


def test_the_last_of_a_node_that_failed_has_failed() -> None:
    trial = Trial(once("a"))
    trial.fail("a", at=1.0)
    assert seen(trial, "a") == [(1, "FAILED", 0.0, 0.0, 1.0)]


def test_a_cancelled_attempt_says_so_and_a_cancelled_wait_leaves_the_failure() -> None:
    trial = Trial(node("a"), node("b"))
    trial.started("a", at=1.0)
    trial.fail("b", at=1.5, retryable=True)
    trial.cancel(at=2.0)
    assert seen(trial, "a") == [(1, "CANCELLED", 0.0, 1.0, 2.0)]
    assert seen(trial, "b") == [(1, "FAILED", 0.0, 1.0, 1.5)]
    assert trial.states == {"a": "CANCELLED", "b": "CANCELLED"}


def test_what_has_no_task_has_no_attempts_but_a_failure_before_the_first_is_shown() -> None:
    skipped = node("skipped", "yes", condition="yes.result == false")
    bad = once("bad", "yes", config={"n": "{{ yes.nothing }}"}, optional=True)
    trial = Trial(decision("yes", gives=True), skipped, bad, node("kept"), reused={"kept": b"1"})
    assert trial.state == "COMPLETED"
    assert [seen(trial, name) for name in ("yes", "skipped", "kept")] == [[], [], []]
    (attempt,) = attempts(trial, "bad")
    assert (attempt.attempt, attempt.state, attempt.queued_at) == (0, "FAILED", None)
    assert attempt.error is not None
    assert attempt.error.category == "config"


def test_an_attempt_that_was_handed_out_again_after_a_loss_is_one_attempt() -> None:
    trial = Trial(once("a"))
    trial.started("a", at=1.0)
    trial.now = 5.0
    rebuilt(trial)
    assert seen(trial, "a") == [(1, "QUEUED", 5.0, None, None)]
    trial.started("a", at=6.0)
    trial.succeed("a", at=7.0)
    assert seen(trial, "a") == [(1, "COMPLETED", 5.0, 6.0, 7.0)]
