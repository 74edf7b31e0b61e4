"""The same work on Airflow 3 with PostgreSQL and the local executor.

Prints a line of JSON for each workload.

In an environment of its own (`pip install apache-airflow psycopg2-binary asyncpg`):
`python benchmarks/peers/airflow_dag.py postgresql://… [WORKLOAD …]`.

Scheduler, DAG processor and API server are processes, as in every Airflow; a task is a process,
too. Runs are requested over its API; their times are those that Airflow recorded.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg2
from yardstick import FAN, LIGHT_SECONDS, Measured, answer, bare

CHAIN, DIAMONDS, SUBMISSIONS, LIGHT = 10, 5, 3, 5
DEPTH, WIDTH = 2, 10
"""Smaller workloads than the others have, because a task takes seconds here.

The others have 100 hops, 500 diamonds, 20 submissions, 40 light tasks and 100 × 100 nodes.
"""
PATIENCE_SECONDS = 300
LOOK_SECONDS = 0.1

DAGS = f"""
import time
from airflow.sdk import dag, task

@task
def noop(): pass

@task
def light():
    end = time.perf_counter() + {LIGHT_SECONDS}
    while time.perf_counter() < end:
        sum(range(100))

def made(name, build):
    @dag(dag_id=name, schedule=None, catchup=False, max_active_runs=100, max_active_tasks=1000)
    def it(): build()
    return it()

def nodes(count, kind=noop):
    return [kind.override(task_id=f"n{{n}}")() for n in range(count)]

def in_sequence(count, kind=noop):
    before = None
    for node in nodes(count, kind):
        if before is not None:
            before >> node
        before = node

def fan():
    first, *leaves, last = nodes({FAN} + 2)
    first >> leaves >> last

def diamond():
    a, b, c, d = nodes(4)
    a >> [b, c] >> d

def layers():
    all_of_them = nodes({DEPTH} * {WIDTH})
    for n in range({WIDTH}, {DEPTH} * {WIDTH}):
        above = n - n % {WIDTH} - {WIDTH}
        [all_of_them[above + n % {WIDTH}], all_of_them[above + (n + 1) % {WIDTH}]] >> all_of_them[n]

made("chain", lambda: in_sequence({CHAIN}))
made("fan", fan)
made("diamond", diamond)
made("layers", layers)
made("single", lambda: nodes(1))
made("light", lambda: in_sequence({LIGHT}, light))
"""


class Airflow:
    def __init__(self, database: str, port: int) -> None:
        self._database = database
        self._address = f"http://127.0.0.1:{port}"
        self._headers: dict[str, str] = {}

    def log_in(self) -> None:
        token = self._call("/auth/token")["access_token"]
        self._headers = {"Authorization": f"Bearer {token}"}

    def run(self, dag: str, count: int = 1) -> list[str]:
        """Names of runs that have ended well."""
        body = {"logical_date": None}
        names = [
            self._call(f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"] for _ in range(count)
        ]
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            states = [
                self._rows("SELECT state FROM dag_run WHERE run_id = %s", name)[0][0]
                for name in names
            ]
            if all(state == "success" for state in states):
                return names
            if "failed" in states:
                raise SystemExit(f"a run of {dag} failed")
            time.sleep(LOOK_SECONDS)
        raise SystemExit(f"{dag} hasn't ended after {PATIENCE_SECONDS} s")

    def ended_at(self, names: list[str]) -> float:
        return max(
            self._time("SELECT end_date FROM dag_run WHERE run_id = %s", name) for name in names
        )

    def began_at(self, name: str) -> float:
        return self._time("SELECT min(start_date) FROM task_instance WHERE run_id = %s", name)

    def wait_for_dags(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                if len(self._rows("SELECT dag_id FROM serialized_dag")) >= 6:
                    self.log_in()
                    return
            except (psycopg2.Error, urllib.error.URLError, OSError):
                pass
            time.sleep(LOOK_SECONDS)
        raise SystemExit("Airflow isn't ready")

    def _time(self, statement: str, name: str) -> float:
        at: datetime = self._rows(statement, name)[0][0]
        return at.timestamp()

    def _rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(psycopg2.connect(self._database)) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()

    def _call(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, self._headers)  # noqa: S310 -- our own, over http
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
            return json.load(reply)


def work_of(airflow: Airflow) -> dict[str, Callable[[], Measured]]:
    def timed(dag: str, units: int, count: int = 1, scale: float = 1.0) -> Callable[[], Measured]:
        def run() -> Measured:
            began = time.time()
            return Measured((airflow.ended_at(airflow.run(dag, count)) - began) * scale, units)

        return run

    def latency() -> Measured:
        waits = []
        for _ in range(SUBMISSIONS):
            began = time.time()
            waits.append(airflow.began_at(airflow.run("single")[0]) - began)
        return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)

    def light() -> Measured:
        return Measured(timed("light", LIGHT)().seconds - bare(LIGHT), LIGHT)

    return {
        "chain": timed("chain", CHAIN),
        "fan": timed("fan", 1),
        "diamonds": timed("diamond", DIAMONDS, DIAMONDS),
        "layers": timed("layers", DEPTH * WIDTH),
        "latency": latency,
        "light": light,
    }


def environment(folder: Path, database: str, port: int) -> dict[str, str]:
    settings = {
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__DAGS_FOLDER": str(folder / "dags"),
        "CORE__PARALLELISM": "8",
        "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "API__PORT": str(port),
        "API__BASE_URL": f"http://127.0.0.1:{port}",
        "API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "LOGGING__LOGGING_LEVEL": "ERROR",
        "DATABASE__SQL_ALCHEMY_CONN": database.replace("postgresql://", "postgresql+psycopg2://"),
        "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database.replace(
            "postgresql://", "postgresql+asyncpg://"
        ),
    }
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    named = {f"AIRFLOW__{name}": value for name, value in settings.items()}
    return {
        **os.environ,
        **named,
        "PATH": tools,
        "AIRFLOW_HOME": str(folder),
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def running(database: str, folder: Path) -> Iterator[Airflow]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "dags").mkdir()
    (folder / "dags" / "bench.py").write_text(DAGS)
    variables, airflow = environment(folder, database, port), [sys.executable, "-m", "airflow"]
    quiet: dict[str, Any] = {
        "env": variables,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    subprocess.run([*airflow, "db", "migrate"], check=True, **quiet)
    parts = [["api-server", "--workers", "1"], ["scheduler"], ["dag-processor"]]
    started = [subprocess.Popen([*airflow, *part], **quiet) for part in parts]
    try:
        client = Airflow(database, port)
        client.wait_for_dags()
        yield client
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def main() -> None:
    database, *names = sys.argv[1:]
    with (
        tempfile.TemporaryDirectory(prefix="airflow-") as folder,
        running(database, Path(folder)) as airflow,
    ):
        airflow.run("single")  # warm
        answer(version("apache-airflow"), work_of(airflow), names)


if __name__ == "__main__":
    main()
