"""`catches`: a node that handles the failures of others (docs/design.md has the table)."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.events import TaskError
from tests.engine.trial import Trial, node, once


def catching(name: str, *caught: Any, **fields: Any) -> dict[str, Any]:
    return once(name, catches=list(caught), **fields)


def caught(*more: dict[str, Any], **workflow: Any) -> Trial:
    """`a` is caught by `c`; `b` comes after `a`, `d` after `c`, `other` after neither."""
    nodes = (once("a"), node("b", "a"), catching("c", "a"), node("d", "c"), node("other"))
    return Trial(*nodes, *more, **workflow)


def error_of(trial: Trial) -> tuple[str | None, str | None]:
    record = trial.execution.record
    message = None if record.error is None else record.error.message
    return record.error_node_id, message


BOTH = pytest.mark.parametrize("on_failure", ["fail_fast", "continue"])


@BOTH
def test_a_failure_that_is_handled_does_not_fail_the_execution(on_failure):
    trial = caught(on_failure=on_failure)
    trial.fail("a")
    assert trial.states == {
        "a": "FAILED",
        "b": "SKIPPED",
        "c": "QUEUED",
        "d": "PENDING",
        "other": "QUEUED",
    }
    assert error_of(trial) == (None, None)
    trial.succeed("c")
    trial.succeed("d")
    trial.succeed("other")
    assert trial.state == "COMPLETED"
    assert trial.execution.runs["b"].reason == "upstream_failed"
    assert trial.dead_letters == []


def test_a_failure_counts_when_the_map_that_was_to_handle_it_has_failed():
    """Also if the map is optional, and its end is the last thing that happens."""
    inside = {"id": "fails", "handler": "transform", "config": {"value": "{{ item.gone }}"}}
    catcher = {"id": "c", "for_each": [{}], "nodes": [inside], "catches": ["a"], "optional": True}
    trial = Trial(once("a"), catcher)
    trial.fail("a")
    assert trial.states["c"] == "FAILED"
    assert trial.state == "FAILED"
    assert error_of(trial) == ("a", "a failed")


def test_a_catcher_is_skipped_when_nothing_failed():
    trial = caught()
    trial.succeed("a")
    assert (trial.states["c"], trial.run("c").reason) == ("SKIPPED", "branch_not_taken")
    trial.succeed("b")
    trial.succeed("other")
    assert trial.state == "COMPLETED"


@BOTH
def test_a_catcher_that_fails_fails_the_execution_and_names_the_first_failure(on_failure):
    trial = caught(on_failure=on_failure)
    trial.fail("a")
    trial.fail("c")
    assert error_of(trial) == ("c", "c failed; it was to handle that 'a' has failed with: a failed")
    assert trial.states["other"] == ("QUEUED" if on_failure == "continue" else "CANCELLED")
    assert sorted(letter.node_id for letter in trial.dead_letters) == ["a", "c"]
    assert trial.states["d"] == "SKIPPED"


def test_a_catcher_whose_condition_is_false_handles_nothing():
    trial = Trial(once("a"), catching("c", "a", condition="false"), node("other"))
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "c": "SKIPPED", "other": "CANCELLED"}
    assert trial.state == "FAILED"
    assert error_of(trial) == ("a", "a failed")
    assert [letter.node_id for letter in trial.dead_letters] == ["a"]


def test_an_optional_catcher_that_fails_handles_nothing():
    trial = Trial(once("a"), catching("c", "a", optional=True))
    trial.fail("a")
    trial.fail("c")
    assert trial.state == "FAILED"
    assert error_of(trial) == ("a", "a failed")


def test_a_catcher_that_fails_may_be_caught_itself():
    trial = Trial(once("a"), catching("c", "a"), catching("d", "c"))
    trial.fail("a")
    trial.fail("c")
    assert trial.states["d"] == "QUEUED"
    assert trial.dead_letters == []
    trial.succeed("d")
    assert trial.state == "COMPLETED"


def test_what_is_passed_on_and_not_handled_fails_with_the_last_failure_and_leaves_all_letters():
    trial = Trial(once("a"), catching("c", "a"), catching("d", "c", condition="false"))
    trial.fail("a")
    trial.fail("c")
    assert trial.state == "FAILED"
    assert error_of(trial)[0] == "c"
    assert [letter.node_id for letter in trial.dead_letters] == ["c", "a"]


def test_one_of_several_catchers_is_enough():
    trial = Trial(once("a"), catching("c", "a", condition="false"), catching("d", "a"))
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "c": "SKIPPED", "d": "QUEUED"}
    assert trial.state == "RUNNING"
    trial.succeed("d")
    assert trial.state == "COMPLETED"


def test_of_several_caught_nodes_the_first_failure_starts_it_and_later_ones_are_handled_too():
    trial = Trial(once("a"), once("b"), catching("c", "a", "b"))
    trial.fail("b")
    assert trial.states == {"a": "QUEUED", "b": "FAILED", "c": "QUEUED"}
    trial.succeed("c")
    trial.fail("a")
    assert trial.state == "COMPLETED"
    assert trial.dispatches == [("a", 1), ("b", 1), ("c", 1)]


def test_it_waits_for_its_other_dependencies_to_end():
    trial = Trial(once("a"), once("x", optional=True), catching("c", "a", dependencies=["x"]))
    trial.fail("a")
    assert trial.states["c"] == "PENDING"
    trial.fail("x")
    assert trial.states["c"] == "QUEUED"


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (TaskError("timeout", "late"), "RUNNING"),
        (TaskError("http", "gone", detail={"status_code": 410}), "RUNNING"),
        (TaskError("http", "down", detail={"status_code": 503}), "FAILED"),
        (TaskError("handler", "odd", "ValueError"), "FAILED"),
    ],
)
def test_only_errors_that_are_named_are_caught(error, state):
    trial = Trial(once("a"), catching("c", {"node": "a", "on": ["timeout", "http:4xx"]}))
    trial.fail("a", error=error)
    assert trial.state == state
    assert trial.states["c"] == ("QUEUED" if state == "RUNNING" else "SKIPPED")


def test_an_optional_node_can_be_caught_and_its_failure_never_counts():
    trial = Trial(once("a", optional=True), node("x"), catching("c", "a"), on_failure="continue")
    trial.fail("a")
    assert trial.states["c"] == "QUEUED"
    trial.fail("c")
    trial.succeed("x")
    assert error_of(trial)[0] == "c"


def test_another_failure_stops_the_catcher_and_then_nothing_is_handled():
    trial = caught(once("bad"))
    trial.fail("a", at=1.0)
    trial.fail("bad", at=2.0)
    assert trial.state == "FAILED"
    assert trial.states["c"] == "CANCELLED"
    assert error_of(trial) == ("bad", "bad failed")
    assert sorted(letter.node_id for letter in trial.dead_letters) == ["a", "bad"]


def test_a_cancel_makes_the_failure_that_could_still_be_handled_the_error():
    trial = caught()
    trial.fail("a")
    trial.cancel()
    assert trial.state == "CANCELLED"
    assert error_of(trial) == ("a", "a failed")
    assert [letter.node_id for letter in trial.dead_letters] == ["a"]


def test_a_terminate_that_completes_counts_no_failure_whose_catcher_it_stops():
    trial = Trial(
        once("a"),
        catching("c", "a"),
        node("x"),
        node("end", "x", handler="terminate", config={"state": "COMPLETED"}),
        node("clean", "x", trigger_rule="all_done"),
    )
    trial.fail("a")
    trial.succeed("x")
    trial.succeed("clean")
    assert trial.state == "COMPLETED"
    assert trial.dead_letters == []


def test_a_new_owner_goes_on_with_the_catcher():
    trial = caught()
    trial.fail("a")
    trial.lose_the_owner()
    trial.fail("c")
    assert trial.state == "FAILED"
    assert sorted(letter.node_id for letter in trial.dead_letters) == ["a", "c"]
    trial.lose_the_owner()
    assert len(trial.dead_letters) == 2


def test_what_was_skipped_because_of_a_failure_has_not_failed_itself():
    trial = Trial(
        once("a"), node("b", "a"), catching("c", "b"), node("e", "c"), on_failure="continue"
    )
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "SKIPPED", "c": "SKIPPED", "e": "SKIPPED"}
    assert trial.state == "FAILED"


def test_a_join_after_the_node_and_its_catcher_needs_one_success():
    trial = Trial(once("a"), catching("c", "a"), node("join", "a", "c", trigger_rule="one_success"))
    trial.fail("a")
    assert trial.states["join"] == "PENDING"
    trial.succeed("c")
    assert trial.states["join"] == "QUEUED"


def test_a_failure_that_several_were_to_handle_leaves_one_dead_letter():
    trial = Trial(
        once("a"), catching("c", "a"), catching("d", "c"), catching("e", "a"), once("bad")
    )
    trial.fail("a")
    trial.fail("c")
    trial.fail("bad")
    assert trial.state == "FAILED"
    assert sorted(letter.node_id for letter in trial.dead_letters) == ["a", "bad", "c"]
