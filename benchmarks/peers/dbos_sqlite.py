"""The same diamonds and chain on DBOS with SQLite, as a line of JSON.

In an environment of its own (`pip install dbos`), beside `make bench`: `python benchmarks/peers/dbos_sqlite.py FOLDER`.
DBOS opens its file with SQLite's default of `synchronous=FULL`; its steps are recorded one by one, as ours are.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dbos import DBOS

DIAMONDS = 200
HOPS = 300

started: list[float] = []


@DBOS.step()
async def noop() -> dict[str, Any]:
    started.append(time.perf_counter())
    return {}


@DBOS.workflow()
async def diamond() -> None:
    await noop()
    await asyncio.gather(noop(), noop())
    await noop()


@DBOS.workflow()
async def chain() -> None:
    for _ in range(HOPS):
        await noop()


async def measure() -> dict[str, Any]:
    DBOS.launch()
    await (await DBOS.start_workflow_async(diamond)).get_result()
    began = time.perf_counter()
    handles = [await DBOS.start_workflow_async(diamond) for _ in range(DIAMONDS)]
    for handle in handles:
        await handle.get_result()
    seconds = time.perf_counter() - began
    started.clear()
    await (await DBOS.start_workflow_async(chain)).get_result()
    hops = sorted((after - before) * 1000 for before, after in itertools.pairwise(started))
    DBOS.destroy()
    return {
        "dbos": version("dbos"),
        "diamonds_per_second": DIAMONDS / seconds,
        "hop_ms_p50": hops[len(hops) // 2],
        "hop_ms_p99": hops[len(hops) * 99 // 100],
    }


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else Path.cwd()) as folder:
        address = f"sqlite:///{folder}/dbos.sqlite"
        DBOS(config={"name": "bench", "system_database_url": address, "log_level": "ERROR", "run_admin_server": False})
        print(json.dumps(asyncio.run(measure())))


if __name__ == "__main__":
    main()
