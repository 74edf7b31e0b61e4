"""`python -m benchmarks.footprint`: cost of idle processes, and of a waiting node in Redis."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import psutil

from benchmarks.scaled import bench, roles, servers
from penstock.runtime import run_loop
from penstock.stores.scaled import ScaledStores

NODES = 10_000


def fan_that_waits() -> dict[str, Any]:
    """Everything behind its first node is in a queue that nobody serves."""
    leaves = [
        {"id": f"n{i}", "handler": "noop", "queue": "nobody", "dependencies": ["first"]}
        for i in range(NODES)
    ]
    return {"name": "waits", "nodes": [{"id": "first", "handler": "noop"}, *leaves]}


async def used_memory(stores: ScaledStores) -> int:
    info = (await stores.server.main.call("INFO", "memory")).decode()
    return int(info.partition("used_memory:")[2].split()[0])


async def memory(store: str, database: str, processes: dict[str, int]) -> float:
    """Bytes in Redis for each node that waits for a worker, without an output."""
    async with bench(store, database, processes) as running:
        plan = await running.service.workflows.plan(fan_that_waits())
        before = await used_memory(running.stores)
        await running.service.submissions.submit_many(plan, [None], {})
        while (await running.stores.queue.depths()).get("nobody", (0, 0))[0] < NODES:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        return (await used_memory(running.stores) - before) / NODES


def idle(processes: dict[str, int], seconds: float) -> dict[str, tuple[float, float]]:
    """Of each process: per cent of a core, and by how many MB it grew."""
    running = {name: psutil.Process(pid) for name, pid in processes.items()}
    before = {name: _usage(process) for name, process in running.items()}
    run_loop(asyncio.sleep(seconds))
    after = {name: _usage(process) for name, process in running.items()}
    return {
        name: ((after[name][0] - cpu) / seconds * 100, (after[name][1] - size) / 2**20)
        for name, (cpu, size) in before.items()
    }


def _usage(process: psutil.Process) -> tuple[float, int]:
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="penstock-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with servers(folder, "everysec") as (redis, postgres):
            settings = {
                "PENSTOCK_STORE": redis.url,
                "PENSTOCK_DATABASE": postgres.url,
                "PENSTOCK_LOG_LEVEL": "WARNING",
            }
            with roles(settings, 1, arguments.workers) as processes:
                print(
                    "a node that waits takes "
                    f"{run_loop(memory(redis.url, postgres.url, processes)):.0f} bytes in Redis"
                )
            os.sync()
            with roles(settings, 1, arguments.workers) as processes:
                run_loop(asyncio.sleep(5))
                everything = {**processes, "redis": redis.pid, "postgres": postgres.pid}
                for role, (cpu, grown) in idle(everything, arguments.seconds).items():
                    print(
                        f"{role}: {cpu:.2f} % of a core, {grown:+.1f} MB in {arguments.seconds:g} s"
                    )


if __name__ == "__main__":
    main()
