"""The nodes together, judged by naive models."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.definition import graph
from tests.definition.documents import assert_linear
from tests.sizes import explored, size

Edges = list[list[int]]


@st.composite
def dags(draw: st.DrawFn, limit: int = 12) -> Edges:
    """Dependencies of each node; a hidden order keeps them free of cycles, and is shuffled away."""
    size = draw(st.integers(0, limit))
    order = draw(st.permutations(range(size)))
    dependencies: Edges = [[] for _ in range(size)]
    for position, number in enumerate(order):
        dependencies[number] = (
            draw(st.lists(st.sampled_from(order[:position]), unique=True)) if position else []
        )
    return dependencies


@st.composite
def graphs(draw: st.DrawFn, limit: int = 9) -> Edges:
    size = draw(st.integers(1, limit))
    drawn = [draw(st.lists(st.integers(0, size - 1), unique=True, max_size=3)) for _ in range(size)]
    return [
        [parent for parent in parents if parent != number] for number, parents in enumerate(drawn)
    ]


def order_of(dependencies: Edges) -> list[int]:
    return graph.topological_order(dependencies, graph.children_of(dependencies))


def ancestors_of(number: int, dependencies: Edges) -> set[int]:
    ancestors: set[int] = set()
    waiting = list(dependencies[number])
    while waiting:
        parent = waiting.pop()
        if parent not in ancestors:
            ancestors.add(parent)
            waiting += dependencies[parent]
    return ancestors


def on_a_cycle(dependencies: Edges) -> set[int]:
    return {
        number
        for number in range(len(dependencies))
        if number in ancestors_of(number, dependencies)
    }


@settings(deadline=None)
@given(dags())
def test_children_are_dependencies_turned_around(dependencies: Edges):
    edges = {(parent, child) for child, parents in enumerate(dependencies) for parent in parents}
    children = graph.children_of(dependencies)
    assert {
        (parent, child) for parent, numbers in enumerate(children) for child in numbers
    } == edges
    assert sum(map(len, children)) == len(edges)


@settings(deadline=None)
@given(dags())
def test_the_order_has_every_node_once_and_after_its_dependencies(dependencies: Edges):
    order = order_of(dependencies)
    assert sorted(order) == list(range(len(dependencies)))
    position = {number: i for i, number in enumerate(order)}
    assert all(
        position[parent] < position[child]
        for child, parents in enumerate(dependencies)
        for parent in parents
    )
    assert graph.find_cycles(dependencies, order) == []


@settings(deadline=None)
@given(graphs())
def test_the_order_leaves_out_exactly_what_is_on_a_cycle_or_behind_one(dependencies: Edges):
    cyclic = on_a_cycle(dependencies)
    behind = {
        number for number in range(len(dependencies)) if ancestors_of(number, dependencies) & cyclic
    }
    assert set(order_of(dependencies)) == set(range(len(dependencies))) - cyclic - behind


@settings(deadline=None)
@given(graphs())
def test_the_cycles_are_real_and_apart_and_nothing_cyclic_is_left_without_them(dependencies: Edges):
    cycles = graph.find_cycles(dependencies, order_of(dependencies), limit=100)
    for cycle in cycles:
        assert len(set(cycle)) == len(cycle) >= 2
        assert cycle[0] == min(cycle)
        assert all(
            parent in dependencies[child]
            for parent, child in zip(cycle, cycle[1:] + cycle[:1], strict=True)
        )
    reported = [number for cycle in cycles for number in cycle]
    assert len(set(reported)) == len(reported)
    broken = [
        [] if i in reported else [p for p in parents if p not in reported]
        for i, parents in enumerate(dependencies)
    ]
    assert on_a_cycle(broken) == set()


@settings(deadline=None)
@given(graphs(), st.integers(1, 3))
def test_no_more_cycles_are_reported_than_asked_for(dependencies: Edges, limit: int):
    order = order_of(dependencies)
    every = graph.find_cycles(dependencies, order, limit=100)
    assert graph.find_cycles(dependencies, order, limit=limit) == every[:limit]


@settings(deadline=None)
@given(dags(), st.data())
def test_missing_ancestors_are_those_that_cannot_be_reached(
    dependencies: Edges, data: st.DataObject
):
    numbers = st.integers(0, len(dependencies) - 1)
    queries = data.draw(st.lists(st.tuples(numbers, numbers))) if dependencies else []
    expected = [
        (node, other) for node, other in queries if other not in ancestors_of(node, dependencies)
    ]
    assert sorted(graph.missing_ancestors(queries, dependencies, order_of(dependencies))) == sorted(
        expected
    )


@pytest.mark.parametrize("size", [1023, 1024, 1025, 2049])
def test_ancestors_are_right_where_the_bit_sets_are_split(size: int):
    """A ladder: the first parent of a rung is on its own side.

    So the other side is never found by the quick sieves.
    """
    dependencies: Edges = [[], []]
    for i in range(2, 2 * size, 2):
        dependencies += [[i - 2, i - 1], [i - 1]]
    top = 2 * size - 2
    queries = [(top, other) for other in range(1, 2 * size, 2)]
    queries += [(top + 1, other) for other in range(0, 2 * size, 2)]
    missing = graph.missing_ancestors(queries, dependencies, order_of(dependencies))
    assert sorted(missing) == [
        (top, top + 1),
        *((top + 1, other) for other in range(0, 2 * size, 2)),
    ]


def chain(size: int) -> Edges:
    return [[i - 1] if i else [] for i in range(size)]


def ring(size: int) -> Edges:
    return [[(i - 1) % size] for i in range(size)]


def fan(size: int) -> Edges:
    return [[], *([0] for _ in range(size)), list(range(1, size + 1))]


def pairs(size: int) -> Edges:
    return [[i ^ 1] for i in range(2 * size)]


@pytest.mark.parametrize("shape", [chain, fan])
def test_order_and_ancestors_take_linear_work(shape: Any):
    def check(size: int) -> Any:
        dependencies = shape(size)
        queries = (
            [(size, 0), (size - 1, 0), (0, size)] * size
            if shape is fan
            else [(size - 1, i) for i in range(size)]
        )
        return lambda: graph.missing_ancestors(queries, dependencies, order_of(dependencies))

    assert_linear(check, 100)


@pytest.mark.parametrize("shape", [ring, pairs])
def test_cycles_take_linear_work(shape: Any):
    def check(size: int) -> Any:
        dependencies = shape(size)
        return lambda: graph.find_cycles(dependencies, order_of(dependencies))

    assert_linear(check, 100)


@explored
def test_a_long_chain_and_a_long_ring_do_not_recurse():
    count = size(short=10_000, full=100_000)
    last = count - 1
    assert order_of(chain(count)) == list(range(count))
    assert graph.missing_ancestors([(last, 0), (0, last)], chain(count), range(count)) == [
        (0, last)
    ]
    assert graph.find_cycles(ring(count), []) == [list(range(count))]
