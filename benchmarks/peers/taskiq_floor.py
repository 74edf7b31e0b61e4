"""The same work on taskiq with Redis streams: a lean queue without workflows, as a floor.

A line of JSON for each.

In an environment of its own (`pip install taskiq taskiq-redis`): `python
benchmarks/peers/taskiq_floor.py redis://… [WORKLOAD …]`. What is next is decided by this process,
in memory: if it ends, the work is lost. Two worker processes; a task is acknowledged after it ran.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker
from yardstick import (
    CHAIN,
    DEPTH,
    DIAMONDS,
    FAN,
    LIGHT,
    SUBMISSIONS,
    WIDTH,
    Measured,
    answer,
    bare,
    light,
    parents,
)

PATIENCE_SECONDS = 300
LOOK_SECONDS = 0.002
"""How often a result is polled: taskiq has no other way.

With its default of 0.2 s the polling would be all that is measured.
"""
LOOKS_PER_SECOND = 5000
"""By all who wait together: more would be all that Redis does."""
URL = os.environ.get("BROKER", "redis://localhost")

broker = RedisStreamBroker(URL).with_result_backend(
    RedisAsyncResultBackend(URL, result_ex_time=600)
)


@broker.task(task_name="noop")  # the worker knows this module by another name
async def noop() -> float:
    return time.time()


@broker.task(task_name="light")
async def light_task() -> None:
    light()


waiting: set[str] = set()


async def call(task: Any) -> Any:
    sent = await task.kiq()
    waiting.add(sent.task_id)
    pause = max(LOOK_SECONDS, len(waiting) / LOOKS_PER_SECOND)
    result = await sent.wait_result(check_interval=pause, timeout=PATIENCE_SECONDS)
    waiting.remove(sent.task_id)
    result.raise_for_error()
    return result.return_value


async def run_graph(graph: Mapping[str, list[str]]) -> None:
    done: dict[str, asyncio.Task[None]] = {}

    async def run_node(before: list[str]) -> None:
        for parent in before:
            await done[parent]
        await call(noop)

    async with asyncio.TaskGroup() as group:
        for node, before in graph.items():
            done[node] = group.create_task(run_node(before))


async def run_chain() -> Measured:
    began = time.perf_counter()
    for _ in range(CHAIN):
        await call(noop)
    return Measured(time.perf_counter() - began, CHAIN)


async def run_fan() -> Measured:
    leaves = [f"leaf{n}" for n in range(FAN)]
    began = time.perf_counter()
    await run_graph({"first": [], **{leaf: ["first"] for leaf in leaves}, "last": leaves})
    return Measured(time.perf_counter() - began, 1)


async def run_diamonds() -> Measured:
    began = time.perf_counter()
    diamond = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    await asyncio.gather(*(run_graph(diamond) for _ in range(DIAMONDS)))
    return Measured(time.perf_counter() - began, DIAMONDS)


async def run_layers() -> Measured:
    began = time.perf_counter()
    await run_graph(parents(DEPTH, WIDTH))
    return Measured(time.perf_counter() - began, DEPTH * WIDTH)


async def run_latency() -> Measured:
    waits = []
    for _ in range(SUBMISSIONS):
        began = time.time()
        waits.append(await call(noop) - began)
    return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)


async def run_light() -> Measured:
    began = time.perf_counter()
    for _ in range(LIGHT):
        await call(light_task)
    return Measured(time.perf_counter() - began - bare(), LIGHT)


WORK = {
    "chain": run_chain,
    "fan": run_fan,
    "diamonds": run_diamonds,
    "layers": run_layers,
    "latency": run_latency,
    "light": run_light,
}


async def warm() -> None:
    await broker.startup()
    await run_graph({"a": [], "b": []})


def serve(url: str, names: list[str]) -> None:
    """Beside a worker, which is this module too, with the address in its environment."""
    command = [sys.executable, "-m", "taskiq", "worker", "taskiq_floor:broker", "--workers", "2"]
    command += ["--max-async-tasks", "100", "--log-level", "ERROR"]
    environment = {**os.environ, "BROKER": url}
    worker = subprocess.Popen(
        command, cwd=Path(__file__).parent, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        subprocess.run([sys.executable, __file__, *names], env=environment, check=True)
    finally:
        worker.kill()  # asked to end, it may wait for its children for ever; the runner ends those
        worker.wait()


def main() -> None:
    if sys.argv[1:2] and sys.argv[1].startswith("redis"):
        serve(sys.argv[1], sys.argv[2:])
        return

    with asyncio.Runner() as runner:

        def bound(work: Callable[[], Any]) -> Callable[[], Measured]:
            return lambda: runner.run(work())

        runner.run(warm())
        answer(version("taskiq"), {name: bound(work) for name, work in WORK.items()}, sys.argv[1:])
        runner.run(broker.shutdown())


if __name__ == "__main__":
    main()
