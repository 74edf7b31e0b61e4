"""The graphs that are run. Every node is a `noop`, which runs on a worker like any handler."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

GRAPHS = Path(__file__).resolve().parents[2] / "shared" / "data" / "dags"

Document = dict[str, Any]


def _document(name: str, nodes: Iterable[tuple[str, list[str]]]) -> Document:
    return {
        "name": name,
        "nodes": [{"id": i, "handler": "noop", "dependencies": parents} for i, parents in nodes],
    }


def chain(size: int) -> Document:
    return _document(f"chain-{size}", ((f"n{i}", [f"n{i - 1}"] if i else []) for i in range(size)))


def fan(size: int) -> Document:
    leaves = [f"n{i}" for i in range(size)]
    return _document(
        f"fan-{size}", [("first", []), *((leaf, ["first"]) for leaf in leaves), ("last", leaves)]
    )


def layers(depth: int, width: int) -> Document:
    """Each node has two parents in the layer before."""
    nodes = [
        (f"n{d}.{w}", [f"n{d - 1}.{w}", f"n{d - 1}.{(w + 1) % width}"] if d else [])
        for d in range(depth)
        for w in range(width)
    ]
    return _document(f"layers-{depth}x{width}", nodes)


def diamond() -> Document:
    return _document("diamond", [("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"])])


def each(size: int) -> Document:
    """A map of so many items, each of them one node."""
    return {
        "name": f"map-{size}",
        "nodes": [{"id": "each", "for_each": list(range(size)), "handler": "noop"}],
    }


def each_body(size: int) -> Document:
    """A map of so many items, each of them a sub-graph of one node."""
    body = [{"id": "work", "handler": "noop"}]
    return {
        "name": f"map-body-{size}",
        "nodes": [{"id": "each", "for_each": list(range(size)), "nodes": body}],
    }


def task_count(document: Document) -> int:
    """The tasks of one execution: a map has one for each item and node of its body."""
    return sum(
        len(node["for_each"]) * len(node.get("nodes", [node])) if "for_each" in node else 1
        for node in document["nodes"]
    )


def real_graphs() -> list[Document]:
    """The graphs beside the project, where they are there."""
    graphs = []
    for path in sorted(GRAPHS.glob("*.json*")):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        graph = json.loads(data)
        nodes = graph["dag"]["nodes"] if "dag" in graph else graph["nodes"]
        graphs.append(
            _document(
                graph["name"], ((node["id"], node.get("dependencies") or []) for node in nodes)
            )
        )
    return graphs


def workloads() -> dict[str, tuple[Document, int]]:
    """By name: the document, and how many executions of it are started at once."""
    work = {
        "chain of 1,000": (chain(1000), 1),
        "1 → 1,000 → 1": (fan(1000), 1),
        "100 × 100 layers": (layers(100, 100), 1),
        "2,000 diamonds at once": (diamond(), 2000),
        "1 → 10,000 → 1": (fan(10_000), 1),
        "map of 10,000": (each(10_000), 1),
        "map of 10,000, bodies": (each_body(10_000), 1),
    }
    for graph in real_graphs():
        work[str(graph["name"])] = (graph, 1)
    return work
