"""Nodes that an earlier execution of the chain has completed: recorded at the start, never run."""

from __future__ import annotations

import pytest

from penstock.engine.commands import COMMIT_WEIGHT
from penstock.engine.events import Blob
from tests.engine.replica import commit_weight
from tests.engine.trial import Trial, decision, node, once

ONE = b'{"x":1}'


def test_a_reused_node_is_recorded_in_the_first_commit_and_what_comes_after_it_starts():
    trial = Trial(node("a"), node("b", "a", config={"x": "{{ a.x }}"}), reused={"a": ONE})
    assert trial.states == {"a": "COMPLETED", "b": "QUEUED"}
    assert trial.dispatches == [("b", 1)]
    assert (trial.config("b"), trial.tasks[0].inputs) == ({"x": 1}, [("a", ONE)])
    lines = [
        (line.node_id, line.before, line.after, line.attempt, line.reason)
        for line in trial.committed.history
    ]
    assert lines[:2] == [
        ("", "PENDING", "RUNNING", 0, None),
        ("a", "PENDING", "COMPLETED", 0, "kept"),
    ]
    trial.succeed("b")
    assert trial.state == "COMPLETED"


def test_a_reused_node_counts_as_a_success_at_its_join():
    trial = Trial(node("a"), node("b"), node("join", "a", "b"), reused={"a": ONE})
    assert trial.dispatches == [("b", 1)]
    trial.succeed("b")
    assert trial.dispatches == [("b", 1), ("join", 1)]


def test_conditions_are_decided_again_from_what_was_reused():
    branch = [node("yes", "d", condition="d.result"), node("no", "d", condition="!d.result")]
    trial = Trial(
        decision("d", gives=True),
        *branch,
        node("join", "yes", "no"),
        reused={"d": b'{"result":false}'},
    )
    assert trial.states == {"d": "COMPLETED", "yes": "SKIPPED", "no": "QUEUED", "join": "PENDING"}


def test_an_execution_of_which_everything_is_reused_completes_at_once():
    trial = Trial(node("a"), node("b", "a"), reused={"a": ONE, "b": ONE})
    assert trial.state == "COMPLETED"
    assert trial.tasks == []


def test_a_reused_node_that_the_plan_does_not_have_is_ignored():
    trial = Trial(node("a"), reused={"gone": ONE})
    assert trial.states == {"a": "QUEUED"}
    assert trial.execution.record.reused == 0


def test_a_large_reused_output_stays_where_it_is_until_somebody_needs_it():
    blob = Blob("key", 3)
    trial = Trial(
        node("a"), node("b", "a"), node("c", "a", config={"x": "{{ a.x }}"}), reused={"a": blob}
    )
    assert trial.committed.load(trial.plan).outputs == {"a": blob}
    assert [(task.node_id, task.inputs) for task in trial.tasks] == [("b", [("a", blob)])]
    assert trial.execution.wanted == {"a": blob}
    trial.provide(a={"x": 1})
    assert trial.config("c") == {"x": 1}


def test_thousands_of_reused_nodes_are_split_into_commits_and_survive_a_crash_between_them():
    size = 2_500
    trial = Trial(
        *[node(f"n{i}", *([f"n{i - 1}"] if i else [])) for i in range(size)],
        node("last", f"n{size - 1}"),
        reused={f"n{i}": ONE for i in range(size)},
    )
    left: list[int] = []
    while trial.last.has_more:
        assert len(trial.last.history) == COMMIT_WEIGHT
        assert trial.wake_at == trial.now, "a crash here would leave it waiting for nothing"
        assert trial.tasks == []
        assert trial.execution.record.reused
        assert (trial.last.record is not None) == (not left), (
            "its input would be written with every commit"
        )
        left.append(len(trial.execution.reused))
        trial.lose_the_owner()
    assert left == [size - COMMIT_WEIGHT + 1, size - 2 * COMMIT_WEIGHT + 1]
    assert trial.execution.record.reused == 0
    assert trial.dispatches == [("last", 1)]


def test_nothing_is_decided_before_all_that_is_reused_is_recorded():
    """A node's start is decided as soon as a parent settles, but not before its own record."""
    with commit_weight(2):
        trial = Trial(node("a"), node("b", "a"), node("c", "b"), reused={"a": ONE, "b": ONE})
        assert trial.states == {"a": "COMPLETED", "b": "PENDING", "c": "PENDING"}
        trial.pause()
        trial.lose_the_owner()
        trial.resume()
        trial.go_on()
    assert trial.states == {"a": "COMPLETED", "b": "COMPLETED", "c": "QUEUED"}
    assert trial.dispatches == [("c", 1)]


def test_a_paused_execution_records_the_rest_of_what_it_reuses():
    with commit_weight(2):
        trial = Trial(node("a"), node("b"), node("c"), reused={"a": ONE, "b": ONE, "c": ONE})
        trial.pause()
        while trial.last.has_more:
            trial.go_on()
    assert trial.state == "COMPLETED"


@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_execution_records_the_rest_of_what_it_reuses(begun):
    with commit_weight(2):
        trial = Trial(node("a"), node("b"), node("c"), start=begun, reused={"a": ONE, "b": ONE})
        trial.cancel()
    assert trial.states == {"a": "COMPLETED", "b": "COMPLETED", "c": "CANCELLED"}
    assert (trial.state, trial.execution.record.reused, trial.tasks) == ("CANCELLED", 0, [])


def test_an_execution_that_times_out_records_the_rest_of_what_it_reuses():
    with commit_weight(2):
        trial = Trial(
            node("a"), node("b"), node("c"), reused={"a": ONE, "b": ONE}, timeout_seconds=5
        )
        trial.timer(at=5.0)
    assert trial.states == {"a": "COMPLETED", "b": "COMPLETED", "c": "SKIPPED"}


def test_nothing_is_recorded_before_the_start():
    trial = Trial(node("a"), start=False, reused={"a": ONE})
    trial.lose_the_owner()
    assert trial.states == {"a": "PENDING"}
    trial.begin()
    assert trial.states == {"a": "COMPLETED"}


def test_a_failure_later_on_leaves_what_was_reused_as_it_is():
    trial = Trial(node("a"), once("b", "a"), node("c", "b"), reused={"a": ONE})
    trial.fail("b")
    assert trial.states == {"a": "COMPLETED", "b": "FAILED", "c": "SKIPPED"}
    assert trial.output("a") == {"x": 1}
