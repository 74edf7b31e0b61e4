"""`python -m benchmarks.http`: `penstock dev` under load from another process.

The load is no-op diamonds, on SQLite with `synchronous=FULL`:

open      executions arrive one by one at a fixed rate, whatever the service does,
          with status reads beside them
batch     as many as it takes, 100 in a request
closed    50 clients, each sends its next request when the last is answered:
          submissions, then status reads
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.__main__ import machine
from benchmarks.workloads import diamond

CLIENTS = 50
BATCH = 100
READS_PER_SECOND = 100
PATIENCE_SECONDS = 60.0


@contextmanager
def service(folder: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=folder, prefix="penstock-bench-") as work_folder:
        command = [
            sys.executable,
            "-m",
            "penstock",
            "dev",
            "--port",
            "0",
            "--store",
            f"sqlite:///{work_folder}/bench.db",
        ]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=work_folder
        ) as process:
            try:
                assert process.stdout is not None
                yield process.stdout.readline().split()[-1]
            finally:
                process.terminate()


class Load:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.ids: list[str] = []
        self.submits: list[float] = []
        self.reads: list[float] = []
        self.refused = 0

    async def prepare(self) -> None:
        async with self._session.post("/api/v1/workflows", json=diamond()) as answer:
            answer.raise_for_status()

    async def submit(self) -> None:
        began = time.perf_counter()
        async with self._session.post("/api/v1/executions", json={"workflow": "diamond"}) as answer:
            body = await answer.json()
            if answer.status != 201:
                self.refused += 1
                return
        self.submits.append(time.perf_counter() - began)
        self.ids.append(body["execution_id"])

    async def submit_batch(self) -> None:
        body = {"executions": [{"workflow": "diamond"}] * BATCH}
        async with self._session.post("/api/v1/executions/batch", json=body) as answer:
            self.ids += [item["execution_id"] for item in (await answer.json())["items"]]

    async def read(self) -> None:
        if not self.ids:
            return
        began = time.perf_counter()
        name = random.choice(self.ids[-1000:])
        async with self._session.get(f"/api/v1/executions/{name}") as answer:
            await answer.read()
            answer.raise_for_status()
        self.reads.append(time.perf_counter() - began)

    async def unfinished(self) -> int:
        """How many of all executions haven't ended."""
        count = 0
        for state in ("PENDING", "RUNNING"):
            async with self._session.get(
                "/api/v1/executions", params={"state": state, "limit": "500"}
            ) as answer:
                count += len((await answer.json())["items"])
        return count

    async def until_all_ended(self) -> int:
        """Those that are stuck."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (left := await self.unfinished()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return left

    async def completed(self) -> int:
        count, cursor = 0, None
        while True:
            params = {
                "state": "COMPLETED",
                "limit": "500",
                **({"cursor": cursor} if cursor else {}),
            }
            async with self._session.get("/api/v1/executions", params=params) as answer:
                page = await answer.json()
            count += len(page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return count


async def at_a_rate(per_second: float, seconds: float, call: Callable[[], Awaitable[None]]) -> None:
    """Open loop: each call begins at its time, whether or not earlier ones were answered."""
    loop = asyncio.get_running_loop()
    began, under_way = loop.time(), set()
    for number in range(int(per_second * seconds)):
        wait = began + number / per_second - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.ensure_future(call())
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def by_clients(count: int, seconds: float, call: Callable[[], Awaitable[None]]) -> int:
    done = 0
    end = time.monotonic() + seconds

    async def client() -> None:
        nonlocal done
        while time.monotonic() < end:
            await call()
            done += 1

    await asyncio.gather(*(client() for _ in range(count)))
    return done


def millis(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "p50_ms": round(statistics.median(ordered) * 1000, 2),
        "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000, 2),
        "max_ms": round(ordered[-1] * 1000, 2),
    }


@asynccontextmanager
async def loaded(address: str) -> AsyncIterator[Load]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(address, connector=connector) as session:
        load = Load(session)
        await load.prepare()
        await load.submit()
        await load.until_all_ended()
        load.ids.clear()
        load.submits.clear()
        yield load


async def open_loop(address: str, rate: float, seconds: float) -> dict[str, Any]:
    async with loaded(address) as load:
        began = time.perf_counter()
        await asyncio.gather(
            at_a_rate(rate, seconds, load.submit), at_a_rate(READS_PER_SECOND, seconds, load.read)
        )
        took = time.perf_counter() - began
        stuck = await load.until_all_ended()
        return {
            "wanted_per_second": rate,
            "seconds": round(took, 1),
            "accepted": len(load.ids),
            "refused": load.refused,
            "completed": await load.completed() - 1,
            "stuck": stuck,
            "submit": millis(load.submits),
            "status_read": millis(load.reads),
        }


async def batches(address: str, seconds: float) -> dict[str, Any]:
    async with loaded(address) as load:
        began = time.perf_counter()
        await by_clients(4, seconds, load.submit_batch)
        stuck = await load.until_all_ended()
        took = time.perf_counter() - began
        return {
            "executions": len(load.ids),
            "per_second": round(len(load.ids) / took),
            "stuck": stuck,
        }


async def closed_loop(address: str, seconds: float) -> dict[str, Any]:
    async with loaded(address) as load:
        submitted = await by_clients(CLIENTS, seconds, load.submit)
        stuck = await load.until_all_ended()
        reads = await by_clients(CLIENTS, seconds, load.read)
        return {
            "clients": CLIENTS,
            "submissions_per_second": round(submitted / seconds),
            "submit": millis(load.submits),
            "status_reads_per_second": round(reads / seconds),
            "status_read": millis(load.reads),
            "stuck": stuck,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", default=["open", "batch", "closed"])
    parser.add_argument("--rate", type=float, default=800.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--folder", type=Path, default=Path.cwd(), help="where the store's files go: not tmpfs"
    )
    arguments = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in machine(arguments.folder).items()))
    short = min(arguments.seconds, 10.0)
    works: dict[str, Callable[[str], Awaitable[dict[str, Any]]]] = {
        "open": lambda address: open_loop(address, arguments.rate, arguments.seconds),
        "batch": lambda address: batches(address, short),
        "closed": lambda address: closed_loop(address, short),
    }
    for name in arguments.what:
        with service(arguments.folder) as address:
            print(json.dumps({name: asyncio.run(works[name](address))}), flush=True)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
