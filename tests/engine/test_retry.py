"""How long the next attempt waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.definition.model import Retry
from penstock.engine.losses import UNCOUNTED_MAX
from penstock.engine.retry import delay_seconds
from tests.engine.trial import Trial, node

policies = st.builds(
    Retry,
    initial_delay_seconds=st.floats(0, 100),
    multiplier=st.floats(1, 1e8),
    max_delay_seconds=st.floats(0, 10_000),
    jitter_seconds=st.floats(0, 10),
)


@pytest.mark.parametrize(
    ("attempt", "least"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 16.0), (6, 30.0), (7, 30.0)]
)
def test_by_default_the_wait_doubles_from_one_second_to_thirty(attempt, least):
    assert least <= delay_seconds(Retry(), attempt, "seed") <= least + 0.5


def test_by_default_there_are_three_retries():
    assert Retry().max_attempts == 4


@given(policies, st.integers(1, 1000), st.text())
def test_the_wait_is_never_shorter_than_the_policy_nor_longer_than_its_largest_plus_jitter(
    policy, attempt, seed
):
    wait = delay_seconds(policy, attempt, seed)
    assert min(policy.initial_delay_seconds, policy.max_delay_seconds) <= wait
    assert wait <= policy.max_delay_seconds + policy.jitter_seconds


@pytest.mark.parametrize("attempt", [1, 2, 10, 66, 100, 200, 500])
def test_a_small_multiplier_goes_on_growing_until_the_largest_wait(attempt):
    policy = Retry(max_attempts=1000, multiplier=1.02, max_delay_seconds=3600.0, jitter_seconds=0.0)
    assert delay_seconds(policy, attempt, "seed") == pytest.approx(
        min(1.02 ** (attempt - 1), 3600.0)
    )


def test_a_large_multiplier_reaches_the_largest_wait_and_stays_there():
    policy = Retry(max_attempts=1000, multiplier=1e8, jitter_seconds=0.0)
    assert [delay_seconds(policy, attempt, "seed") for attempt in (1, 2, 64, 65, 1000)] == [
        1.0,
        30.0,
        30.0,
        30.0,
        30.0,
    ]


def test_without_an_initial_delay_only_the_jitter_is_waited():
    policy = Retry(initial_delay_seconds=0.0, multiplier=1e8)
    assert all(
        0.0 <= delay_seconds(policy, attempt, "seed") <= 0.5 for attempt in (1, 2, 100, 1000)
    )


def test_the_jitter_is_the_same_when_the_decision_is_made_again_and_differs_by_seed_and_attempt():
    policy = Retry(multiplier=1.0)
    assert delay_seconds(policy, 1, "e:a") == delay_seconds(policy, 1, "e:a")
    waits = {
        delay_seconds(policy, attempt, seed)
        for attempt in (1, 2, 3)
        for seed in ("e:a", "e:b", "f:a")
    }
    assert len(waits) == 9


def test_the_jitter_fills_its_range():
    waits = [delay_seconds(Retry(), 1, f"e-{i}:node") for i in range(200)]
    assert min(waits) < 1.1
    assert max(waits) > 1.4
    assert len(set(waits)) > 190


@pytest.mark.parametrize("retry_after", [0.0, 0.25, 17.0, 86_400.0])
def test_what_the_service_asked_for_is_obeyed_to_the_letter(retry_after):
    assert delay_seconds(Retry(), 3, "seed", retry_after=retry_after) == retry_after


def test_nobody_can_ask_for_a_time_in_the_past():
    assert delay_seconds(Retry(), 3, "seed", retry_after=-5.0) == 0.0


def test_a_failed_attempt_is_retried_when_its_wait_is_over_and_not_before():
    trial = Trial(node("a"))
    trial.fail("a", at=10.0, retryable=True)
    due = trial.run("a").due_at
    assert trial.states == {"a": "RETRYING"}
    assert due is not None
    assert 11.0 <= due <= 11.5
    assert trial.wake_at == due
    trial.timer(at=due - 0.01)
    assert trial.states == {"a": "RETRYING"}
    assert trial.wake_at == due
    trial.timer(at=due)
    assert trial.states == {"a": "QUEUED"}
    assert trial.dispatches == [("a", 1), ("a", 2)]


def test_a_node_waits_for_as_long_as_the_service_asked():
    trial = Trial(node("a"))
    trial.fail("a", at=10.0, retryable=True, retry_after=120.0)
    assert trial.wake_at == 130.0
    trial.timer(at=130.0)
    assert trial.dispatches == [("a", 1), ("a", 2)]


def test_two_nodes_that_fail_together_do_not_come_back_together():
    trial = Trial(node("a"), node("b"))
    trial.fail("a", at=1.0, retryable=True)
    trial.fail("b", at=1.0, retryable=True)
    assert trial.run("a").due_at != trial.run("b").due_at


def test_an_error_that_is_not_retryable_ends_the_node_at_its_first_attempt():
    trial = Trial(node("a"))
    trial.fail("a", at=1.0, retryable=False)
    assert trial.states == {"a": "FAILED"}
    assert trial.dispatches == [("a", 1)]
    assert trial.wake_at is None


def test_after_the_last_attempt_the_node_fails_and_leaves_a_dead_letter_with_every_error():
    trial = Trial(node("a", retry={"max_attempts": 3, "jitter": 0}))
    trial.fail("a", at=1.0, retryable=True)
    trial.timer(at=2.0)
    trial.lose("a", at=3.0)
    trial.fail("a", at=4.0, retryable=True)
    assert trial.states == {"a": "FAILED"}
    assert trial.state == "FAILED"
    [dead_letter] = trial.dead_letters
    assert (dead_letter.node_id, dead_letter.handler, dead_letter.at) == ("a", "noop", 4.0)
    assert [
        (failure.attempt, failure.at, failure.error.category) for failure in dead_letter.attempts
    ] == [
        (1, 1.0, "handler"),
        (2, 3.0, "lost"),
        (3, 4.0, "handler"),
    ]
    assert trial.dispatches == [("a", 1), ("a", 2), ("a", 3)]


def test_a_lost_task_runs_again_at_once_without_backoff():
    trial = Trial(node("a"))
    trial.lose("a", at=5.0)
    assert trial.states == {"a": "QUEUED"}
    assert trial.dispatches == [("a", 1), ("a", 2)]


def test_a_task_that_kills_its_workers_ends_in_the_dead_letters():
    trial = Trial(node("a", retry={"max_attempts": 3}))
    for at in (1.0, 2.0, 3.0):
        trial.lose("a", at=at)
    assert trial.states == {"a": "FAILED"}
    assert [failure.error.category for failure in trial.dead_letters[0].attempts] == ["lost"] * 3
    assert trial.dispatches == [("a", 1), ("a", 2), ("a", 3)]


def test_the_first_loss_of_a_worker_never_takes_the_last_attempt():
    trial = Trial(node("a", retry={"max_attempts": 1}))
    trial.lose("a", at=1.0)
    assert trial.states == {"a": "QUEUED"}
    assert trial.dispatches == [("a", 1), ("a", 2)]
    trial.succeed("a", at=2.0)
    assert trial.state == "COMPLETED"


def test_a_task_with_one_attempt_that_kills_its_workers_ends_in_the_dead_letters_too():
    trial = Trial(node("a", retry={"max_attempts": 1}))
    trial.lose("a", at=1.0)
    trial.lose("a", at=2.0)
    assert trial.states == {"a": "FAILED"}
    assert [failure.attempt for failure in trial.dead_letters[0].attempts] == [1, 2]


def test_after_a_loss_that_was_not_counted_the_next_failure_is_the_last():
    trial = Trial(node("a", retry={"max_attempts": 2, "jitter": 0}))
    trial.fail("a", at=1.0, retryable=True)
    trial.timer(at=2.0)
    trial.lose("a", at=3.0)
    assert trial.dispatches == [("a", 1), ("a", 2), ("a", 3)]
    trial.fail("a", at=4.0, retryable=True)
    assert trial.states == {"a": "FAILED"}


def test_an_attempt_that_a_stopping_worker_hands_back_is_not_counted():
    trial = Trial(node("a", retry={"max_attempts": 1}))
    for attempt in range(1, 6):
        trial.lose("a", at=float(attempt), interrupted=True)
    assert trial.states == {"a": "QUEUED"}
    trial.lose("a", at=6.0)
    assert trial.states == {"a": "QUEUED"}, "the first worker that died"
    trial.fail("a", at=7.0, retryable=True)
    assert [failure.error.category for failure in trial.dead_letters[0].attempts] == [
        *["interrupted"] * 5,
        "lost",
        "handler",
    ]


def test_a_handler_that_stops_its_own_worker_again_and_again_ends_in_the_dead_letters():
    trial = Trial(node("a", retry={"max_attempts": 2}))
    for attempt in range(1, 3 + UNCOUNTED_MAX):
        trial.lose("a", at=float(attempt), interrupted=True)
    assert trial.states == {"a": "FAILED"}
    assert len(trial.dispatches) == 2 + UNCOUNTED_MAX


def test_every_attempt_of_a_node_has_the_same_idempotency_key():
    trial = Trial(node("a"), node("b"))
    trial.lose("a", at=1.0)
    keys = [(task.node_id, task.attempt, task.idempotency_key) for task in trial.tasks]
    assert keys == [("a", 1, "execution-1:a"), ("b", 1, "execution-1:b"), ("a", 2, "execution-1:a")]
