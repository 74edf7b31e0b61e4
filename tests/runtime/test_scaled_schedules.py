"""Schedules in real processes that are killed: each slot starts once, and what started runs."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from penstock import Engine, Registry
from penstock.config import Settings
from penstock.contract.waiting import until
from penstock.runtime import open_scaled, run_orchestrator, run_worker, service_over
from penstock.stores.schedules import SlotRow
from tests.servers import database_url, redis_url

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 60


def kill_between(*arguments: str) -> None:
    """Have a process killed between the transaction of its first slot and the append."""
    command = [sys.executable, "-m", "tests.runtime.doomed_firing", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, timeout=TIMEOUT_SECONDS, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def judge(rows: list[Any]) -> None:
    """Each slot has one row, and each that started an execution of its own."""
    slots = [row["slot"] for row in rows]
    assert len(slots) == len(set(slots))
    started = [row["execution_id"] for row in rows if row["execution_id"]]
    assert len(started) == len(set(started))


def test_an_engine_that_was_killed_before_the_append_starts_the_slot_when_it_is_back(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/work.db"
    kill_between(store)

    async def main() -> None:
        async with Engine(store) as engine:
            rows = [row async for row in engine.slots("ticking")]
            first = rows[-1]
            assert first["outcome"] == "started"
            result = await engine.result(first["execution_id"], timeout=20)
            assert result.completed

            async def more() -> bool:
                return len([row async for row in engine.slots("ticking")]) > len(rows) + 1

            await until(more)
            await engine.pause_schedule("ticking")
            judge([row async for row in engine.slots("ticking")])

    asyncio.run(main())


@asynccontextmanager
async def role(run: Any, *what: Any, **fields: Any) -> AsyncIterator[None]:
    stop = asyncio.Event()
    ready = asyncio.Event()
    running = asyncio.create_task(run(*what, stop=stop, on_ready=lambda _: ready.set(), **fields))
    await until(lambda: ready.is_set() or running.done())
    try:
        yield
    finally:
        stop.set()
        await running


def test_two_orchestrators_mend_a_lost_start_and_start_each_slot_once() -> None:
    """On Redis and PostgreSQL, after a process was killed before the append."""
    settings = Settings(
        store=redis_url(),
        database=database_url(2),
        shutdown_grace_seconds=1.0,
        lease_seconds=1.0,
    )
    kill_between(settings.store, settings.database or "")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            stores = await stack.enter_async_context(open_scaled(settings))
            service = service_over(stores, settings)
            stack.push_async_callback(service.close)
            (lost,) = await service.schedules.slots("ticking")
            assert lost.outcome == "started"
            for _ in range(2):
                deciding = role(run_orchestrator, settings, registry=Registry())
                await stack.enter_async_context(deciding)
            await stack.enter_async_context(role(run_worker, settings, Registry(), ()))

            async def has_ended(row: SlotRow) -> bool:
                execution = await stores.cold.executions.execution(row.execution_id or "")
                return execution is not None and execution.record.state == "COMPLETED"

            await until(partial(has_ended, lost))

            async def rows() -> list[SlotRow]:
                return await service.schedules.slots("ticking", limit=500)

            async def more() -> bool:
                return len([row for row in await rows() if row.outcome == "started"]) > 3

            await until(more)
            await service.schedules.pause("ticking")
            judge([{"slot": row.slot, "execution_id": row.execution_id} for row in await rows()])
            for row in await rows():
                if row.execution_id is not None:
                    await until(partial(has_ended, row))

    asyncio.run(main())
