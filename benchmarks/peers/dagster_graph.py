"""The same work on Dagster with its SQLite instance, a line of JSON for each workload.

In an environment of its own (`pip install dagster`): `python benchmarks/peers/dagster_graph.py
FOLDER [WORKLOAD …]`. Jobs run in this process, one after another, without the daemon, its queue and
the process that it starts for each run: this is Dagster at its fastest, and not how it is deployed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import dagster
from yardstick import CHAIN, FAN, LIGHT, SUBMISSIONS, WIDTH, Measured, answer, bare, light, parents

DIAMONDS = 10
DEPTH = 2
"""Of 500 diamonds and of 100 layers: the rest would take many minutes."""

ran_at: list[float] = []


@dagster.op(ins={"before": dagster.In(dagster.Nothing)}, out=dagster.Out(dagster.Nothing))
def noop() -> None:
    ran_at.append(time.perf_counter())


@dagster.op(ins={"before": dagster.In(dagster.Nothing)}, out=dagster.Out(dagster.Nothing))
def light_op() -> None:
    light()


def job_of(
    name: str, graph: Mapping[str, list[str]], op: dagster.OpDefinition = noop
) -> dagster.JobDefinition:
    dependencies = {
        dagster.NodeInvocation(op.name, alias=node): {
            "before": dagster.MultiDependencyDefinition(
                [dagster.DependencyDefinition(parent) for parent in before]
            )
        }
        if before
        else {}
        for node, before in graph.items()
    }
    return dagster.GraphDefinition(name, node_defs=[op], dependencies=dependencies).to_job(
        executor_def=dagster.in_process_executor
    )


def chain_of(size: int) -> dict[str, list[str]]:
    return {f"n{n}": [f"n{n - 1}"] if n else [] for n in range(size)}


@cache
def instance() -> dagster.DagsterInstance:
    return dagster.DagsterInstance.get()


def seconds_of(job: dagster.JobDefinition, count: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(count):
        if not job.execute_in_process(instance=instance()).success:
            raise SystemExit(f"{job.name} failed")
    return time.perf_counter() - began


def run_chain() -> Measured:
    return Measured(seconds_of(job_of("chain", chain_of(CHAIN))), CHAIN)


def run_fan() -> Measured:
    leaves = [f"leaf{n}" for n in range(FAN)]
    return Measured(
        seconds_of(
            job_of("fan", {"first": [], **{leaf: ["first"] for leaf in leaves}, "last": leaves})
        ),
        1,
    )


def diamond() -> dagster.JobDefinition:
    return job_of("diamond", {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})


def run_diamonds() -> Measured:
    return Measured(seconds_of(diamond(), DIAMONDS), DIAMONDS, "one after another")


def run_layers() -> Measured:
    return Measured(seconds_of(job_of("layers", parents(DEPTH, WIDTH))), DEPTH * WIDTH)


def run_latency() -> Measured:
    job, waits = job_of("single", {"a": []}), []
    for _ in range(SUBMISSIONS):
        ran_at.clear()
        began = time.perf_counter()
        seconds_of(job)
        waits.append(ran_at[0] - began)
    return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)


def run_light() -> Measured:
    return Measured(seconds_of(job_of("light", chain_of(LIGHT), light_op)) - bare(), LIGHT)


WORK: dict[str, Callable[[], Measured]] = {
    "chain": run_chain,
    "fan": run_fan,
    "diamonds": run_diamonds,
    "layers": run_layers,
    "latency": run_latency,
    "light": run_light,
}


def main() -> None:
    folder, *names = sys.argv[1:]
    os.environ["DAGSTER_HOME"] = str(Path(folder).resolve())
    (Path(folder) / "dagster.yaml").write_text(
        "telemetry:\n  enabled: false\npython_logs:\n  python_log_level: ERROR\n"
    )
    seconds_of(diamond())  # warm
    answer(version("dagster"), WORK, names)


if __name__ == "__main__":
    main()
