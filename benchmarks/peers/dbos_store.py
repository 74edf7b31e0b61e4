"""The same work on DBOS, on SQLite or PostgreSQL by the address, a line of JSON for each workload.

In an environment of its own (`pip install dbos`): `python benchmarks/peers/dbos_store.py ADDRESS
[WORKLOAD …]`. The whole of DBOS is in this one process, as with Penstock embedded. Its steps are
recorded one by one, as ours are.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from dbos import DBOS
from yardstick import CHAIN, FAN, LIGHT, SUBMISSIONS, WIDTH, Measured, answer, bare, light

DIAMONDS = 100
DEPTH = 5
"""Of 500 diamonds and of 100 layers: the rest would take minutes."""


@DBOS.step()
async def noop() -> float:
    return time.time()


@DBOS.step()
async def light_step() -> None:
    light()


@DBOS.workflow()
async def chain() -> None:
    for _ in range(CHAIN):
        await noop()


@DBOS.workflow()
async def fan() -> None:
    await noop()
    await asyncio.gather(*(noop() for _ in range(FAN)))
    await noop()


@DBOS.workflow()
async def diamond() -> None:
    await noop()
    await asyncio.gather(noop(), noop())
    await noop()


@DBOS.workflow()
async def layers() -> None:
    for _ in range(DEPTH):
        await asyncio.gather(*(noop() for _ in range(WIDTH)))


@DBOS.workflow()
async def single() -> float:
    return await noop()


@DBOS.workflow()
async def lights() -> None:
    for _ in range(LIGHT):
        await light_step()


async def seconds_of(workflow: Any, count: int = 1) -> float:
    began = time.perf_counter()
    handles = [await DBOS.start_workflow_async(workflow) for _ in range(count)]
    for handle in handles:
        await handle.get_result()
    return time.perf_counter() - began


async def run_chain() -> Measured:
    return Measured(await seconds_of(chain), CHAIN)


async def run_fan() -> Measured:
    return Measured(await seconds_of(fan), 1)


async def run_diamonds() -> Measured:
    return Measured(await seconds_of(diamond, DIAMONDS), DIAMONDS)


async def run_layers() -> Measured:
    note = (
        "a barrier after each layer: the order in which steps begin must be the same when it "
        "is replayed"
    )
    return Measured(await seconds_of(layers), DEPTH * WIDTH, note)


async def run_latency() -> Measured:
    waits = []
    for _ in range(SUBMISSIONS):
        began = time.time()
        waits.append(await (await DBOS.start_workflow_async(single)).get_result() - began)
    return Measured(statistics.median(waits) * SUBMISSIONS, SUBMISSIONS)


async def run_light() -> Measured:
    return Measured(await seconds_of(lights) - bare(), LIGHT)


WORK: dict[str, Callable[[], Awaitable[Measured]]] = {
    "chain": run_chain,
    "fan": run_fan,
    "diamonds": run_diamonds,
    "layers": run_layers,
    "latency": run_latency,
    "light": run_light,
}


def main() -> None:
    address, *names = sys.argv[1:]
    DBOS(
        config={
            "name": "bench",
            "system_database_url": address,
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    with asyncio.Runner() as runner:

        async def warm() -> None:
            DBOS.launch()
            await seconds_of(diamond)

        def bound(work: Callable[[], Any]) -> Callable[[], Measured]:
            return lambda: runner.run(work())

        runner.run(warm())
        answer(version("dbos"), {name: bound(work) for name, work in WORK.items()}, names)
        DBOS.destroy()


if __name__ == "__main__":
    main()
