"""The two kinds of stores that are filled and measured, seen alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import penstock
from benchmarks.growth import filling, tasks
from benchmarks.scaled import Bench
from benchmarks.workloads import Document, diamond, task_count
from penstock.service.submissions import Submissions

STEP_SECONDS = 0.05
PATIENCE_SECONDS = 600
PORTION = 10_000
Found = dict[str, float]


class Subject(Protocol):
    async def run(self, document: Document, count: int) -> Found: ...
    async def start(self, document: Document, count: int) -> None: ...
    async def waiting(self) -> tuple[int, int]: ...
    async def wait_copied(self) -> None: ...
    async def fill(self, model: str, first: int, last: int) -> None: ...
    async def one(self) -> str: ...


class Embedded:
    def __init__(self, engine: penstock.Engine, path: Path) -> None:
        self._engine = engine
        self._path = path

    async def run(self, document: Document, count: int) -> Found:
        await self._engine.plan_for(document)
        began = time.perf_counter()
        loop = time.thread_time()
        all_threads = time.process_time()
        handles = await self._engine.start_many(document, [None] * count)
        results = await asyncio.gather(*(handle.result() for handle in handles))
        figures = (
            time.perf_counter() - began,
            time.thread_time() - loop,
            time.process_time() - all_threads,
        )
        assert all(result.completed for result in results), "not every execution completed"
        micros = 1e6 / (count * task_count(document))
        return {
            "wall": figures[0] * micros,
            "loop": figures[1] * micros,
            "writer": (figures[2] - figures[1]) * micros,
        }

    async def start(self, document: Document, count: int) -> None:
        await self._engine.plan_for(document)
        # the embedded worker serves whatever a workflow names
        self._engine.worker.queues.discard(tasks.NOBODY)
        await submit(self._engine.service.submissions, await self._engine.plan_for(document), count)

    async def waiting(self) -> tuple[int, int]:
        executions = self._engine.stores.cold.executions
        timers = await executions._reader.rows("SELECT count(*) FROM timers")  # type: ignore[attr-defined]  # noqa: SLF001
        return (await self._engine.stores.queue.depths()).get(tasks.NOBODY, (0, 0))[0], int(
            timers[0][0]
        )

    async def wait_copied(self) -> None:
        """Nothing goes on behind it."""

    async def fill(self, model: str, first: int, last: int) -> None:
        await asyncio.to_thread(filling.fill_sqlite, self._path, model, first, last)

    async def one(self) -> str:
        handle = await self._engine.start(diamond())
        await handle.result()
        return handle.id


class Scaled:
    def __init__(self, running: Bench, database: str) -> None:
        self._bench = running
        self._database = database

    async def run(self, document: Document, count: int) -> Found:
        own = time.process_time()
        figures = await self._bench.run(document, count)
        own = (time.process_time() - own) / (count * task_count(document)) * 1e6
        cpu = {
            name.removesuffix("_us_per_task"): used
            for name, used in figures.items()
            if "_us_" in name
        }
        return {"wall": 1e6 / figures["tasks_per_second"], "client": own, **cpu}

    async def start(self, document: Document, count: int) -> None:
        service = self._bench.service
        await submit(service.submissions, await service.workflows.plan(document), count)

    async def waiting(self) -> tuple[int, int]:
        stores = self._bench.stores
        keys = [f"penstock:{{{partition}}}:timers" for partition in range(stores.hot.partitions)]
        timers = [await stores.server.main.call("ZCARD", key) for key in keys]
        return (await stores.queue.depths()).get(tasks.NOBODY, (0, 0))[0], sum(timers)

    async def wait_copied(self) -> None:
        """Wait until every active execution has been copied into PostgreSQL.

        That happens once, and isn't what is measured.
        """
        unheard = "SELECT count(*) FROM executions WHERE phase = 'started' AND state = 'PENDING'"
        await until(lambda: self._none(unheard))
        await self._bench.stores.cold.database.change("VACUUM ANALYZE executions")

    async def _none(self, statement: str) -> bool:
        return not (await self._bench.stores.cold.database.rows(statement))[0][0]

    async def fill(self, model: str, first: int, last: int) -> None:
        partitions = self._bench.stores.hot.partitions
        await asyncio.to_thread(
            filling.fill_postgres, self._database, model, first, last, partitions
        )

    async def one(self) -> str:
        plan = await self._bench.service.workflows.plan(diamond())
        ids = await self._bench.service.submissions.submit_many(plan, [None], {})
        await self._bench.archived(ids)
        return ids[0]


async def submit(submissions: Submissions, plan: Any, count: int) -> None:
    for first in range(0, count, PORTION):
        await submissions.submit_many(plan, [None] * min(PORTION, count - first), {})


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not await condition():
        assert time.monotonic() < end, f"it isn't so after {PATIENCE_SECONDS} s"
        await asyncio.sleep(STEP_SECONDS)
