"""`switch` and `finally`: read as conditions and as a trigger rule."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.plan import Plan, compile_document
from tests.definition.documents import Outputs, node, plan_of, problem_of, problems_of, workflow

ORDER = node("order")


def switched(cases: dict[str, Any], *nodes: dict[str, Any], switch: str = "order.kind") -> Plan:
    choice = {"id": "s", "switch": switch, "cases": cases}
    return plan_of(ORDER, choice, *nodes)


def chosen(plan: Plan, value: Any) -> list[str]:
    """The nodes whose conditions hold for this value of the switch."""
    scope = Outputs({"s": {"result": value}, "order": {"ok": True}})
    names: list[str] = []
    for each_node in plan.nodes:
        condition = each_node.condition
        if condition is not None and condition.evaluate(scope):
            names.append(each_node.node_id)
    return names


def test_a_switch_is_a_transform_and_its_cases_depend_on_it():
    plan = switched({"a": ["x"], "default": ["y"]}, node("x"), node("y"))
    switch, x, y = plan.nodes[1:]
    assert (switch.node_id, switch.handler, switch.dependencies) == ("s", "transform", (0,))
    assert switch.config.value == {"value": "{{ order.kind }}"}
    assert (x.dependencies, y.dependencies) == ((1,), (1,))


@pytest.mark.parametrize(
    ("value", "nodes"),
    [
        ("a", ["x", "z"]),
        ("b", ["y"]),
        ("other", ["z"]),
        (1, ["w"]),
        ("1", ["w"]),
        (True, ["v"]),
        (None, ["z"]),
        ({"deep": 1}, ["z"]),
    ],
)
def test_the_nodes_of_the_case_run(value: Any, nodes: list[str]):
    cases = {"a": ["x", "z"], "b": "y", "1": ["w"], "true": ["v"], "default": ["z"]}
    plan = switched(cases, *(node(name) for name in "xyzwv"))
    assert chosen(plan, value) == sorted(nodes, key="xyzwv".index)


def test_a_condition_of_the_node_stays():
    plan = switched({"a": ["x"]}, node("x", condition="order.ok == false || order.ok"))
    assert chosen(plan, "a") == ["x"]
    assert chosen(plan, "b") == []


def test_odd_ids_and_values_are_text():
    choice = {"id": 's "1"', "switch": "1 + 1", "cases": {'it"s é': ["x"]}}
    plan = plan_of(choice, node("x"))
    scope = Outputs({'s "1"': {"result": 'it"s é'}})
    condition = plan.nodes[1].condition
    assert condition is not None
    assert condition.evaluate(scope)


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"cases": {"a": ["nope"]}}, "unknown_case", "nodes[1].cases.a[0]"),
        ({"cases": {"a": ["s"]}}, "unknown_case", "nodes[1].cases.a[0]"),
        ({"cases": {}}, "missing_cases", "nodes[1]"),
        ({}, "missing_cases", "nodes[1]"),
        ({"cases": {"a": 1}}, "bad_value", "nodes[1].cases"),
        ({"cases": {"a": []}, "handler": "noop"}, "conflicting_fields", "nodes[1].handler"),
        ({"cases": {"a": []}, "switch": "order.n +"}, "malformed_expression", "nodes[1].switch"),
        ({"cases": {"a": []}, "switch": "nope.x + 1"}, "unknown_reference", "nodes[1].switch"),
        ({"cases": {"a": []}, "switch": " "}, "bad_value", "nodes[1].switch"),
    ],
)
def test_what_is_refused_of_a_switch(fields: dict[str, Any], code: str, path: str):
    choice = {"id": "s", "switch": "order.kind + ''", **fields}
    problems = problems_of(workflow(ORDER, choice))
    assert (problems[0].code, problems[0].path) == (code, path)


def test_cases_without_a_switch_are_refused():
    assert problem_of(node("a", cases={"a": ["a"]})).code == "conflicting_fields"


def test_finally_is_all_done():
    plan = plan_of(node("a"), node("b"), node("f", "a", **{"finally": True}))
    assert plan.nodes[2].rule == "all_done"
    assert plan.nodes[2].dependencies == (0,)


def test_finally_without_dependencies_comes_after_everything_else():
    plan = plan_of(
        node("a"),
        node("b", "a"),
        node("c"),
        node("f", **{"finally": True}),
        node("g", **{"finally": True}),
        node("after", "f"),
    )
    assert plan.nodes[3].dependencies == (1, 2)
    assert plan.nodes[4].dependencies == (1, 2)


def test_finally_comes_after_nodes_that_catch():
    plan = plan_of(node("a"), node("c", catches=["a"]), node("f", **{"finally": True}))
    assert plan.nodes[2].dependencies == (1,)


@pytest.mark.parametrize(
    "fields", [{"trigger_rule": "one_failed"}, {"catches": ["a"]}, {"trigger_rule": "all_success"}]
)
def test_finally_beside_another_rule_is_refused(fields: dict[str, Any]):
    problem = problem_of(node("a"), node("f", **{"finally": True}, **fields))
    assert problem.code == "conflicting_fields"


def test_too_many_nodes_after_everything_are_refused():
    last = [node(f"f{i}", **{"finally": True}) for i in range(11)]
    assert problem_of(node("a"), *last).code == "too_many_finally"


def test_a_workflow_of_nothing_else_starts_them():
    plan = compile_document(workflow(node("f", **{"finally": True}))).plan
    assert plan.roots == (0,)
