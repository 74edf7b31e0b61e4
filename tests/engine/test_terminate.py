"""`terminate` ends the execution early, with a state and an output."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.trial import Trial, node, once


def terminate(name: str, *dependencies: str, state: str, **fields: Any) -> dict[str, Any]:
    config = {"state": state, **fields.pop("config", {})}
    return node(name, *dependencies, handler="terminate", config=config, **fields)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED"])
def test_running_tasks_are_stopped_and_pending_nodes_skipped(state):
    trial = Trial(
        node("a"), node("other"), node("next", "other"), terminate("end", "a", state=state)
    )
    trial.succeed("a", at=2.0)
    assert trial.state == state
    assert trial.states == {
        "a": "COMPLETED",
        "other": "CANCELLED",
        "next": "SKIPPED",
        "end": "COMPLETED",
    }
    assert trial.execution.runs["next"].reason == "terminated"
    assert [(stop.node_id, stop.attempt) for stop in trial.stops] == [("other", 1)]
    assert trial.last.finished


def test_the_error_of_a_failed_end_is_the_message_with_the_node():
    trial = Trial(
        node("a"), terminate("end", "a", state="FAILED", config={"message": "no {{ a.what }}"})
    )
    trial.succeed("a", {"what": "paper"})
    record = trial.execution.record
    assert record.error is not None
    assert (record.error.category, record.error.message) == ("terminated", "no paper")
    assert record.error_node_id == "end"


def test_its_output_is_recorded_and_named_as_the_execution_s():
    trial = Trial(
        node("a"),
        terminate("end", "a", state="COMPLETED", config={"output": {"x": "{{ a.n }}"}}),
        node("later", "end"),
    )
    trial.succeed("a", {"n": 7})
    assert trial.execution.outputs["end"] == b'{"x":7}'
    assert trial.execution.record.ending is not None
    assert trial.execution.record.ending.node_id == "end"


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED"])
def test_clean_up_runs_first(state):
    trial = Trial(
        node("a"),
        node("other"),
        terminate("end", "a", state=state),
        node("clean", "other", trigger_rule="all_done"),
    )
    trial.succeed("a")
    assert (trial.state, trial.states["clean"]) == ("RUNNING", "QUEUED")
    trial.lose_the_owner()
    trial.succeed("clean")
    assert trial.state == state


def test_clean_up_that_fails_fails_an_execution_that_was_to_complete():
    trial = Trial(
        node("a"),
        terminate("end", "a", state="COMPLETED"),
        once("clean", "a", trigger_rule="all_done"),
        node("other"),
    )
    trial.succeed("a")
    trial.fail("clean")
    assert trial.state == "FAILED"
    assert trial.execution.record.error_node_id == "clean"


def test_it_may_say_that_a_failure_does_not_count():
    trial = Trial(once("a"), terminate("end", "a", state="COMPLETED", trigger_rule="one_failed"))
    trial.fail("a")
    assert trial.state == "COMPLETED"
    assert trial.execution.record.error is None


def test_one_that_its_condition_leaves_out_ends_nothing():
    trial = Trial(
        node("a"), terminate("end", "a", state="FAILED", condition="a.stop"), node("b", "a")
    )
    trial.succeed("a", {"stop": False})
    assert trial.states == {"a": "COMPLETED", "end": "SKIPPED", "b": "QUEUED"}


def test_one_among_the_clean_up_of_a_cancelled_execution_decides_nothing():
    trial = Trial(node("a"), terminate("end", "a", state="COMPLETED", trigger_rule="all_done"))
    trial.cancel()
    assert trial.state == "CANCELLED"
    assert trial.states["end"] == "COMPLETED"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"state": "{{ a.s }}"}, '"state" is "DONE"; it must be COMPLETED or FAILED'),
        ({"state": "FAILED", "message": "{{ a }}"}, '"message" is {"s": "DONE"}; it must be text'),
    ],
)
def test_a_value_that_can_not_be_used_fails_the_node(config, message):
    trial = Trial(node("a"), node("end", "a", handler="terminate", config=config))
    trial.succeed("a", {"s": "DONE"})
    assert trial.state == "FAILED"
    error = trial.execution.runs["end"].failures[-1].error
    assert (error.category, error.message) == ("config", message)
