"""Does a task cost more in a large DAG, or in a file with a million finished executions?

`python -m benchmarks.growth`
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from pathlib import Path

import penstock
from benchmarks.workloads import Document, diamond, layers
from penstock.config import Settings
from penstock.embedded import run_loop
from penstock.engine.commands import ExecutionRecord
from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.sqlite import SqliteStores

CHUNK = 10_000


async def per_task(store: str, document: Document, count: int, runs: int = 3) -> tuple[float, float]:
    """Wall and loop CPU microseconds per task, the best of a few runs."""
    best = (float("inf"), float("inf"))
    async with penstock.Engine(store, settings=Settings.load(environ={})) as engine:
        await engine.plan_for(document)
        for _ in range(runs):
            began, cpu = time.perf_counter(), time.thread_time()
            handles = await asyncio.gather(*(engine.start(document) for _ in range(count)))
            await asyncio.gather(*(handle.result() for handle in handles))
            tasks = count * len(document["nodes"]) / 1e6
            best = min(best, ((time.perf_counter() - began) / tasks, (time.thread_time() - cpu) / tasks))
    return best


def fill(path: Path, first: int, last: int) -> None:
    """Finished executions as the engine leaves them: one row each, and four changes."""
    connection = sqlite3.connect(path)
    change = codec.encode(codec.Change(codec.SCHEMA, None, [], {"a": b"{}"}, []))
    for start in range(first, last, CHUNK):
        numbers = range(start, min(start + CHUNK, last))
        rows = []
        for n in numbers:
            name = f"00000000-0000-7000-8000-{n:012d}"
            record = ExecutionRecord(name, "diamond", 1, ExecutionState.PENDING, b"{}", 1.0)
            rows.append((n, name, "diamond", 1, "COMPLETED", 1.0, 2.0, codec.encode(record)))
        connection.executemany(
            "INSERT INTO executions (n, id, workflow, version, state, created_at, ended_at, intent) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        changes = [(n, change) for n in numbers for _ in range(4)]
        connection.executemany("INSERT INTO changes (n, change) VALUES (?, ?)", changes)
        connection.commit()
    connection.close()
    os.sync()  # or the next measurement waits for this one's pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--finished", type=int, nargs="*", default=[0, 100_000, 1_000_000])
    parser.add_argument("--depths", type=int, nargs="*", default=[10, 100, 1000], help="layers of 100 nodes")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="penstock-growth-") as directory:
        print("| nodes in the DAG | µs per task | loop CPU µs per task |\n|--:|--:|--:|")
        for depth in arguments.depths:
            store = f"sqlite:///{directory}/depth-{depth}.db"
            wall, cpu = run_loop(per_task(store, layers(depth, 100), 1))
            print(f"| {depth * 100:,} | {wall:.1f} | {cpu:.1f} |", flush=True)
        print("\n| finished executions in the file | µs per task | loop CPU µs per task |\n|--:|--:|--:|")
        path, filled = Path(directory) / "history.db", 1
        run_loop(SqliteStores(path).close())
        for finished in arguments.finished:
            fill(path, filled, finished + 1)
            filled = max(filled, finished + 1) + 10 * CHUNK
            wall, cpu = run_loop(per_task(f"sqlite:///{path}", diamond(), 2000))
            print(f"| {finished:,} | {wall:.1f} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main()
