"""Large documents: real graphs, and the shapes that break naive code."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from penstock.definition import Plan, compile_document, parse
from penstock.definition.parse import Limits
from tests.definition.documents import assert_linear, problems_of

DAGS = Path(__file__).parents[3] / "shared" / "data" / "dags"
NODES_AND_EDGES = {
    "helloworld-forkjoin-10-chameleon.json": (10, 16),
    "rnaseq-dirt02-001.json": (197, 451),
    "seismology-chameleon-1100p-001.json.gz": (1101, 1100),
    "montage-chameleon-2mass-05d-001.json.gz": (1738, 4698),
}


def made_like(nodes: int, edges: int) -> dict[str, Any]:
    """A graph of that size with dots in its ids, for where the real one isn't at hand.

    Always the same.
    """
    chance = random.Random(nodes)
    dependencies: list[set[int]] = [set() for _ in range(nodes)]
    edge_count = 0
    while edge_count < edges:
        child = chance.randrange(1, nodes)
        parent = chance.randrange(child)
        edge_count += parent not in dependencies[child]
        dependencies[child].add(parent)
    return document_of(
        [[f"GROUP.{i % 7}.TASK_{i}" for i in sorted(parents)] for parents in dependencies],
        "GROUP.{0}.TASK_{1}",
    )


def document_of(dependencies: list[list[str]], name: str = "n{1}") -> dict[str, Any]:
    nodes = [
        {"id": name.format(i % 7, i), "handler": "noop", "dependencies": parents}
        for i, parents in enumerate(dependencies)
    ]
    return {"name": "large", "dag": {"nodes": nodes}}


def numbered(dependencies: list[Any]) -> dict[str, Any]:
    return document_of([[f"n{parent}" for parent in parents] for parents in dependencies])


def text_of(file_name: str) -> str:
    path = DAGS / file_name
    if not path.exists():
        return json.dumps(made_like(*NODES_AND_EDGES[file_name]))
    return (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).decode()


def compiled(document: dict[str, Any], limits: Limits | None = None) -> Plan:
    """Through text and back, as a submission goes, and with a look at what came out."""
    plan = compile_document(
        parse(json.dumps(document), limits=limits), limits=limits, checked=True
    ).plan
    assert_whole(plan, document)
    return plan


def assert_whole(plan: Plan, document: dict[str, Any]) -> None:
    nodes = document["dag"]["nodes"]
    assert [node.node_id for node in plan.nodes] == [raw["id"] for raw in nodes]
    assert [[plan.nodes[i].node_id for i in node.dependencies] for node in plan.nodes] == [
        raw["dependencies"] for raw in nodes
    ]
    assert plan.dependency_counts == [len(raw["dependencies"]) for raw in nodes]
    position = {number: i for i, number in enumerate(plan.order)}
    assert len(position) == len(plan.order) == len(nodes)
    assert all(
        position[parent] < position[i]
        for i, node in enumerate(plan.nodes)
        for parent in node.dependencies
    )
    assert sum(len(node.children) for node in plan.nodes) == sum(plan.dependency_counts)


@pytest.mark.parametrize(("file_name", "size"), NODES_AND_EDGES.items())
def test_real_graphs_compile(file_name: str, size: tuple[int, int]):
    plan = compiled(json.loads(text_of(file_name)))
    assert (len(plan.nodes), sum(plan.dependency_counts)) == size


@pytest.mark.parametrize("size", NODES_AND_EDGES.values())
def test_made_up_graphs_of_the_same_sizes_compile(size: tuple[int, int]):
    plan = compiled(made_like(*size))
    assert (len(plan.nodes), sum(plan.dependency_counts)) == size


def test_10_000_nodes_side_by_side():
    plan = compiled(numbered([[], *[[0]] * 10_000, range(1, 10_001)]))
    assert len(plan.nodes[0].children) == len(plan.nodes[10_001].dependencies) == 10_000


def test_10_000_nodes_in_a_row():
    plan = compiled(numbered([[], *([i] for i in range(9_999))]))
    assert plan.order == list(range(10_000))


def test_200_times_200_nodes_each_with_each():
    plan = compiled(numbered([*[[]] * 200, *[range(200)] * 200]))
    assert sum(plan.dependency_counts) == 40_000


def test_100_layers_of_100_nodes_each_with_each():
    layers = [*[[]] * 100, *(range(100 * i, 100 * i + 100) for i in range(99) for _ in range(100))]
    assert sum(compiled(numbered(layers)).dependency_counts) == 990_000


def test_100_000_nodes():
    nodes: list[dict[str, Any]] = [{"id": "n0", "handler": "noop"}]
    nodes += [
        {"id": f"n{i}", "handler": "noop", "depends_on": [f"n{i // 2}"]} for i in range(1, 100_000)
    ]
    for node in nodes[1::100]:
        node |= {"config": {"x": "{{ n0.x }}"}, "condition": "n0.x > 0"}
    plan = compile_document({"nodes": nodes}).plan
    assert len(plan.order) == 100_000
    assert plan.roots == (0,)


def test_100_001_nodes_are_refused():
    (problem,) = problems_of({"nodes": [{}] * 100_001})
    assert (problem.code, problem.path) == ("too_large", "nodes")
    assert problem.message == "the workflow has 100,001 nodes; the limit is 100,000"


@pytest.mark.parametrize("far", [1, 2, 50])
def test_compiling_takes_linear_work(far: int):
    """References go near and far up, in a graph where every node has two parents."""

    def compile_ladder(size: int) -> Any:
        document = numbered(
            [[parent for parent in (i - 2, i - 1) if parent >= 0] for i in range(size)]
        )
        for i, node in enumerate(document["dag"]["nodes"][far:]):
            node["config"] = {"x": f"{{{{ n{i}.x }}}}"}
        return lambda: compile_document(document)

    assert_linear(compile_ladder, 100)


def test_a_node_that_refers_to_all_others_takes_linear_work():
    def compile_fan(size: int) -> Any:
        document = numbered([[], *[[0]] * size, range(1, size + 1), [size + 1]])
        document["dag"]["nodes"][-1]["config"] = {"all": [f"{{{{ n{i} }}}}" for i in range(size)]}
        return lambda: compile_document(document)

    assert_linear(compile_fan, 100)
