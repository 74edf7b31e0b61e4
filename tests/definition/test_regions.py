"""Maps and loops in a document: what is read, and every refusal with its path."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.definition.addresses import body_at, node_at, outermost_item
from penstock.definition.plan import Plan, compile_document
from penstock.errors import InvalidWorkflow

NOOP = {"handler": "noop"}


def compiled(*nodes: dict[str, Any]) -> Plan:
    return compile_document({"name": "regions", "nodes": list(nodes)}).plan


def problems(*nodes: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidWorkflow) as raised:
        compiled(*nodes)
    return [(problem.code, problem.path) for problem in raised.value.problems]


def each(**fields: Any) -> dict[str, Any]:
    return {"id": "each", "for_each": [1], **fields}


def nested(depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"id": "leaf", **NOOP}
    for level in range(depth):
        node = {"id": f"m{level}", "for_each": [1], "as": f"i{level}", "nodes": [node]}
    return node


LIST = {"id": "list", **NOOP}
INNER = {"id": "inner", **NOOP}
REFUSED: list[tuple[str, list[dict[str, Any]], tuple[str, str]]] = [
    (
        "text around the reference",
        [LIST, each(for_each="a {{ list }}", **NOOP)],
        ("bad_for_each", "nodes[1].for_each"),
    ),
    ("no reference", [each(for_each="list", **NOOP)], ("bad_for_each", "nodes[0].for_each")),
    ("a number", [each(for_each=3, **NOOP)], ("bad_for_each", "nodes[0].for_each")),
    (
        "a node that isn't there",
        [each(for_each="{{ lisst }}", **NOOP), LIST],
        ("unknown_reference", "nodes[0].for_each"),
    ),
    (
        "nodes and a handler",
        [each(nodes=[INNER], **NOOP)],
        ("nodes_and_handler", "nodes[0].handler"),
    ),
    ("an empty body", [each(nodes=[])], ("empty_body", "nodes[0].nodes")),
    ("no handler", [each()], ("missing_handler", "nodes[0].handler")),
    ("nodes alone", [{"id": "a", "nodes": [INNER]}], ("bad_value", "nodes[0].nodes")),
    (
        "the item's name is a node's",
        [{"id": "page", **NOOP}, each(**NOOP, **{"as": "page"})],
        ("name_taken", "nodes[1].as"),
    ),
    (
        "an inner id is an outer one's",
        [LIST, each(nodes=[LIST])],
        ("name_taken", "nodes[1].nodes[0].id"),
    ),
    ("a name that is a word", [each(**NOOP, **{"as": "input"})], ("bad_value", "nodes[0].as")),
    (
        "a reference from outside",
        [each(nodes=[INNER]), {"id": "z", **NOOP, "config": {"x": "{{ inner.y }}"}}],
        ("outside_reference", "nodes[1].config.x"),
    ),
    (
        "a condition from outside",
        [each(nodes=[INNER]), {"id": "z", **NOOP, "condition": "inner.y"}],
        ("outside_reference", "nodes[1].condition"),
    ),
    (
        "a dependency from outside",
        [each(nodes=[INNER]), {"id": "z", **NOOP, "depends_on": ["inner"]}],
        ("dependency_crosses_map", "nodes[1].depends_on[0]"),
    ),
    (
        "a dependency to the outside",
        [LIST, each(nodes=[{**INNER, "depends_on": ["list"]}])],
        ("dependency_crosses_map", "nodes[1].nodes[0].depends_on[0]"),
    ),
    (
        "an id like an item's",
        [each(**NOOP), {"id": "each[3].x", **NOOP}],
        ("ambiguous_address", "nodes[1].id"),
    ),
    ("too deep", [nested(5)], ("too_deep", "nodes[0].nodes[0].nodes[0].nodes[0].nodes[0]")),
    (
        "the map in its own body",
        [each(nodes=[{**INNER, "config": {"x": "{{ each }}"}}])],
        ("unknown_reference", "nodes[0].nodes[0].config.x"),
    ),
    (
        "too many at once",
        [each(max_parallel=10_001, **NOOP)],
        ("bad_value", "nodes[0].max_parallel"),
    ),
    (
        "a policy that isn't there",
        [each(on_item_failure="retry", **NOOP)],
        ("bad_value", "nodes[0].on_item_failure"),
    ),
    (
        "a loop without a limit",
        [{"id": "a", **NOOP, "repeat": {"until": "true"}}],
        ("repeat_without_limit", "nodes[0].repeat"),
    ),
    (
        "a loop without an end",
        [{"id": "a", **NOOP, "repeat": {"max_rounds": 3}}],
        ("bad_until", "nodes[0].repeat.until"),
    ),
    (
        "a condition that isn't CEL",
        [{"id": "a", **NOOP, "repeat": {"until": "a.", "max_rounds": 3}}],
        ("bad_until", "nodes[0].repeat.until"),
    ),
    (
        "a map and a loop at once",
        [each(repeat={"until": "true", "max_rounds": 3}, **NOOP)],
        ("bad_value", "nodes[0].repeat"),
    ),
    (
        "a computed list",
        [LIST, each(for_each="{{ size(list.x) }}", **NOOP)],
        ("bad_for_each", "nodes[1].for_each"),
    ),
    (
        "a node with the item's name",
        [{"id": "item", **NOOP}, each(**NOOP)],
        ("name_taken", "nodes[0].id"),
    ),
    (
        "an inner map with its map's id",
        [each(nodes=[each(**NOOP)])],
        ("name_taken", "nodes[0].nodes[0].id"),
    ),
    (
        "a catch inside of a map",
        [each(nodes=[INNER]), {"id": "z", **NOOP, "catches": ["inner"]}],
        ("dependency_crosses_map", "nodes[1].catches[0]"),
    ),
    ("a key without the item", [each(key="x", **NOOP)], ("bad_value", "nodes[0].key")),
    (
        "a secret that would be shown",
        [each(nodes=[INNER], collect="{{ secrets.TOKEN }}")],
        ("secret_in_data_node", "nodes[0].collect"),
    ),
]


@pytest.mark.parametrize(
    ("nodes", "expected"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_mistakes_in_maps_and_loops_are_refused_at_their_place(
    nodes: list[dict[str, Any]], expected: tuple[str, str]
):
    assert expected in problems(*nodes)


ADVICE: list[tuple[str, list[dict[str, Any]], str]] = [
    ("braces", [LIST, each(for_each="list.x", **NOOP)], "write {{ list.x }}"),
    (
        "a transform",
        [LIST, each(for_each="{{ list.x + [1] }}", **NOOP)],
        "compute the list in a transform before it",
    ),
    (
        "an item outside",
        [{**LIST, "config": {"x": "{{ item.y }}"}}],
        "only nodes inside of a map (for_each) have an item",
    ),
    (
        "a round outside",
        [{**LIST, "condition": "round > 1"}],
        "only nodes inside of a loop (repeat) have a round",
    ),
    (
        "an item with another name",
        [each(**NOOP, **{"as": "page"}, config={"x": "{{ item }}"})],
        "here that is {{ page }}",
    ),
    (
        "an outer item without a name",
        [each(nodes=[{**INNER, "for_each": [1], "as": "x", "config": {"y": "{{ item }}"}}])],
        'an outer map\'s item is reached by the name in its "as"',
    ),
    (
        "the key of something else",
        [LIST, each(**NOOP, key="{{ list.x }}")],
        "a key is made of {{ item }} alone",
    ),
    (
        "a condition in braces",
        [{**LIST, "repeat": {"until": "{{ list.x == 1 }}", "max_rounds": 3}}],
        "write it without {{ }}",
    ),
]


@pytest.mark.parametrize(
    ("nodes", "advice"), [case[1:] for case in ADVICE], ids=[case[0] for case in ADVICE]
)
def test_a_refusal_says_what_to_write(nodes: list[dict[str, Any]], advice: str):
    with pytest.raises(InvalidWorkflow) as raised:
        compiled(*nodes)
    assert [advice in problem.message for problem in raised.value.problems] == [True]


def test_a_value_of_the_wrong_kind_is_reported_once():
    assert problems(each(for_each=3, **NOOP, config={"x": "{{ item }}"})) == [
        ("bad_for_each", "nodes[0].for_each")
    ]
    assert problems({"id": "a", **NOOP, "repeat": 3}) == [("bad_value", "nodes[0].repeat")]


def test_the_node_of_a_map_has_the_id_of_the_map_also_where_outputs_are_collected():
    assert compiled(each(**NOOP, collect="{{ each.x ?? null }}")).has_regions


def test_four_levels_are_fine():
    assert compiled(nested(4)).has_regions


def test_what_a_body_refers_to_outside_is_a_dependency_of_the_map():
    inner = {**INNER, "config": {"x": "{{ list.x }} {{ item }}"}}
    plan = compiled(LIST, each(nodes=[inner]), {"id": "m", **NOOP, "for_each": "{{ each }}"})
    assert plan.nodes[1].dependencies == (0,)
    assert plan.nodes[2].dependencies == (1,)


def test_the_inner_item_hides_the_outer_one_and_its_name_reaches_it():
    inner = each(for_each="{{ page.x }}", handler="noop", config={"a": "{{ item }}{{ page.y }}"})
    plan = compiled({"id": "outer", "for_each": [{}], "as": "page", "nodes": [inner]})
    region = plan.nodes[0].region
    assert region is not None
    assert region.body.nodes[0].region is not None


def test_addresses_are_read_from_the_left():
    plan = compiled(each(nodes=[INNER, {"id": "deep[x]", **NOOP, "for_each": [1]}]), LIST)
    assert node_at(plan, "list") is plan.nodes[1]
    assert node_at(plan, "each[12]") is plan.nodes[0]
    found = node_at(plan, "each[12].inner")
    assert found is not None
    assert found.node_id == "inner"
    single = node_at(plan, "each[1].deep[x][3]")
    assert single is not None
    assert single.handler == "noop"
    assert node_at(plan, "each[1].none") is None
    assert node_at(plan, "list[1]") is None
    assert body_at(plan, "each[1]") is None
    assert outermost_item(plan, "each[7].inner") == ("each", 7)


def test_a_field_of_a_map_without_a_map_has_no_effect():
    document = {"name": "w", "nodes": [{"id": "a", **NOOP, "max_parallel": 3}]}
    assert [warning.code for warning in compile_document(document).warnings] == ["ignored_field"]
