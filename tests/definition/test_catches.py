"""`catches` in documents: the dependencies that it makes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.plan import compile_document
from penstock.errors import InvalidWorkflow


def plan_with(catches: Any, *more: dict[str, Any], **fields: Any) -> Any:
    nodes = [
        {"id": "a", "handler": "noop"},
        {"id": "b", "handler": "noop"},
        {"id": "c", "handler": "noop", "catches": catches, **fields},
        *more,
    ]
    return compile_document({"nodes": nodes}).plan


@pytest.mark.parametrize("catches", ["a", ["a"], [{"node": "a"}]])
def test_a_caught_node_is_a_dependency(catches):
    plan = plan_with(catches)
    assert plan.nodes[2].dependencies == (0,)
    assert plan.nodes[2].rule == "caught"
    assert plan.nodes[2].catches == ((0, ()),)
    assert plan.nodes[0].catchers == ((2, ()),)


def test_patterns_stand_with_their_node_and_other_dependencies_stay():
    catches = ["a", {"node": "b", "on": ["timeout", "http:4xx"]}]
    node = plan_with(catches, depends_on=["b"]).nodes[2]
    assert node.dependencies == (1, 0)
    assert node.catches == ((0, ()), (1, ("timeout", "http:4xx")))


def test_no_catches_are_none():
    assert plan_with([]).nodes[2].rule == "all_success"


@pytest.mark.parametrize(
    ("catches", "code", "path", "message"),
    [
        (["x"], "unknown_dependency", "catches[0]", "'c' catches 'x', which isn't a node"),
        (["c"], "self_dependency", "catches[0]", "'c' can't catch its own failure"),
        (
            ["a", {"node": "a"}],
            "duplicate_catch",
            "catches[1]",
            "\"catches\" names 'a' twice; join the patterns",
        ),
        (
            [{"on": "http"}],
            "bad_catch",
            "catches[0]",
            '"catches" must have node ids, or objects such as {"node": "fetch"}',
        ),
        (
            7,
            "bad_catch",
            "catches",
            '"catches" must have node ids, or objects such as {"node": "fetch"}',
        ),
        (
            [{"node": "a", "on": "timout"}],
            "bad_pattern",
            "catches[0].on",
            "\"timout\" isn't known; did you mean 'timeout'?",
        ),
        (
            [f"n{i}" for i in range(101)],
            "bad_catch",
            "catches",
            '"catches" names 101 nodes; the limit is 100',
        ),
    ],
)
def test_what_is_refused(catches, code, path, message):
    with pytest.raises(InvalidWorkflow) as error:
        plan_with(catches)
    [problem] = error.value.problems
    assert (problem.code, problem.path) == (code, f"nodes[2].{path}")
    assert problem.message.startswith(message)


def test_a_trigger_rule_beside_it_is_refused():
    with pytest.raises(InvalidWorkflow) as error:
        plan_with(["a"], trigger_rule="all_done")
    [problem] = error.value.problems
    assert (problem.code, problem.path) == ("conflicting_fields", "nodes[2].trigger_rule")


def test_more_catchers_of_one_node_than_the_limit_are_refused():
    more = [{"id": f"n{i}", "handler": "noop", "catches": ["a"]} for i in range(100)]
    with pytest.raises(InvalidWorkflow) as error:
        plan_with(["a"], *more)
    [problem] = error.value.problems
    assert (problem.code, problem.path) == ("bad_catch", "nodes[102].catches[0]")


def test_a_cycle_through_catches_is_refused():
    caught = {"id": "y", "handler": "noop", "depends_on": ["z"]}
    catcher = {"id": "z", "handler": "noop", "catches": ["y"]}
    with pytest.raises(InvalidWorkflow) as error:
        plan_with(["a"], catcher, caught)
    assert error.value.problems[0].code == "cycle"
