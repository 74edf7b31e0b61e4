"""`python -m benchmarks`: each workload several times, the medians as a table and as JSON."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

import penstock
from benchmarks.workloads import workloads


def machine(folder: Path) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "penstock": penstock.__version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "file_system": file_system(folder),
        "fsync_ms_p50": round(fsync_ms(folder), 3),
    }


def file_system(folder: Path) -> str:
    """Of the mount that the folder is on: the longest that it lies under."""
    mounts = [
        (len(part.mountpoint), part.fstype)
        for part in psutil.disk_partitions(all=True)
        if folder.resolve().is_relative_to(part.mountpoint)
    ]
    return max(mounts, default=(0, "unknown"))[1]


def fsync_ms(folder: Path) -> float:
    """The median time to make 4 KiB durable: what no commit can be faster than."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def run_one(name: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.measure", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--folder", type=Path, default=Path.cwd(), help="where the store's files go: not tmpfs"
    )
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--json", type=Path, help="also write the figures to this file, as JSON")
    arguments = parser.parse_args()
    facts = machine(arguments.folder)
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(
        f"SQLite WAL, synchronous=FULL; medians of {arguments.runs} runs, each in a process of "
        "its own\n"
    )
    print(
        f"| {'work':<36} | seconds | tasks/s | executions/s | hop p50 ms | hop p99 ms | peak MB |"
    )
    print(f"|{'-' * 38}|--------:|--------:|-------------:|-----------:|-----------:|--------:|")
    results = {}
    # removed at the very end: on a file system with discard, removing one run's files slows down
    # the next one's syncs
    directory = Path(tempfile.mkdtemp(dir=arguments.folder, prefix="penstock-bench-"))
    atexit.register(shutil.rmtree, directory)
    for name in workloads():
        if arguments.only not in name:
            continue
        figures = results[name] = medians([run_one(name, directory) for _ in range(arguments.runs)])
        print(
            f"| {name:<36} | {figures['seconds']:7.3f} | {figures['tasks_per_second']:7,.0f} "
            f"| {figures['executions_per_second']:12,.1f} | {figures['hop_ms_p50']:10.3f} | "
            f"{figures['hop_ms_p99']:10.3f} "
            f"| {figures['peak_mb']:7.0f} |",
            flush=True,
        )
    if arguments.json:
        report = json.dumps({"machine": facts, "results": results}, indent=2, ensure_ascii=False)
        arguments.json.write_text(report + "\n")


if __name__ == "__main__":
    main()
