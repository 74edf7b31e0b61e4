"""Branches, joins and trigger rules in whole workflows (G2, G3)."""

from __future__ import annotations

import pytest

from tests.engine.trial import Trial, decision, node, once


def test_roots_start_at_once_and_children_after_all_their_parents():
    trial = Trial(node("a"), node("b"), node("join", "a", "b"))
    assert trial.states == {"a": "QUEUED", "b": "QUEUED", "join": "PENDING"}
    trial.succeed("b")
    assert trial.states["join"] == "PENDING"
    trial.succeed("a")
    assert trial.states["join"] == "QUEUED"
    trial.succeed("join")
    assert trial.state == "COMPLETED"
    assert trial.last.finished


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_a_fan_in_starts_once_however_its_parents_finish(order):
    trial = Trial(node("a"), node("b"), node("c"), node("join", "a", "b", "c"))
    for name in order:
        assert ("join", 1) not in trial.dispatches
        trial.succeed(name)
        trial.succeed(name)
    assert trial.dispatches.count(("join", 1)) == 1


def test_a_branch_that_is_not_taken_ends_without_running_anything_and_the_join_after_it_runs():
    trial = Trial(
        decision("vip", gives=False),
        node("yes", "vip", condition="vip.result"),
        node("after_yes", "yes"),
        node("no", "vip", condition="!vip.result"),
        node("join", "after_yes", "no"),
    )
    assert trial.states == {
        "vip": "COMPLETED",
        "yes": "SKIPPED",
        "after_yes": "SKIPPED",
        "no": "QUEUED",
        "join": "PENDING",
    }
    assert trial.run("yes").reason == "condition_false"
    assert trial.run("after_yes").reason == "branch_not_taken"
    trial.succeed("no")
    assert trial.states["join"] == "QUEUED"
    trial.succeed("join")
    assert trial.state == "COMPLETED"


def test_a_join_whose_every_branch_was_not_taken_is_skipped_and_the_execution_completes():
    trial = Trial(
        decision("d", gives=True),
        node("a", "d", condition="!d.result"),
        node("b", "d", condition="d.result == false"),
        node("join", "a", "b"),
    )
    assert trial.states == {"d": "COMPLETED", "a": "SKIPPED", "b": "SKIPPED", "join": "SKIPPED"}
    assert trial.state == "COMPLETED"


def test_none_failed_runs_also_when_every_branch_was_skipped():
    trial = Trial(
        decision("d", gives=False),
        node("a", "d", condition="d.result"),
        node("b", "a", trigger_rule="none_failed"),
    )
    assert trial.states == {"d": "COMPLETED", "a": "SKIPPED", "b": "QUEUED"}


def test_all_done_runs_after_successes_skips_and_failures():
    trial = Trial(
        node("good"),
        once("bad"),
        decision("d", gives=False),
        node("skipped", "d", condition="d.result"),
        node("last", "good", "bad", "skipped", trigger_rule="all_done"),
        on_failure="continue",
    )
    trial.fail("bad")
    assert trial.states["last"] == "PENDING"
    trial.succeed("good")
    assert trial.states["last"] == "QUEUED"
    trial.succeed("last")
    assert trial.state == "FAILED"


def test_one_success_starts_at_the_first_and_does_not_start_again_at_the_second():
    trial = Trial(node("a"), node("b"), node("first", "a", "b", trigger_rule="one_success"))
    trial.succeed("a")
    assert trial.states["first"] == "QUEUED"
    trial.succeed("first")
    trial.succeed("b")
    assert trial.dispatches.count(("first", 1)) == 1
    assert trial.state == "COMPLETED"


def test_one_success_survives_a_failure_and_is_skipped_when_nothing_succeeded():
    trial = Trial(
        once("a"),
        once("b"),
        node("first", "a", "b", trigger_rule="one_success"),
        node("after", "first"),
        on_failure="continue",
    )
    trial.fail("a")
    assert trial.states["first"] == "PENDING"
    trial.fail("b")
    assert trial.states == {"a": "FAILED", "b": "FAILED", "first": "SKIPPED", "after": "SKIPPED"}
    assert trial.run("after").reason == "upstream_failed"
    assert trial.state == "FAILED"


def test_one_failed_starts_at_the_first_failure_and_is_skipped_without_one():
    trial = Trial(
        once("a"),
        node("b"),
        node("alarm", "a", "b", trigger_rule="one_failed"),
        on_failure="continue",
    )
    trial.fail("a")
    assert trial.states["alarm"] == "QUEUED"

    trial = Trial(once("a"), node("b"), node("alarm", "a", "b", trigger_rule="one_failed"))
    trial.succeed("a")
    trial.succeed("b")
    assert trial.states["alarm"] == "SKIPPED"
    assert trial.state == "COMPLETED"


def test_a_failure_is_passed_down_through_skipped_nodes_to_the_alarm():
    trial = Trial(
        once("a"),
        node("b", "a"),
        node("c", "b"),
        node("alarm", "c", trigger_rule="one_failed"),
        on_failure="continue",
    )
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "SKIPPED", "c": "SKIPPED", "alarm": "QUEUED"}
    assert trial.run("c").reason == "upstream_failed"


def test_a_failure_skips_an_all_success_join_as_soon_as_it_is_known():
    trial = Trial(once("a"), node("b"), node("join", "a", "b"), on_failure="continue")
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "QUEUED", "join": "SKIPPED"}


@pytest.mark.parametrize("workflow", [{}, {"on_failure": "fail_fast"}, {"on_failure": "continue"}])
def test_a_node_can_ask_to_fail_with_its_dependency(workflow):
    trial = Trial(once("a"), node("b", "a", on_dependency_failure="fail"), **workflow)
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "FAILED"}
    assert trial.run("b").reason == "dependency"
    assert trial.dispatches == [("a", 1)]
    assert [dead_letter.node_id for dead_letter in trial.dead_letters] == ["a"]
    assert trial.state == "FAILED"
    assert trial.execution.record.error_node_id == "a"


@pytest.mark.parametrize("on_failure", ["fail_fast", "continue"])
def test_a_node_that_asks_for_it_fails_with_a_dependency_that_was_skipped_because_of_a_failure(
    on_failure,
):
    trial = Trial(
        once("a"),
        node("b", "a"),
        node("c", "b", on_dependency_failure="fail"),
        on_failure=on_failure,
    )
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "SKIPPED", "c": "FAILED"}


@pytest.mark.parametrize("rule", ["all_success", "none_failed", "one_success"])
@pytest.mark.parametrize("on_failure", ["fail_fast", "continue"])
def test_a_node_that_asks_for_it_fails_with_its_dependency_under_every_rule_that_a_failure_ends(
    rule, on_failure
):
    fails = node("b", "a", trigger_rule=rule, on_dependency_failure="fail")
    trial = Trial(once("a"), fails, on_failure=on_failure)
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "FAILED"}


def test_a_node_is_skipped_when_another_branch_failed_whatever_it_asks_of_its_dependencies():
    trial = Trial(once("bad"), node("a"), node("b", "a", on_dependency_failure="fail"))
    trial.fail("bad")
    assert trial.states == {"bad": "FAILED", "a": "CANCELLED", "b": "SKIPPED"}
    assert trial.run("b").reason == "execution_failed"


def test_an_alarm_starts_for_a_node_that_failed_with_its_dependency_while_failing_fast():
    trial = Trial(
        once("a"),
        node("b", "a", on_dependency_failure="fail"),
        node("alarm", "b", trigger_rule="one_failed"),
    )
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "FAILED", "alarm": "QUEUED"}
    trial.succeed("alarm")
    assert trial.state == "FAILED"


def test_a_condition_is_looked_at_only_when_the_rule_lets_the_node_start():
    trial = Trial(
        once("a"),
        decision("d", "a", gives=True),
        node("b", "d", condition="d.result"),
        on_failure="continue",
    )
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "d": "SKIPPED", "b": "SKIPPED"}


def test_a_condition_that_cannot_be_evaluated_fails_the_node_without_a_retry():
    trial = Trial(node("a"), node("b", "a", condition="a.missing == 1"), on_failure="continue")
    trial.succeed("a", {"present": 1})
    assert trial.states == {"a": "COMPLETED", "b": "FAILED"}
    assert trial.run("b").reason == "condition"
    assert trial.dispatches == [("a", 1)]


def test_a_condition_that_gives_no_boolean_fails_the_node():
    trial = Trial(node("a"), node("b", "a", condition="a.count"))
    trial.succeed("a", {"count": 3})
    assert trial.run("b").state == "FAILED"
    assert "must give true or false" in trial.run("b").failures[0].error.message


def test_separate_components_all_have_to_end():
    trial = Trial(node("a"), node("b"))
    trial.succeed("a")
    assert trial.state == "RUNNING"
    trial.succeed("b")
    assert trial.state == "COMPLETED"
