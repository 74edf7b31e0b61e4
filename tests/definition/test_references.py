"""Dependencies that follow from references."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.definition import compile_document
from penstock.definition.read import content_hash
from penstock.errors import InvalidWorkflow
from tests.definition.documents import node, plan_of, workflow


def edges_of(*nodes: Any, **options: Any) -> dict[str, list[str]]:
    plan = compile_document(workflow(*nodes), **options).plan
    return {
        node.node_id: [plan.nodes[parent].node_id for parent in node.dependencies]
        for node in plan.nodes
    }


def bare(name: str, **fields: Any) -> dict[str, Any]:
    """A node that states no dependencies."""
    return {"id": name, "handler": "noop", **fields}


@pytest.mark.parametrize(
    "fields",
    [
        {"config": {"x": "{{ a.x }}"}},
        {"config": {"deep": [{"x": "text {{ a }} text"}]}},
        {"config": {"x": '{{ nodes["a"].x ?? null }}'}},
        {"condition": "a.ok"},
        {"condition": 'nodes["a"].ok'},
        {"condition": "{{ a.ok }} == True"},
        {"config": {"x": "{{ a.x }}"}, "depends_on": None},
        {"config": {"x": "{{ a.x }}"}, "depends_on": []},
    ],
)
def test_a_reference_makes_a_dependency(fields: dict[str, Any]):
    plan = plan_of(bare("a"), bare("b", **fields))
    assert plan.nodes[1].dependencies == (0,)
    assert plan.nodes[0].children == (1,)
    assert plan.dependency_counts == [0, 1]
    assert plan.roots == (0,)
    assert plan.order == [0, 1]
    assert plan.result_nodes == ("b",)


def test_stated_dependencies_come_first():
    fields = {"config": {"x": "{{ c }} {{ a }}"}, "depends_on": ["d"]}
    assert edges_of(bare("a"), bare("c"), bare("d"), bare("b", **fields))["b"] == ["d", "a", "c"]


def test_a_node_may_stand_before_those_that_it_refers_to():
    nodes = [bare("b", config={"x": "{{ a }}"}), bare("a")]
    assert edges_of(*nodes) == {"b": ["a"], "a": []}
    assert plan_of(*nodes).order == [1, 0]


def test_a_reference_to_what_comes_before_anyway_adds_nothing():
    chain = [bare("a"), bare("b", depends_on=["a"])]
    assert edges_of(*chain, bare("c", depends_on="b", config={"x": "{{ a }}"}))["c"] == ["b"]


def test_what_comes_before_may_follow_from_references_too():
    chain = [bare("a"), bare("b", config={"x": "{{ a }}"})]
    assert edges_of(*chain, bare("c", depends_on="b", config={"x": "{{ a }}"}))["c"] == ["b"]


def test_references_to_two_nodes_make_two_dependencies():
    """Whichever of them comes before the other: nobody has stated anything."""
    chain = [bare("a"), bare("b", depends_on=["a"])]
    assert edges_of(*chain, bare("c", config={"x": "{{ a }} {{ b }}"}))["c"] == ["a", "b"]


@pytest.mark.parametrize("rule", ["all_success", "none_failed", "all_done"])
def test_rules_that_wait_for_all_wait_for_the_derived_ones_too(rule: str):
    nodes = [bare("a"), bare("b", trigger_rule=rule, config={"x": "{{ a ?? null }}"})]
    assert edges_of(*nodes)["b"] == ["a"]


@pytest.mark.parametrize("rule", ["one_success", "one_failed"])
def test_rules_that_start_early_take_references_to_what_comes_before(rule: str):
    nodes = [
        bare("a"),
        bare("b", depends_on="a"),
        bare("c", depends_on="b", trigger_rule=rule, config={"x": "{{ a }} {{ b ?? null }}"}),
    ]
    assert edges_of(*nodes)["c"] == ["b"]


def test_the_document_stays_as_it_was_written():
    document = workflow(bare("a"), bare("b", config={"x": "{{ a }}"}))
    before = content_hash(document)
    compiled = compile_document(document)
    assert content_hash(compiled.definition.document) == before
    assert compiled.definition.nodes[1].dependencies == ()


def test_a_stored_document_means_the_same():
    nodes = [bare("c", config={"x": "{{ b }}"}), bare("a"), bare("b", condition="a.ok")]
    assert edges_of(*nodes) == edges_of(*nodes, stored=True) == {"c": ["b"], "a": [], "b": ["a"]}


def test_a_cycle_of_stated_dependencies_is_reported_alone():
    nodes = [node("a", "b"), node("b", "a", config={"x": "{{ c }}"}), node("c")]
    with pytest.raises(InvalidWorkflow) as refused:
        compile_document(workflow(*nodes))
    assert [problem.code for problem in refused.value.problems] == ["cycle"]


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[set[int]], list[set[int]]]:
    """Stated and mentioned nodes of each, in a hidden order without cycles."""
    count = draw(st.integers(1, 8))
    order = draw(st.permutations(range(count)))
    stated: list[set[int]] = [set() for _ in range(count)]
    mentioned: list[set[int]] = [set() for _ in range(count)]
    for position, number in enumerate(order[1:], start=1):
        earlier = st.sets(st.sampled_from(order[:position]), max_size=3)
        stated[number] = draw(earlier)
        mentioned[number] = draw(earlier)
    return stated, mentioned


@given(documents())
def test_a_mention_adds_an_edge_unless_a_stated_dependency_brings_it(
    drawn: tuple[list[set[int]], list[set[int]]],
):
    stated, mentioned = drawn
    everything = [one | other for one, other in zip(stated, mentioned, strict=True)]

    def above(number: int) -> set[int]:
        return everything[number].union(*(above(parent) for parent in everything[number]))

    nodes = [
        bare(
            f"n{number}",
            depends_on=[f"n{parent}" for parent in sorted(stated[number])],
            config={"x": [f"{{{{ n{other} }}}}" for other in mentioned[number]]},
        )
        for number in range(len(stated))
    ]
    plan = plan_of(*nodes)
    for number, parents in enumerate(stated):
        brought = parents.union(*(above(parent) for parent in parents))
        expected = [*sorted(parents), *sorted(mentioned[number] - brought)]
        assert list(plan.nodes[number].dependencies) == expected
        assert above(number) == {
            other for other in range(len(stated)) if other in _above(plan, number)
        }


def _above(plan: Any, number: int) -> set[int]:
    direct = set(plan.nodes[number].dependencies)
    return direct.union(*(_above(plan, parent) for parent in direct))
