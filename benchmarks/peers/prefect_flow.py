"""The same work on Prefect 3 with its own server on SQLite, a line of JSON for each workload.

In an environment of its own (`pip install prefect`): `python benchmarks/peers/prefect_flow.py
FOLDER [WORKLOAD …]`. Flows run in this process and report to the server in another one. There is no
work pool and no deployment, which would start a process for each flow run: this is Prefect at its
fastest.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from prefect import flow, task
from yardstick import CHAIN, FAN, LIGHT, SUBMISSIONS, WIDTH, Measured, answer, bare, light, parents

DIAMONDS = 10
DEPTH = 1
"""Of 500 diamonds and of 100 layers: the rest would take many minutes."""
START_SECONDS = 60


@task
async def noop() -> float:
    return time.time()


@task
def leaf() -> None:
    pass


@task
async def light_task() -> None:
    light()


@flow
async def chain() -> None:
    for _ in range(CHAIN):
        await noop()


@flow
async def fan() -> None:
    await noop()
    await asyncio.gather(*(noop() for _ in range(FAN)))
    await noop()


@flow
async def diamond() -> None:
    await noop()
    await asyncio.gather(noop(), noop())
    await noop()


@flow
def layers() -> None:
    futures: dict[str, Any] = {}
    for node, before in parents(DEPTH, WIDTH).items():
        futures[node] = leaf.submit(wait_for=[futures[parent] for parent in before])
    for future in futures.values():
        future.result()


@flow
async def lights() -> None:
    for _ in range(LIGHT):
        await light_task()


@flow
async def single() -> float:
    return await noop()


async def seconds_of(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    await run()
    return time.perf_counter() - began


async def run_diamonds() -> Measured:
    """One after another: at once they take ten times as long, waiting for SQLite."""
    seconds = sum([await seconds_of(diamond) for _ in range(DIAMONDS)])
    return Measured(seconds, DIAMONDS, "one after another, which is faster than at once")


async def latency() -> float:
    waits = []
    for _ in range(SUBMISSIONS):
        began = time.time()
        waits.append(await single() - began)
    return statistics.median(waits)


def run_layers() -> Measured:
    began = time.perf_counter()
    layers()
    return Measured(time.perf_counter() - began, DEPTH * WIDTH)


WORK: dict[str, Callable[[], Measured]] = {
    "chain": lambda: Measured(asyncio.run(seconds_of(chain)), CHAIN),
    "fan": lambda: Measured(asyncio.run(seconds_of(fan)), 1),
    "diamonds": lambda: asyncio.run(run_diamonds()),
    "layers": run_layers,
    "latency": lambda: Measured(asyncio.run(latency()) * SUBMISSIONS, SUBMISSIONS),
    "light": lambda: Measured(asyncio.run(seconds_of(lights)) - bare(), LIGHT),
}


def wait_for_server(address: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{address}/health", timeout=1).close()  # noqa: S310 -- our own, over http
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"Prefect's server hasn't answered after {START_SECONDS} s")


def serve(folder: str, names: list[str]) -> None:
    """Start Prefect's server, and a process with its settings in which the flows run.

    Prefect reads its settings when it is imported.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/api"
    environment = {
        **os.environ,
        "PREFECT_HOME": folder,
        "PREFECT_API_URL": address,
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
    server = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_server(address)
        subprocess.run([sys.executable, __file__, "", *names], env=environment, check=True)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    folder, *names = sys.argv[1:]
    if folder:
        serve(folder, names)
    else:
        asyncio.run(seconds_of(diamond))  # warm
        answer(version("prefect"), WORK, names)


if __name__ == "__main__":
    main()
