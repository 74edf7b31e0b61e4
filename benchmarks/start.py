"""How long `penstock run` takes from nothing to its end: `python -m benchmarks.start`.

A workflow of four nodes, each run in a process of its own. Wall time is what a user waits for, and
grows on a busy machine; CPU time hardly does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NODES = [
    {"id": "a", "handler": "noop"},
    {"id": "b", "handler": "noop", "depends_on": ["a"]},
    {"id": "c", "handler": "noop", "depends_on": ["a"]},
    {"id": "d", "handler": "noop", "depends_on": ["b", "c"]},
]


def cpu_seconds() -> float:
    """CPU time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall time and CPU time of one run."""
    environ = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    cpu_before = cpu_seconds()
    begun = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun, cpu_seconds() - cpu_before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = json.dumps({"name": "four", "nodes": NODES})
        (folder / "four.json").write_text(document, encoding="utf-8")
        command = [sys.executable, "-m", "penstock", "run", "four.json"]
        measure(command, folder)  # compiles what isn't compiled yet
        wall, cpu = zip(*(measure(command, folder) for _ in range(options.runs)), strict=True)
    print(f"{options.runs} runs, load {os.getloadavg()[0]:.1f}")
    print(f"wall  median {statistics.median(wall):.3f} s, {min(wall):.3f} to {max(wall):.3f}")
    print(f"CPU   median {statistics.median(cpu):.3f} s, {min(cpu):.3f} to {max(cpu):.3f}")


if __name__ == "__main__":
    main()
