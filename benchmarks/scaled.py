"""`python -m benchmarks.scaled`: orchestrators and workers on real servers.

Each is a process, on a real Redis and a real PostgreSQL.

Executions are submitted by this process, through the same service that the HTTP API stands on.
Times are those that the engine recorded, by Redis's clock, so nothing here has to keep up with the
load.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from benchmarks.workloads import (
    Document,
    chain,
    diamond,
    each,
    each_body,
    fan,
    layers,
    task_count,
)
from penstock.config import Settings
from penstock.local import PostgresServer, RedisServer
from penstock.runtime import open_scaled, run_loop, service_over
from penstock.service import Service
from penstock.service.submissions import StartRequest
from penstock.stores.postgres.migrating import migrate
from penstock.stores.scaled import ScaledStores

PATIENCE_SECONDS = 300.0
STEP_SECONDS = 0.02
ASKED_AT_ONCE = 100


class Bench:
    def __init__(self, stores: ScaledStores, service: Service, processes: dict[str, int]) -> None:
        self.stores = stores
        self.service = service
        self.processes = processes

    async def run(self, document: Document, count: int) -> dict[str, float]:
        plan = await self.service.workflows.plan(document)
        before = self._cpu()
        began = self.stores.hot.now()
        ids = await self.service.submissions.submit_many(plan, [None] * count, {})
        submitted = self.stores.hot.now() - began
        archived_at = await self.archived(ids)
        used = {name: seconds - before[name] for name, seconds in self._cpu().items()}
        rows = await self._rows(
            "SELECT max(ended_at), count(*) FROM executions WHERE id = ANY(%s)", ids
        )
        ended_at = float(rows[0][0])
        seconds, tasks = ended_at - began, count * task_count(document)
        hops = await self._hops(ids[0])
        return {
            "seconds": seconds,
            "executions_per_second": count / seconds,
            "tasks_per_second": tasks / seconds,
            "submit_seconds": submitted,
            "archive_lag_seconds": archived_at - ended_at,
            "hop_ms_p50": hops[len(hops) // 2],
            "hop_ms_p99": hops[len(hops) * 99 // 100],
            **{f"{name}_us_per_task": cpu / tasks * 1e6 for name, cpu in used.items()},
        }

    async def archived(self, ids: list[str]) -> float:
        """When all of them were in PostgreSQL as completed.

        Asked for a few at a time: asking for all of them again and again would be a good part of
        what PostgreSQL does.
        """
        running = "SELECT count(*) FROM executions WHERE id = ANY(%s) AND ended_at IS NULL"
        end = time.monotonic() + PATIENCE_SECONDS
        for first in range(0, len(ids), ASKED_AT_ONCE):
            while (await self._rows(running, ids[first : first + ASKED_AT_ONCE]))[0][0]:
                if time.monotonic() > end:
                    raise SystemExit(f"some executions haven't ended after {PATIENCE_SECONDS:g} s")
                await asyncio.sleep(STEP_SECONDS)
        archived_at = self.stores.hot.now()
        done = await self._rows(
            "SELECT count(*) FROM executions WHERE id = ANY(%s) AND state = 'COMPLETED'", ids
        )
        assert done[0][0] == len(ids), f"{done[0][0]} of {len(ids)} completed"
        return archived_at

    async def _hops(self, execution_id: str) -> list[float]:
        """Milliseconds from one outcome to the next, of nodes one after another."""
        lines = await self.service.executions.history(execution_id)
        ends = [line.at for line in lines if line.node_id and line.after == "COMPLETED"]
        return sorted((after - before) * 1000 for before, after in pairwise(ends)) or [0.0]

    async def _rows(self, statement: str, ids: list[str]) -> list[tuple[Any, ...]]:
        return await self.stores.cold.database.rows(statement, (ids,))

    def _cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(psutil.Process(pid)) for name, pid in self.processes.items()}


def cpu_seconds(process: psutil.Process) -> float:
    times = [process.cpu_times()]
    times += [child.cpu_times() for child in process.children(recursive=True)]
    return float(sum(spent.user + spent.system for spent in times))


@contextlib.contextmanager
def servers(folder: Path, append_only: str) -> Iterator[tuple[RedisServer, PostgresServer]]:
    with (
        RedisServer(folder / "redis", append_only=append_only) as redis,  # type: ignore[arg-type]
        PostgresServer(folder / "postgres") as postgres,
    ):
        migrate(postgres.url, 8)
        yield redis, postgres


@contextlib.contextmanager
def roles(settings: dict[str, str], orchestrators: int, workers: int) -> Iterator[dict[str, int]]:
    """Names and process ids."""
    names = [f"orchestrator{n}" for n in range(orchestrators)] + [
        f"worker{n}" for n in range(workers)
    ]
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            command = [sys.executable, "-m", "penstock", name.rstrip("0123456789")]
            started[name] = subprocess.Popen(
                command,
                env={**os.environ, **settings},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        for process in started.values():
            assert process.stdout is not None
            process.stdout.readline()
        yield {name: process.pid for name, process in started.items()}
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.communicate()


@contextlib.asynccontextmanager
async def bench(url: str, database: str, processes: dict[str, int]) -> AsyncIterator[Bench]:
    settings = Settings.load(
        {"store": url, "database": database, "map_items_max": 100_000}, environ={}
    )
    async with open_scaled(settings) as stores:
        assert isinstance(stores, ScaledStores)
        service = service_over(stores, settings)
        while len(await stores.fleet.orchestrators()) < sum(  # noqa: ASYNC110
            "orch" in name for name in processes
        ):
            await asyncio.sleep(STEP_SECONDS)
        warm = await service.submissions.submit(StartRequest(workflow=diamond()))
        await service.executions.end(warm.execution_id, 30)
        await asyncio.sleep(2)  # partitions settle down among the orchestrators
        yield Bench(stores, service, processes)
        await service.close()


WORK: dict[str, tuple[Document, int]] = {
    "5,000 diamonds at once": (diamond(), 5000),
    "chain of 1,000": (chain(1000), 1),
    "100 × 100 layers": (layers(100, 100), 1),
    "1 → 10,000 → 1": (fan(10_000), 1),
    "map of 10,000": (each(10_000), 1),
    "map of 10,000, bodies": (each_body(10_000), 1),
}


async def measure(
    arguments: argparse.Namespace, url: str, database: str, processes: dict[str, int]
) -> dict[str, Any]:
    results: dict[str, Any] = {}
    async with bench(url, database, processes) as running:
        for name, (document, count) in WORK.items():
            if arguments.only not in name:
                continue
            runs = [await running.run(document, count) for _ in range(arguments.runs)]
            results[name] = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            show(name, results[name])
    return results


def show(name: str, figures: dict[str, float]) -> None:
    cpu = ", ".join(
        f"{key.removesuffix('_us_per_task')} {value:.0f}"
        for key, value in figures.items()
        if "_us_" in key
    )
    print(
        f"| {name:<24} | {figures['seconds']:7.3f} | {figures['tasks_per_second']:8,.0f} "
        f"| {figures['executions_per_second']:8,.1f} | {figures['hop_ms_p50']:6.3f} | "
        f"{figures['hop_ms_p99']:6.3f} "
        f"| {figures['archive_lag_seconds']:5.2f} | {cpu} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orchestrators", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--append-only", choices=["everysec", "always"], default="everysec")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path.cwd(),
        help="where the servers keep their files: not tmpfs",
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(
        f"{arguments.orchestrators} + {arguments.workers}, AOF {arguments.append_only}, medians "
        f"of {arguments.runs}"
    )
    print(
        "| work | seconds | tasks/s | executions/s | hop p50 | hop p99 | archive lag s | CPU µs "
        "per task |"
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="penstock-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with servers(folder, arguments.append_only) as (redis, postgres):
            settings = {
                "PENSTOCK_STORE": redis.url,
                "PENSTOCK_DATABASE": postgres.url,
                "PENSTOCK_LOG_LEVEL": "WARNING",
            }
            with roles(settings, arguments.orchestrators, arguments.workers) as processes:
                everything = {**processes, "redis": redis.pid, "postgres": postgres.pid}
                results = run_loop(measure(arguments, redis.url, postgres.url, everything))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
