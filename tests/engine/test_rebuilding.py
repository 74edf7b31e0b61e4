"""After a loss of the hot store an execution goes on from its checkpoint, in a new generation."""

from __future__ import annotations

import pytest

from penstock.engine import transitions
from penstock.engine.commands import NodeRun
from penstock.engine.states import NODE_TRANSITIONS, NodeState
from penstock.errors import InvalidTransition
from tests.engine.replica import commit_weight
from tests.engine.trial import Trial, node, once


def rebuilt(trial: Trial, generation: int = 2) -> list[tuple[str, int, int]]:
    """The checkpoint is what was committed.

    Answers what is handed out then, with generation and attempt.
    """
    before = len(trial.tasks)
    trial.committed.rebuild(generation, trial.now)
    trial.lose_the_owner()
    while trial.last.has_more:
        trial.go_on()
    return [(task.node_id, task.generation, task.attempt) for task in trial.tasks[before:]]


def test_what_was_queued_and_what_ran_is_handed_out_again_with_the_same_attempt():
    trial = Trial(once("a"), once("b"), once("c"))
    trial.started("b")
    trial.succeed("c")
    assert rebuilt(trial) == [("a", 2, 1), ("b", 2, 1)]
    assert trial.states == {"a": "QUEUED", "b": "QUEUED", "c": "COMPLETED"}
    assert trial.run("b").failures == []
    assert trial.run("b").worker_id is None


def test_a_node_that_ran_goes_back_by_the_table_and_its_history_says_why():
    trial = Trial(node("a"))
    trial.started("a")
    rebuilt(trial)
    lines = [
        (line.before, line.after, line.attempt, line.reason)
        for line in trial.committed.history[-2:]
    ]
    assert lines == [("RUNNING", "RETRYING", 1, "rebuilt"), ("RETRYING", "QUEUED", 1, "rebuilt")]


def test_a_report_from_before_the_loss_has_no_effect_and_one_of_the_new_generation_has():
    trial = Trial(node("a"))
    rebuilt(trial)
    trial.succeed("a", generation=1)
    assert trial.states == {"a": "QUEUED"}
    trial.succeed("a")
    assert trial.state == "COMPLETED"


def test_a_retry_is_still_due_when_it_was_and_its_timer_is_set_again():
    trial = Trial(node("a", retry={"initial_delay_seconds": 5, "jitter_seconds": 0}))
    trial.fail("a", at=1.0, retryable=True)
    assert rebuilt(trial) == []
    assert trial.wake_at == 6.0
    trial.timer(at=6.0)
    assert trial.dispatches[-1] == ("a", 2)


def test_the_deadline_of_the_execution_is_set_again():
    trial = Trial(node("a"), timeout_seconds=60)
    rebuilt(trial)
    assert trial.wake_at == 60.0


def test_what_was_out_of_a_paused_execution_waits_for_the_resume():
    trial = Trial(node("a"), node("b"))
    trial.started("b")
    trial.pause()
    assert rebuilt(trial) == []
    assert trial.state == "PAUSED"
    trial.resume()
    assert sorted(task.node_id for task in trial.last.tasks) == ["a", "b"]


def test_more_than_one_commit_takes_is_handed_out_in_several():
    trial = Trial(*[node(f"n{i}") for i in range(7)])
    with commit_weight(3):
        trial.committed.rebuild(2, trial.now)
        trial.lose_the_owner()
        assert len(trial.last.tasks) == 3
        assert trial.last.has_more
        trial.lose_the_owner()
        while trial.last.has_more:
            assert len(trial.go_on().tasks) <= 3
    handed_out = [task.node_id for task in trial.tasks if task.generation == 2]
    assert sorted(handed_out) == sorted(f"n{i}" for i in range(7))


def test_waiting_in_the_queue_begins_again():
    trial = Trial(node("a", queue_timeout_seconds=10))
    trial.now = 9.0
    rebuilt(trial)
    trial.timer(at=10.0)
    assert trial.states == {"a": "QUEUED"}
    trial.timer(at=19.0)
    assert trial.states == {"a": "FAILED"}


def test_two_losses_make_two_generations():
    trial = Trial(node("a"))
    assert rebuilt(trial, 2) == [("a", 2, 1)]
    trial.started("a")
    assert rebuilt(trial, 3) == [("a", 3, 1)]


def test_what_has_ended_stays_as_it_is():
    runs = [
        NodeRun("a", NodeState.COMPLETED, 1, 1.0, 2.0, 3.0, worker_id="worker-1"),
        NodeRun("b", NodeState.SKIPPED),
    ]
    before = [str(run) for run in runs]
    record = Trial(node("a")).execution.record
    assert transitions.begin_generation(record, runs, 9, 2, 5.0) == []
    assert [str(run) for run in runs] == before


def test_the_table_decides_the_way_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(NODE_TRANSITIONS, NodeState.RUNNING, frozenset())
    record = Trial(node("a")).execution.record
    with pytest.raises(InvalidTransition):
        transitions.begin_generation(record, [NodeRun("a", NodeState.RUNNING, 1)], 1, 2, 5.0)
