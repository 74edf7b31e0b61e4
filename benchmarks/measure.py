"""One workload, measured in this process: prints a JSON line."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import penstock
from benchmarks.workloads import Document, task_count, workloads
from penstock.config import Settings
from penstock.runtime import run_loop
from penstock.worker.registry import Handler, Registry


class Probe:
    """A `noop` that notes when it ran: since it does nothing, its start is its outcome."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, str], float] = {}

    async def __call__(self, _config: dict[str, Any], ctx: penstock.Context) -> dict[str, Any]:
        self.at[ctx.execution_id, ctx.node_id] = time.perf_counter()
        return {}


def hops(document: Document, probe: Probe, executions: list[str]) -> list[float]:
    """Milliseconds from the last parent's outcome to the child's start."""
    parents = {node["id"]: node.get("dependencies", []) for node in document["nodes"]}
    return sorted(
        (probe.at[execution, node] - max(probe.at[execution, parent] for parent in before)) * 1000
        for execution in executions
        for node, before in parents.items()
        if before
    )


async def measure(document: Document, count: int, store: str) -> dict[str, Any]:
    probe = Probe()
    registry = Registry()
    registry.put(Handler("noop", probe))
    async with penstock.Engine(
        store, settings=Settings.load(environ={}), registry=registry
    ) as engine:
        await engine.plan_for(document)  # compiled and stored: what is measured is running it
        await (
            await engine.start({"name": "warm", "nodes": [{"id": "a", "handler": "noop"}]})
        ).result()
        began = time.perf_counter()
        handles = await engine.start_many(document, [None] * count)
        results = await asyncio.gather(*(handle.result() for handle in handles))
        seconds = time.perf_counter() - began
    if not all(result.completed for result in results):
        raise SystemExit("not every execution completed")
    waits = hops(document, probe, [handle.id for handle in handles]) or [0.0]
    tasks = count * task_count(document)
    return {
        "seconds": seconds,
        "tasks_per_second": tasks / seconds,
        "executions_per_second": count / seconds,
        "hop_ms_p50": waits[len(waits) // 2],
        "hop_ms_p99": waits[len(waits) * 99 // 100],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    name, folder = sys.argv[1:]
    document, count = workloads()[name]
    directory = tempfile.mkdtemp(dir=folder)  # whoever called removes it
    print(
        json.dumps(run_loop(measure(document, count, f"sqlite:///{Path(directory) / 'bench.db'}")))
    )


if __name__ == "__main__":
    main()
