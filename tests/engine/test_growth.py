"""An execution may gain nodes while it runs; nothing assumes that the set of nodes is fixed."""

from __future__ import annotations

from penstock.engine.events import AddedNode
from tests.engine.trial import Trial, node, once


def test_an_added_node_runs_after_its_dependencies_and_the_execution_waits_for_it():
    trial = Trial(node("a"), node("b"))
    trial.add(AddedNode("b[0]", "b", ("a",)), AddedNode("b[1]", "b", ("b[0]",)))
    assert trial.states == {"a": "QUEUED", "b": "QUEUED", "b[0]": "PENDING", "b[1]": "PENDING"}
    trial.succeed("b")
    trial.succeed("a")
    assert trial.states["b[0]"] == "QUEUED"
    trial.succeed("b[0]")
    assert trial.state == "RUNNING"
    trial.succeed("b[1]")
    assert trial.state == "COMPLETED"


def test_an_added_node_whose_dependencies_have_ended_starts_at_once():
    trial = Trial(node("a"), node("b"))
    trial.succeed("a")
    trial.add(AddedNode("a[0]", "a", ("a",)), AddedNode("a[1]", "a"))
    assert trial.states == {"a": "COMPLETED", "b": "QUEUED", "a[0]": "QUEUED", "a[1]": "QUEUED"}


def test_added_nodes_survive_the_loss_of_the_owner():
    trial = Trial(node("a"), node("b", config={"x": 1}))
    trial.add(AddedNode("b[0]", "b", ("a",)), AddedNode("b[1]", "b", ("b[0]", "b")))
    trial.lose_the_owner()
    trial.succeed("a")
    trial.lose_the_owner()
    trial.succeed("b[0]")
    trial.lose_the_owner()
    assert trial.states == {"a": "COMPLETED", "b": "QUEUED", "b[0]": "COMPLETED", "b[1]": "PENDING"}
    trial.succeed("b")
    assert trial.states["b[1]"] == "QUEUED"
    trial.lose_the_owner()
    trial.succeed("b[1]")
    assert trial.state == "COMPLETED"
    assert trial.dispatches == [("a", 1), ("b", 1), ("b[0]", 1), ("b[1]", 1)]


def test_nodes_added_before_the_start_survive_the_loss_of_the_owner_too():
    trial = Trial(node("a"), start=False)
    trial.add(AddedNode("a[0]", "a"))
    trial.lose_the_owner()
    trial.begin()
    assert trial.states == {"a": "QUEUED", "a[0]": "QUEUED"}


def test_the_same_nodes_added_again_change_nothing():
    trial = Trial(node("a"))
    trial.add(AddedNode("a[0]", "a", ("a",)))
    trial.add(AddedNode("a[0]", "a", ("a",)), AddedNode("a", "a"))
    trial.succeed("a")
    trial.succeed("a[0]")
    assert trial.state == "COMPLETED"
    assert trial.dispatches == [("a", 1), ("a[0]", 1)]


def test_a_node_named_twice_in_one_addition_is_added_once():
    trial = Trial(node("a"))
    trial.add(AddedNode("a[0]", "a"), AddedNode("a[0]", "a"))
    trial.succeed("a")
    trial.succeed("a[0]")
    assert trial.dispatches == [("a", 1), ("a[0]", 1)]
    assert trial.state == "COMPLETED"


def test_the_plan_that_other_executions_share_does_not_change():
    trial = Trial(node("a"), node("b", "a"))
    names, count = list(trial.plan.numbers), len(trial.plan.nodes)
    trial.add(AddedNode("a[0]", "a", ("b",)))
    assert (list(trial.plan.numbers), len(trial.plan.nodes)) == (names, count)
    assert trial.plan.nodes[1].children == ()


def test_a_failure_reaches_the_nodes_that_were_added():
    trial = Trial(once("a"), node("b"))
    trial.add(AddedNode("b[0]", "b", ("a",)), AddedNode("b[1]", "b", ("b",)))
    trial.fail("a")
    assert trial.states == {"a": "FAILED", "b": "CANCELLED", "b[0]": "SKIPPED", "b[1]": "SKIPPED"}
    assert trial.state == "FAILED"


def test_a_node_added_while_failing_fast_does_not_start_unless_it_cleans_up():
    trial = Trial(once("a"), node("clean", "a", trigger_rule="all_done"), node("b"))
    trial.fail("a")
    trial.add(AddedNode("b[0]", "b"), AddedNode("clean[0]", "clean", ("a",)))
    assert trial.states["b[0]"] == "SKIPPED"
    assert trial.states["clean[0]"] == "QUEUED"


def test_cancel_ends_the_nodes_that_were_added():
    trial = Trial(node("a"))
    trial.add(AddedNode("a[0]", "a", ("a",)))
    trial.cancel()
    assert trial.states == {"a": "CANCELLED", "a[0]": "CANCELLED"}


def test_nothing_is_added_to_an_execution_that_has_ended():
    trial = Trial(node("a"))
    trial.succeed("a")
    commands = trial.add(AddedNode("a[0]", "a"))
    assert commands.record is None
    assert trial.states == {"a": "COMPLETED"}
