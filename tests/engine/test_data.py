"""Data nodes (`input`, `output`, `decision`) are evaluated at once, from recorded values."""

from __future__ import annotations

import pytest

from tests.engine.trial import Trial, node, once


def decide(a: object, operator: object, b: object) -> Trial:
    config = {"value_a": a, "operator": operator, "value_b": b}
    return Trial(node("d", handler="decision", config=config))


def test_data_nodes_end_in_the_same_decision_without_a_task():
    trial = Trial(
        node("input", handler="input"),
        node("output", "input", handler="output"),
        input_value={"x": 1},
    )
    assert trial.state == "COMPLETED"
    assert trial.dispatches == []
    assert [line.after for line in trial.last.history] == [
        "RUNNING",
        "COMPLETED",
        "COMPLETED",
        "COMPLETED",
    ]


def test_an_input_node_gives_the_input_over_its_config_as_defaults():
    trial = Trial(
        node("in", handler="input", config={"limit": 10, "name": "none"}),
        input_value={"name": "jo", "extra": [1]},
    )
    assert trial.output("in") == {"limit": 10, "name": "jo", "extra": [1]}


@pytest.mark.parametrize("input_value", [[1, 2], "text", 7, False])
def test_an_input_that_is_no_object_is_given_as_it_is(input_value):
    assert (
        Trial(node("in", handler="input", config={"limit": 10}), input_value=input_value).output(
            "in"
        )
        == input_value
    )


def test_an_output_node_without_a_config_gives_its_parents_by_name():
    trial = Trial(
        node("a"),
        once("b", optional=True),
        node("c", "a", condition="false"),
        node("out", "a", "b", "c", handler="output"),
    )
    trial.succeed("a", {"x": [1, None, "ü"]})
    trial.fail("b")
    assert trial.output("out") == {"a": {"x": [1, None, "ü"]}}
    assert trial.state == "COMPLETED"


def test_an_output_node_with_a_config_gives_the_resolved_config():
    trial = Trial(
        node("a"),
        node("out", "a", handler="output", config={"total": "{{ a.sum }}", "unit": "EUR"}),
    )
    trial.succeed("a", {"sum": 12.5})
    assert trial.output("out") == {"total": 12.5, "unit": "EUR"}


def test_an_output_that_is_passed_on_keeps_its_text_exactly():
    trial = Trial(node("a"), node("out", "a", handler="output"))
    trial.succeed("a", {"big": 12345678901234567890, "small": 1e-300, "text": "{{ a.big }}"})
    assert trial.output("out")["a"] == {
        "big": 12345678901234567890,
        "small": 1e-300,
        "text": "{{ a.big }}",
    }


DECISIONS = [
    (1, "==", 1, True),
    (1, "==", 1.0, True),
    (1, "==", True, False),
    (True, "==", True, True),
    ("1", "==", 1, False),
    (None, "==", None, True),
    ([1, 2], "==", [1, 2], True),
    ({"a": 1}, "==", {"a": 1}, True),
    ([1], "==", [True], False),
    ({"a": 0}, "==", {"a": False}, False),
    (1, "!=", 2, True),
    (0, "!=", False, True),
    ("a", "!=", "a", False),
    (2, ">", 1, True),
    (1, ">", 1, False),
    (1.5, ">=", 1.5, True),
    (1, "<", 2, True),
    (2, "<=", 1, False),
    ("b", ">", "a", True),
    ("a", ">=", "b", False),
    (1, "in", [1, 2], True),
    (3, "in", [1, 2], False),
    (True, "in", [1], False),
    ("a", "in", "cat", True),
    ("k", "in", {"k": 1}, True),
    ([1, 2], "contains", 2, True),
    ("cat", "contains", "x", False),
    ({"k": 1}, "contains", "k", True),
    ([[1]], "contains", [1], True),
]


@pytest.mark.parametrize(("a", "operator", "b", "result"), DECISIONS)
def test_a_decision_compares_as_json_does(a, operator, b, result):
    assert decide(a, operator, b).output("d") == {"result": result}


MISMATCHES = [
    (1, ">", "1"),
    ("1", "<=", 1),
    (True, ">", 0),
    (0, "<", False),
    (None, "<", 1),
    ([1], ">", [0]),
    ({}, ">=", {}),
    (1, "in", 5),
    (1, "in", "1"),
    (5, "contains", 1),
    (None, "contains", None),
    ({"1": 0}, "contains", 1),
]


@pytest.mark.parametrize(("a", "operator", "b"), MISMATCHES)
def test_a_decision_between_values_that_cannot_be_compared_fails_the_node_and_shows_them(
    a, operator, b
):
    trial = decide(a, operator, b)
    assert trial.states == {"d": "FAILED"}
    assert f" {operator} " in trial.run("d").failures[0].error.message
    assert "can't be compared" in trial.run("d").failures[0].error.message


@pytest.mark.parametrize("operator", ["=", "is", "", None, 1, ["=="]])
def test_an_unknown_operator_fails_the_node_and_names_those_that_are_known(operator):
    trial = decide(1, operator, 1)
    assert trial.states == {"d": "FAILED"}
    assert "== != > >= < <= in contains" in trial.run("d").failures[0].error.message


def test_a_decision_with_an_incomplete_config_fails_and_names_what_is_missing():
    trial = Trial(node("d", handler="decision", config={"value_a": 1}))
    assert trial.states == {"d": "FAILED"}
    assert "operator, value_b" in trial.run("d").failures[0].error.message


def test_a_data_node_that_fails_is_not_retried_and_fails_the_execution():
    trial = Trial(
        node("d", handler="decision", config={}, retry={"max_attempts": 5}), node("other")
    )
    assert trial.states == {"d": "FAILED", "other": "SKIPPED"}
    assert trial.state == "FAILED"
    assert trial.dispatches == []


def test_everything_that_is_not_a_data_node_runs_on_a_worker():
    trial = Trial(
        node("a", handler="noop"), node("b", handler="transform"), node("c", handler="echo")
    )
    assert [(task.node_id, task.queue) for task in trial.tasks] == [
        ("a", "noop"),
        ("b", "transform"),
        ("c", "echo"),
    ]
