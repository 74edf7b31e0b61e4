"""Nodes that run another workflow: what a document says about the child."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.builder import Workflow
from penstock.definition.model import Child
from penstock.definition.plan import compile_document
from tests.definition.documents import compiled, problems_of, workflow


def bill(**fields: Any) -> dict[str, Any]:
    config = fields.pop("config", {"workflow": "billing@stable"})
    return {"id": "bill", "handler": "workflow", "config": config, **fields}


def test_a_child_has_one_attempt_and_no_time_limit_unless_its_node_says_otherwise():
    defaults = {"retry": {"max_attempts": 7}, "timeout_seconds": 5}
    node = compiled(bill(), defaults=defaults).plan.nodes[0]
    assert node.child == Child(reference="billing@stable")
    assert node.waits
    assert node.retry.max_attempts == 1
    assert node.timeout_seconds == 0.0

    stated = compiled(bill(retry={"delay_seconds": 3}, timeout_seconds=9)).plan.nodes[0]
    assert stated.retry.max_attempts == 1
    assert stated.retry.initial_delay_seconds == 3.0
    assert stated.timeout_seconds == 9.0


def test_a_child_for_each_item_has_neither_of_them_too():
    each = bill(for_each=[1, 2])
    plan = compiled(each, defaults={"retry": {"max_attempts": 7}, "timeout_seconds": 5}).plan
    region = plan.nodes[0].region
    assert region is not None
    inside = region.body.nodes[0]
    assert inside.child == Child(reference="billing@stable")
    assert (inside.retry.max_attempts, inside.timeout_seconds) == (1, 0.0)
    assert plan.has_children


def test_a_plan_knows_whether_it_has_children():
    assert compiled(bill()).plan.has_children
    assert not compiled({"id": "a", "handler": "noop"}).plan.has_children


def test_a_reference_to_the_workflow_is_known_when_the_node_starts():
    config = {"workflow": "{{ input.name }}", "input": {}}
    child = compiled(bill(config=config)).plan.nodes[0].child
    assert child == Child(reference=None)


def test_the_fields_of_a_child_are_read():
    fields = {"wait": False, "on_parent_end": "leave", "max_depth": 3}
    child = compiled(bill(**fields)).plan.nodes[0].child
    assert child == Child("billing@stable", is_awaited=False, on_parent_end="leave", max_depth=3)


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"wait": "no"}, "nodes[0].wait", "true or false"),
        ({"on_parent_end": "kill"}, "nodes[0].on_parent_end", "cancel, leave"),
        ({"max_depth": 33}, "nodes[0].max_depth", "from 1 to 32"),
        ({"config": {}}, "nodes[0].config", 'needs "workflow"'),
        ({"config": {"workflow": "a", "input": [1]}}, "nodes[0].config.input", "an object"),
        ({"config": {"workflow": 7}}, "nodes[0].config.workflow", "text"),
    ],
)
def test_a_bad_field_of_a_child_is_refused(fields: dict[str, Any], path: str, words: str):
    problem = problems_of(workflow(bill(**fields)))[0]
    assert problem.path == path
    assert words in problem.message


def test_a_field_of_a_child_on_another_node_is_a_warning():
    node = {"id": "a", "handler": "noop", "wait": False, "max_depth": 3}
    warnings = compiled(node).warnings
    assert [(problem.code, problem.path) for problem in warnings] == [
        ("ignored_field", "nodes[0].wait"),
        ("ignored_field", "nodes[0].max_depth"),
    ]


def test_a_child_in_python_is_the_same_document():
    flow = Workflow("order")
    order = flow.node("order", "noop")
    given = {"order": order["id"]}
    billed = flow.workflow("bill", "billing@stable", given, wait=False, max_depth=2)
    flow.node("tell", "noop", text=billed["execution_id"])
    with flow.each("each", [1, 2]):
        flow.workflow("ship", "shipping", on_parent_end="leave")
    plan = compile_document(flow.document()).plan
    assert plan.nodes[1].child == Child("billing@stable", is_awaited=False, max_depth=2)
    assert plan.nodes[1].dependencies == (0,)
    region = plan.nodes[3].region
    assert region is not None
    ship = Child("shipping", on_parent_end="leave")
    assert region.body.nodes[0].child == ship
