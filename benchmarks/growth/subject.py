"""`python -m benchmarks.growth.subject`: a store in its own process, measured on command.

`subject sqlite FOLDER` or `subject scaled FOLDER`. Each line that it is given is an order in JSON,
and each is answered with one: `{"do": "active", "to": 1000}` and `{"do": "finished", "to": 1000}`
fill the store up to so many executions, `{"do": "run", "work": "layers", "size": 100, "count": 1}`
measures. A process for each store, so that two of them share neither a cache nor a garbage
collector.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import penstock
from benchmarks.growth import tasks
from benchmarks.growth.stores import Embedded, Scaled, Subject, until
from benchmarks.scaled import bench, roles, servers
from benchmarks.workloads import Document, chain, diamond, each, layers
from penstock.config import Settings
from penstock.runtime import run_loop

WIDTH = 100
ITEMS_MAX = {"PENSTOCK_MAP_ITEMS_MAX": "100000"}
WORK: dict[str, Callable[[int], Document]] = {
    "diamonds": lambda _size: diamond(),
    "chain": chain,
    "layers": lambda nodes: layers(nodes // WIDTH, WIDTH),
    "items": each,
    "payload": tasks.passes_on,
}
"""By name, the document of a size."""


class Orders:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._active = self._finished = 0
        self._model = ""

    async def follow(self, order: dict[str, Any]) -> dict[str, Any]:
        if order["do"] == "run":
            document = WORK[order["work"]](int(order.get("size", 0)))
            return await self._subject.run(document, int(order.get("count", 1)))
        began = time.perf_counter()
        await (self._fill_active if order["do"] == "active" else self._fill_finished)(
            int(order["to"])
        )
        return {"seconds": time.perf_counter() - began}

    async def _fill_active(self, to: int) -> None:
        """Half of them wait for a worker, half for a timer."""
        half = to // 2
        if to <= self._active:
            return
        for document in (tasks.waits_in_queue(), tasks.waits_for_timer()):
            await self._subject.start(document, half - self._active // 2)
        self._active = to
        await until(lambda: self._all_wait(half))
        await self._subject.wait_copied()

    async def _all_wait(self, half: int) -> bool:
        return min(await self._subject.waiting()) >= half

    async def _fill_finished(self, to: int) -> None:
        if to <= self._finished:
            return
        self._model = self._model or await self._subject.one()
        await self._subject.fill(self._model, self._finished, to)
        self._finished = to


@asynccontextmanager
async def opened(profile: str, folder: Path) -> AsyncIterator[Subject]:
    if profile == "sqlite":
        path = folder / "growth.db"
        async with penstock.Engine(
            f"sqlite:///{path}", settings=Settings.load(environ=ITEMS_MAX)
        ) as engine:
            yield Embedded(engine, path)
        return
    with servers(folder, "everysec") as (redis, postgres):
        settings = {
            "PENSTOCK_STORE": redis.url,
            "PENSTOCK_DATABASE": postgres.url,
            "PENSTOCK_LOG_LEVEL": "WARNING",
            "PENSTOCK_HANDLERS": "benchmarks.growth.tasks",
            **ITEMS_MAX,
        }
        with roles(settings, 1, 1) as processes:
            everything = {**processes, "redis": redis.pid, "postgres": postgres.pid}
            async with bench(redis.url, postgres.url, everything) as running:
                yield Scaled(running, postgres.url)


async def serve(profile: str, folder: Path) -> None:
    loop = asyncio.get_running_loop()
    async with opened(profile, folder) as subject:
        orders = Orders(subject)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(await orders.follow(json.loads(line))), flush=True)


def main() -> None:
    profile, where = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=where, prefix=f"penstock-growth-{profile}-") as name:
        Path(name).chmod(0o711)
        run_loop(serve(profile, Path(name)))


if __name__ == "__main__":
    main()
