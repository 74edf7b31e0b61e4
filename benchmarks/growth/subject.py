"""A store in a process of its own, that is filled and measured on command: `python -m benchmarks.growth.subject`.

`subject sqlite FOLDER` or `subject scaled FOLDER`. Each line that it is given is an order in JSON, and each is answered
with one: `{"do": "active", "to": 1000}` and `{"do": "finished", "to": 1000}` fill the store up to so many executions,
`{"do": "run", "work": "layers", "size": 100, "count": 1}` measures. A process for each store, so that two of them share
neither a cache nor a garbage collector.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import penstock
from benchmarks.growth import filling, tasks
from benchmarks.scaled import Bench, bench, roles, servers
from benchmarks.workloads import Document, chain, diamond, layers
from penstock.config import Settings
from penstock.embedded import run_loop
from penstock.service.submissions import Submissions

STEP_SECONDS = 0.05
PATIENCE_SECONDS = 600
PORTION = 10_000
WIDTH = 100
Found = dict[str, float]
WORK: dict[str, Callable[[int], Document]] = {
    "diamonds": lambda _size: diamond(),
    "chain": chain,
    "layers": lambda nodes: layers(nodes // WIDTH, WIDTH),
    "payload": tasks.passes_on,
}
"""By name, the document of a size."""


class Subject(Protocol):
    async def run(self, document: Document, count: int) -> Found: ...
    async def start(self, document: Document, count: int) -> None: ...
    async def waiting(self) -> tuple[int, int]: ...
    async def settle(self) -> None: ...
    async def fill(self, model: str, first: int, last: int) -> None: ...
    async def one(self) -> str: ...


class Embedded:
    def __init__(self, engine: penstock.Engine, path: Path) -> None:
        self._engine, self._path = engine, path

    async def run(self, document: Document, count: int) -> Found:
        await self._engine.plan_for(document)
        began, loop, all_threads = time.perf_counter(), time.thread_time(), time.process_time()
        handles = await self._engine.start_many(document, [None] * count)
        results = await asyncio.gather(*(handle.result() for handle in handles))
        found = (time.perf_counter() - began, time.thread_time() - loop, time.process_time() - all_threads)
        assert all(result.completed for result in results), "not every execution completed"
        micros = 1e6 / (count * len(document["nodes"]))
        return {"wall": found[0] * micros, "loop": found[1] * micros, "writer": (found[2] - found[1]) * micros}

    async def start(self, document: Document, count: int) -> None:
        await self._engine.plan_for(document)
        self._engine.worker.queues.discard(tasks.NOBODY)  # the embedded worker serves whatever a workflow names
        await submit(self._engine.service.submissions, await self._engine.plan_for(document), count)

    async def waiting(self) -> tuple[int, int]:
        timers = await self._engine.stores.cold._reader.rows("SELECT count(*) FROM timers")  # type: ignore[attr-defined]  # noqa: SLF001
        return (await self._engine.stores.queue.depths()).get(tasks.NOBODY, (0, 0))[0], int(timers[0][0])

    async def settle(self) -> None:
        """Nothing goes on behind it."""

    async def fill(self, model: str, first: int, last: int) -> None:
        await asyncio.to_thread(filling.fill_sqlite, self._path, model, first, last)

    async def one(self) -> str:
        handle = await self._engine.start(diamond())
        await handle.result()
        return handle.id


class Scaled:
    def __init__(self, it: Bench, database: str) -> None:
        self._it, self._database = it, database

    async def run(self, document: Document, count: int) -> Found:
        own = time.process_time()
        found = await self._it.run(document, count)
        own = (time.process_time() - own) / (count * len(document["nodes"])) * 1e6
        cpu = {name.removesuffix("_us_per_task"): used for name, used in found.items() if "_us_" in name}
        return {"wall": 1e6 / found["tasks_per_second"], "client": own, **cpu}

    async def start(self, document: Document, count: int) -> None:
        service = self._it.service
        await submit(service.submissions, await service.workflows.plan(document), count)

    async def waiting(self) -> tuple[int, int]:
        stores = self._it.stores
        keys = [f"penstock:{{{partition}}}:timers" for partition in range(stores.hot.partitions)]
        timers = [await stores.server.main.call("ZCARD", key) for key in keys]
        return (await stores.queue.depths()).get(tasks.NOBODY, (0, 0))[0], sum(timers)

    async def settle(self) -> None:
        """Until every active execution has been copied into PostgreSQL: that happens once, and isn't what is asked."""
        unheard = "SELECT count(*) FROM executions WHERE state = 'RUNNING' AND generation = 0"
        await until(lambda: self._none(unheard))
        await self._it.stores.cold.database.change("VACUUM ANALYZE executions")

    async def _none(self, statement: str) -> bool:
        return not (await self._it.stores.cold.database.rows(statement))[0][0]

    async def fill(self, model: str, first: int, last: int) -> None:
        partitions = self._it.stores.hot.partitions
        await asyncio.to_thread(filling.fill_postgres, self._database, model, first, last, partitions)

    async def one(self) -> str:
        plan = await self._it.service.workflows.plan(diamond())
        ids = await self._it.service.submissions.submit_many(plan, [None], {})
        await self._it.archived(ids)
        return ids[0]


async def submit(submissions: Submissions, plan: Any, count: int) -> None:
    for first in range(0, count, PORTION):
        await submissions.submit_many(plan, [None] * min(PORTION, count - first), {})


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not await holds():
        assert time.monotonic() < end, f"it isn't so after {PATIENCE_SECONDS} s"
        await asyncio.sleep(STEP_SECONDS)


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
        await (self._fill_active if order["do"] == "active" else self._fill_finished)(int(order["to"]))
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
        await self._subject.settle()

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
        async with penstock.Engine(f"sqlite:///{path}", settings=Settings.load(environ={})) as engine:
            yield Embedded(engine, path)
        return
    with servers(folder, "everysec") as (redis, postgres):
        settings = {
            "PENSTOCK_STORE": redis.url, "PENSTOCK_DATABASE": postgres.url, "PENSTOCK_LOG_LEVEL": "WARNING",
            "PENSTOCK_HANDLERS": "benchmarks.growth.tasks",
        }  # fmt: skip
        with roles(settings, 1, 1) as processes:
            everything = {**processes, "redis": redis.pid, "postgres": postgres.pid}
            async with bench(redis.url, postgres.url, everything) as it:
                yield Scaled(it, postgres.url)


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
