"""The same work on Penstock in one process, on SQLite with `synchronous=FULL`.

Prints a line of JSON for each workload.

`python -m benchmarks.peers.penstock_embedded FOLDER [WORKLOAD …]`
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import penstock
from benchmarks.peers.penstock_tasks import GRAPHS, STAMP, UNITS
from benchmarks.peers.yardstick import LIGHT, SUBMISSIONS, WORKLOADS, Measured, answer, bare, light
from benchmarks.workloads import diamond
from penstock.config import Settings
from penstock.runtime import run_loop


async def run_graph(name: str, store: str) -> Measured:
    document, count = GRAPHS[name]
    async with penstock.Engine(store, settings=Settings.load(environ={})) as engine:
        await (await engine.start(diamond())).result()
        began = time.perf_counter()
        handles = await engine.start_many(document, [None] * count)
        results = await asyncio.gather(*(handle.result() for handle in handles))
        seconds = time.perf_counter() - began
    assert all(result.completed for result in results)
    if name != "light":
        return Measured(seconds, UNITS[name])
    floor = commit_ms(store.removeprefix("sqlite:///") + ".floor")
    note = (
        f"SQLite alone takes {floor:.2f} ms to commit one row with `synchronous=FULL` after "
        "10 ms of other work"
    )
    return Measured(seconds - bare(), UNITS[name], note)


def commit_ms(path: str) -> float:
    """How long the disk takes for each task, whatever the engine does.

    A sync after a pause is slower than many in a row.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in (
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "CREATE TABLE rows (row BLOB)",
    ):
        connection.execute(statement)
    times = []
    for _ in range(LIGHT):
        light()
        began = time.perf_counter()
        connection.execute("INSERT INTO rows VALUES (zeroblob(500))")
        times.append(time.perf_counter() - began)
    connection.close()
    return statistics.median(times) * 1000


async def run_latency(store: str) -> Measured:
    waits = []
    async with penstock.Engine(store, settings=Settings.load(environ={})) as engine:
        await (await engine.start(STAMP)).result()
        for _ in range(SUBMISSIONS):
            began = time.time()
            result = await (await engine.start(STAMP)).result()
            waits.append(result.outputs["a"]["at"] - began)
    return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)


def run(name: str, folder: str) -> Measured:
    store = f"sqlite:///{Path(tempfile.mkdtemp(dir=folder)) / 'bench.db'}"
    return run_loop(run_latency(store) if name == "latency" else run_graph(name, store))


def main() -> None:
    folder, *names = sys.argv[1:]
    work: dict[str, Callable[[], Measured]] = {
        name: partial(run, name, folder) for name in WORKLOADS
    }
    answer(penstock.__version__, work, names)


if __name__ == "__main__":
    main()
