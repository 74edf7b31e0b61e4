"""Diamonds over HTTP, many in a request or one by one, and processes whose parts are timed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import psutil

from benchmarks.http import BATCH, Load
from benchmarks.scaled import cpu_seconds

CLIENTS = {"in batches": 4, "one by one": 50}
"""By the way of submitting, how many clients do so at once, each with one request at a time."""
NODES = 4
PATIENCE_SECONDS, STEP_SECONDS = 300.0, 0.25
WARM = 50


class Timed:
    """A `penstock` process under `benchmarks.costs.parts`."""

    def __init__(
        self, folder: Path, name: str, arguments: Sequence[str], settings: Mapping[str, str]
    ) -> None:
        self._file = folder / f"{name}.json"
        command = [sys.executable, "-m", "benchmarks.costs.parts", str(self._file), *arguments]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.said = self._process.stdout.readline()
        assert self.said, f"{name} didn't start"
        self._measured = psutil.Process(self._process.pid)

    @property
    def address(self) -> str:
        return next(word for word in self.said.split() if word.startswith("http"))

    def seconds(self) -> float:
        return cpu_seconds(self._measured)

    def written(self) -> int:
        """Bytes that it has sent to the disk, in whole pages."""
        return int(self._measured.io_counters().write_bytes)

    def begin(self) -> float:
        """Whatever was until now isn't measured. Answers the CPU seconds that it has used."""
        self._process.send_signal(signal.SIGUSR1)
        return self.seconds()

    def stop(self) -> dict[str, float]:
        """Microseconds by part."""
        self._process.terminate()
        self._process.communicate()
        micros: dict[str, float] = json.loads(self._file.read_text())
        return micros


@contextmanager
def processes(
    folder: Path, roles: Mapping[str, Sequence[str]], settings: Mapping[str, str]
) -> Iterator[dict[str, Timed]]:
    started: dict[str, Timed] = {}
    try:
        for name, arguments in roles.items():
            started[name] = Timed(folder, name, arguments, settings)
        yield started
    finally:
        for timed in started.values():
            timed.stop()


async def submit(address: str, way: str, executions: int, before: Callable[[], None]) -> None:
    """Submit `executions` diamonds, and wait until all of them have ended.

    `before` is called when the first few have warmed everything up.
    """
    async with aiohttp.ClientSession(address, connector=aiohttp.TCPConnector(limit=0)) as session:
        load = Load(session)
        await load.prepare()
        await _all(load, way, WARM)
        await _until_all_ended(load)
        before()
        load.ids.clear()
        await _all(load, way, executions)
        await _until_all_ended(load)
        assert len(load.ids) >= executions


async def _until_all_ended(load: Load) -> None:
    """Asked seldom: an answer is paid for by the API too."""
    end = time.monotonic() + PATIENCE_SECONDS
    while left := await load.unfinished():
        assert time.monotonic() < end, f"{left} executions are stuck"
        await asyncio.sleep(STEP_SECONDS)


async def _all(load: Load, way: str, executions: int) -> None:
    in_batches = way == "in batches"
    left = -(-executions // BATCH) if in_batches else executions

    async def client() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await (load.submit_batch() if in_batches else load.submit())

    await asyncio.gather(*(client() for _ in range(CLIENTS[way])))
