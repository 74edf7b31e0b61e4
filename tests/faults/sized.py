"""`python -m tests.faults.sized SHAPE SIZE FOLDER`: runs one large workflow.

Prints what it took as JSON. It is a process of its own, because its peak memory is measured.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import penstock
from penstock.definition import compile_document, parse


def _numbered(dependencies: Iterable[Iterable[int]], handler: str = "noop") -> dict[str, Any]:
    nodes = [
        {
            "id": f"n{number}",
            "handler": handler,
            "dependencies": [f"n{parent}" for parent in parents],
        }
        for number, parents in enumerate(dependencies)
    ]
    return {"name": "large", "nodes": nodes}


def wide(size: int) -> dict[str, Any]:
    """Children of one node, and parents of another."""
    return _numbered([[], *[[0]] * size, range(1, size + 1)])


def deep(size: int) -> dict[str, Any]:
    return _numbered([[], *([number] for number in range(size - 1))])


def layered(size: int) -> dict[str, Any]:
    """So many layers of so many nodes, each with two of the layer before."""
    later = [
        [size * layer + column, size * layer + (column + 1) % size]
        for layer in range(size - 1)
        for column in range(size)
    ]
    return _numbered([*[[]] * size, *later])


def all_to_all(size: int) -> dict[str, Any]:
    return _numbered([*[[]] * size, *[range(size)] * size])


def heavy(size: int) -> dict[str, Any]:
    """Outputs of so many MB, each passed on to the next node and to what comes out."""
    maker = {"id": "n0", "handler": "make", "config": {"size": size * 1_000_000}}
    passed = [
        {
            "id": f"n{n}",
            "handler": "echo",
            "dependencies": [f"n{n - 1}"],
            "config": {"text": f"{{{{ n{n - 1}.text }}}}"},
        }
        for n in (1, 2, 3)
    ]
    return {"name": "large", "nodes": [maker, *passed]}


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    make_document.__name__: make_document
    for make_document in (wide, deep, layered, all_to_all, heavy)
}


@penstock.handler("make")
def make(config: dict[str, Any], _ctx: penstock.Context) -> dict[str, str]:
    return {"text": "x" * config["size"]}


async def main(shape: str, size: int, folder: str) -> dict[str, Any]:
    text = json.dumps(SHAPES[shape](size))
    before = time.process_time()  # of this process: others may be busy
    plan = compile_document(parse(text), allow_unknown_handlers=True, checked=True).plan
    validated = time.process_time() - before
    async with penstock.Engine(f"sqlite:///{folder}/store.db") as engine:
        begun = time.perf_counter()
        result = await (await engine.start(json.loads(text))).result()
        ended = time.perf_counter()
    return {
        "nodes": len(plan.nodes),
        "edges": sum(plan.dependency_counts),
        "state": str(result.state),
        "validation_seconds": validated,
        "run_seconds": ended - begun,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))) + "\n"
    )
