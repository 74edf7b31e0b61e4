"""Roles under attack, as processes of their own, and what watches them.

Their memory, their store, and a probe.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Self

import psutil
import psycopg

from penstock.local.process import Process
from tests.acceptance.outside import begin
from tests.acceptance.plant import HEALTH, open_plant
from tests.hostile import probe
from tests.servers import open_folder
from tests.waiting import until_now

START_SECONDS = 60.0
LOOK_SECONDS = 0.1
SERVED = re.compile(r"Penstock is ready at (\S+)")
KEYS = {"attacker": "submit", "probe": "submit", "operator": "operate"}
"""Whose they are, and their scopes."""


class Target(NamedTuple):
    """A service under attack."""

    api: str
    keys: Mapping[str, str]
    """By whose it is, as in `KEYS`."""
    pids: Mapping[str, int]
    """Of each role."""
    health: Mapping[str, str]
    """The address that each role answers `/health/live` at."""
    store_sizes: Callable[[], dict[str, int]]
    """In bytes, by part of the store."""
    logs: Callable[[], str]


def make_keys(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """With the command line, as an operator does it."""
    keys = {}
    for name, scope in KEYS.items():
        command = [
            sys.executable,
            "-m",
            "penstock",
            "keys",
            "create",
            "--scope",
            scope,
            "--name",
            name,
        ]
        done = subprocess.run(
            command, env=dict(environ), cwd=folder, check=True, capture_output=True, text=True
        )
        keys[name] = done.stdout.strip()
    return keys


@contextmanager
def one_process(flood_address: str) -> Iterator[Target]:
    """`penstock serve`: API, orchestrator and worker in one process, on SQLite."""
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "OPENAI_"))
        }
        environ |= {
            "PENSTOCK_STORE": f"sqlite:///{folder}/store/penstock.db",
            "PYTHONUNBUFFERED": "1",
            **_settings(flood_address),
        }
        (folder / "store").mkdir()
        keys = make_keys(environ, folder)
        log = folder / "serve.log"
        process = Process(
            [sys.executable, "-m", "penstock", "serve", "--port", "0"],
            log,
            folder=folder,
            environ=environ,
        )
        stack.callback(process.kill)
        match = until_now(
            lambda: SERVED.search(log.read_text()), "it serves", seconds=START_SECONDS
        )
        assert match, log.read_text()

        def sizes() -> dict[str, int]:
            total = 0
            for file in (folder / "store").rglob("*"):
                with suppress(FileNotFoundError):  # blobs and the write-ahead log come and go
                    total += file.stat().st_size if file.is_file() else 0
            return {"sqlite": total}

        address = match[1]
        yield Target(
            address, keys, {"serve": process.pid}, {"serve": address}, sizes, log.read_text
        )


@contextmanager
def three_roles(flood_address: str) -> Iterator[Target]:
    """An API, an orchestrator and a worker, on Redis and PostgreSQL."""
    with open_plant() as plant:
        settings: dict[str, Any] = _unprefixed(_settings(flood_address))
        environ = plant._environ(settings)
        keys = make_keys(environ, plant.folder)
        for kind in ("worker", "orchestrator", "api"):
            plant.start(kind, ready=False, **settings)
        begin(plant, orchestrators=0, workers=0)  # those are there already: it waits for them
        roles = {role.kind: role for role in plant.roles}
        health = {"api": roles["api"].address}
        for kind in ("orchestrator", "worker"):
            address = HEALTH.search(roles[kind].said())
            assert address, roles[kind].said()
            health[kind] = address[1]

        def sizes() -> dict[str, int]:
            with plant.connect_redis() as link, psycopg.connect(plant.database) as connection:
                row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
                assert row is not None
                return {"redis": int(link.info("memory")["used_memory"]), "postgresql": int(row[0])}

        pids = {kind: role.pid for kind, role in roles.items()}
        yield Target(roles["api"].address, keys, pids, health, sizes, plant.tails)


def _settings(flood_address: str) -> dict[str, str]:
    return {
        "PENSTOCK_HTTP_PRIVATE": "true",
        "PENSTOCK_RATE_LIMIT": "off",
        "PENSTOCK_LLM_BASE_URL": f"{flood_address}/v1",
    }


def _unprefixed(settings: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("PENSTOCK_"): value for name, value in settings.items()}


class Watch:
    """The peak memory of each role with its children, and the peak size of the store."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._stopping = threading.Event()
        self.memory: dict[str, int] = {}
        self.store: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._before = self._target.store_sizes()
        self._thread = threading.Thread(target=self._look_until_stopped)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._look()

    @property
    def growth(self) -> int:
        return sum(self.store.values()) - sum(self._before.values())

    def _look_until_stopped(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        for role, pid in self._target.pids.items():
            self.memory[role] = max(self.memory.get(role, 0), memory_of(pid))
        for part, size in self._target.store_sizes().items():
            self.store[part] = max(self.store.get(part, 0), size)


def memory_of(pid: int) -> int:
    """Of a process and its children, in bytes; pages that they share count once."""
    total = 0
    process = psutil.Process(pid)
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            rollup = Path(f"/proc/{member.pid}/smaps_rollup")
            total += _pss(rollup) if rollup.exists() else member.memory_info().rss
    return total


def _pss(rollup: Path) -> int:
    with suppress(OSError):  # it has ended
        match = re.search(r"^Pss:\s+(\d+) kB", rollup.read_text(), re.MULTILINE)
        return int(match[1]) * 1024 if match else 0
    return 0


class Sample(NamedTuple):
    name: str
    began: float
    seconds: float
    problem: str

    @property
    def ended(self) -> float:
        return self.began + self.seconds


class Probe:
    """`probe.py` as a process; the machine's own delays are taken off what it measures."""

    def __init__(self, target: Target, folder: Path) -> None:
        self._target = target
        self._path = folder / "probe.txt"
        self._usual: dict[str, float] = {}
        """How long each thing takes when nobody attacks."""

    def __enter__(self) -> Self:
        order = {
            "health": dict(self._target.health),
            "api": self._target.api,
            "key": self._target.keys["probe"],
        }
        self._path.touch()
        self._process = subprocess.Popen(
            [sys.executable, probe.__file__, str(self._path), json.dumps(order)]
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def _names(self) -> set[str]:
        return {*self._target.health, "light"}

    def pass_seconds(self, seconds: float) -> float:
        """Wait `seconds`, and until each kind of request sent after that has been answered.

        Returns the time, which is the end of the wait or a little later.
        """
        end = time.monotonic() + seconds
        until_now(
            lambda: self._names <= {s.name for s in self.samples() if s.began > end},
            "the probe has answers",
            seconds=90,
        )
        return time.monotonic()

    def measure_usual(self, seconds: float) -> None:
        """Before the first attack."""
        self.pass_seconds(seconds)
        for name in self._names:
            self._usual[name] = median(
                [sample.seconds for sample in self.samples() if sample.name == name]
            )

    def samples(self) -> list[Sample]:
        complete = []
        for line in self._path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                name, began, seconds, *problem = line.rstrip("\n").split(" ", 3)
                complete.append(Sample(name, float(began), float(seconds), *(problem or [""])))
        return complete

    def delays(self, since: float) -> dict[str, float]:
        """How much longer than usual each request has taken, at worst.

        The machine's own delays are subtracted.
        """
        samples = self.samples()
        noise = [sample for sample in samples if sample.name == "machine"]
        worst: dict[str, float] = {}
        for sample in samples:
            if sample.name in self._names and sample.ended >= since:
                overslept = sum(
                    pause.seconds
                    for pause in noise
                    if pause.ended >= sample.began and pause.began <= sample.ended
                )
                delay = sample.seconds - overslept - self._usual[sample.name]
                worst[sample.name] = max(worst.get(sample.name, 0.0), delay)
        return worst

    def problems(self, since: float) -> list[str]:
        return [f"{s.name}: {s.problem}" for s in self.samples() if s.problem and s.ended >= since]
