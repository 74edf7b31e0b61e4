"""What a task costs in `penstock dev`: one process, one SQLite file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from benchmarks.costs.load import NODES, processes, submit
from benchmarks.costs.report import Costs
from penstock.runtime import run_loop


def measure(folder: Path, way: str, executions: int) -> Costs:
    path = folder / f"{way.replace(' ', '-')}.db"
    arguments = ["dev", "--port", "0", "--store", f"sqlite:///{path}"]
    tasks = executions * NODES
    with processes(folder, {"dev": arguments}, {}) as started:
        dev = started["dev"]
        before: dict[str, float] = {}

        def begin() -> None:
            before.update(cpu=dev.begin(), written=dev.written(), size=used(path))

        run_loop(submit(dev.address, way, executions, begin))
        total = (dev.seconds() - before["cpu"]) * 1e6
        sizes = {
            "sent to the disk": dev.written() - before["written"],
            "kept in the file": used(path) - before["size"],
        }
        parts = dev.stop()
        started.clear()
    micros = {("dev", part): spent / tasks for part, spent in parts.items()}
    micros["dev", "rest"] = (total - sum(parts.values())) / tasks
    return Costs("sqlite", way, tasks, micros, {name: size / tasks for name, size in sizes.items()})


def used(path: Path) -> int:
    """Bytes in the file that hold something, once everything in the log is there too."""
    with sqlite3.connect(path, timeout=30) as connection:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
    return int((pages - free) * size)
