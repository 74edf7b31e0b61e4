"""A task that comes back before anything ran is handed out once more."""

from __future__ import annotations

import pytest

from penstock.engine import events as ev
from tests.engine.replica import commit_weight
from tests.engine.trial import ID, Trial, node


def newly_handed_out(trial: Trial, before: int) -> list[str]:
    return [task.node_id for task in trial.tasks[before:]]


def test_a_returned_task_is_handed_out_again_and_uses_up_no_attempt():
    trial = Trial(node("a", retry={"max_attempts": 1}))
    trial.hand_back("a")
    assert newly_handed_out(trial, 1) == ["a"]
    assert trial.states == {"a": "QUEUED"}
    assert trial.run("a").failures == []
    trial.succeed("a")
    assert trial.state == "COMPLETED"


def test_a_task_returned_while_paused_is_handed_out_after_the_resume():
    trial = Trial(node("a"))
    trial.pause()
    trial.hand_back("a")
    assert newly_handed_out(trial, 1) == []
    trial.resume()
    assert newly_handed_out(trial, 1) == ["a"]


def test_a_task_returned_while_paused_is_not_forgotten_with_its_owner():
    trial = Trial(node("a"))
    trial.pause()
    trial.hand_back("a")
    trial.lose_the_owner()
    trial.resume()
    if trial.wake_at is not None:
        trial.timer(at=max(trial.now, trial.wake_at))
    assert newly_handed_out(trial, 1) == ["a"]


def test_a_return_that_is_reported_twice_hands_the_task_out_once_more():
    """Every message may come again (G2): two workers must not get the same attempt."""
    trial = Trial(node("a"))
    trial.hand_back("a", attempt=1)
    trial.hand_back("a", attempt=1)
    assert newly_handed_out(trial, 1) == ["a"]


def test_a_task_that_one_worker_after_the_other_returns_is_handed_out_each_time():
    """Workers that are replaced one by one all give back what they have just taken."""
    trial = Trial(node("a"))
    for returns in range(1, 4):
        trial.send(ev.TaskReturned(ID, "a", 1, trial.run("a").attempt, f"worker-{returns}"))
        assert len(newly_handed_out(trial, 1)) == returns
    trial.succeed("a")
    assert trial.state == "COMPLETED"


def test_a_task_returned_in_a_full_commit_is_not_forgotten_with_its_owner():
    trial = Trial(node("a"), node("b"), *[node(f"c{i}", "b") for i in range(5)])
    with commit_weight(3):
        trial.succeed("b")
        assert trial.last.has_more
        trial.hand_back("a")
        assert trial.last.has_more
        trial.lose_the_owner()
        while trial.last.has_more:
            trial.go_on()
        trial.timer(at=trial.now)
    assert newly_handed_out(trial, 2).count("a") == 1


def test_a_task_that_has_started_is_not_returned():
    trial = Trial(node("a"))
    trial.started("a")
    trial.hand_back("a")
    assert trial.states == {"a": "RUNNING"}
    assert newly_handed_out(trial, 1) == []


@pytest.mark.parametrize("about", [{"attempt": 0}, {"attempt": 2}, {"generation": 2}])
def test_the_return_of_another_attempt_changes_nothing(about):
    trial = Trial(node("a"))
    trial.hand_back("a", **about)
    assert newly_handed_out(trial, 1) == []


def test_the_return_of_a_task_that_has_ended_changes_nothing():
    trial = Trial(node("a"), node("b"))
    trial.succeed("a")
    trial.hand_back("a")
    assert newly_handed_out(trial, 2) == []
