"""The same work on Penstock's roles as processes, on Redis and PostgreSQL.

Prints a line of JSON for each workload.

`python -m benchmarks.peers.penstock_scaled REDIS DATABASE PROCESSES [WORKLOAD …]`, with so many
orchestrators and as many workers. Executions are submitted by this process; their ends are those
that the engine recorded.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

import penstock
from benchmarks.peers.penstock_tasks import GRAPHS, STAMP, UNITS
from benchmarks.peers.yardstick import SUBMISSIONS, WORKLOADS, Measured, answer, bare
from benchmarks.scaled import Bench, bench, roles
from penstock.runtime import run_loop
from penstock.service.submissions import StartRequest
from penstock.stores.postgres.migrating import migrate

PATIENCE_SECONDS = 60


async def run_latency(running: Bench) -> Measured:
    waits = []
    for _ in range(SUBMISSIONS):
        began = running.stores.hot.now()
        execution_id = await running.service.submissions.submit(StartRequest(workflow=STAMP))
        await running.service.executions.end(execution_id.execution_id, PATIENCE_SECONDS)
        lines = await running.service.executions.history(execution_id.execution_id)
        waits.append(
            next(line.at for line in lines if line.node_id and line.after == "RUNNING") - began
        )
    return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)


async def measure(name: str, redis: str, database: str, processes: dict[str, int]) -> Measured:
    async with bench(redis, database, processes) as running:
        if name == "latency":
            return await run_latency(running)
        figures = await running.run(*GRAPHS[name])
        return Measured(figures["seconds"] - (bare() if name == "light" else 0.0), UNITS[name])


def main() -> None:
    redis, database, count, *names = sys.argv[1:]
    migrate(database, 8)
    settings = {
        "PENSTOCK_STORE": redis,
        "PENSTOCK_DATABASE": database,
        "PENSTOCK_LOG_LEVEL": "WARNING",
        "PENSTOCK_HANDLERS": "benchmarks.peers.penstock_tasks",
    }
    with roles(settings, int(count), int(count)) as processes:

        def bound(name: str) -> Callable[[], Measured]:
            return lambda: run_loop(measure(name, redis, database, processes))

        answer(penstock.__version__, {name: bound(name) for name in WORKLOADS}, names)


if __name__ == "__main__":
    main()
