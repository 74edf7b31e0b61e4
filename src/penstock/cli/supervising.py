"""Processes that `penstock up` keeps running: starts them, says when one ends, starts it again, stops them in order."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Self

from penstock.cli.interrupt import SIGNALS
from penstock.cli.roles import READY
from penstock.errors import PenstockError
from penstock.local import PostgresServer, Process, RedisServer

READY_SECONDS = 60.0
STEP_SECONDS = 0.1
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.5, 30.0
STEADY_SECONDS = 60.0
"""Whatever ran this long begins anew with the shortest pause."""
STOP_MARGIN_SECONDS = 5.0
Server = RedisServer | PostgresServer


class Role:
    def __init__(
        self, name: str, arguments: Sequence[str], environ: Mapping[str, str], log: Path
    ) -> None:
        self.name, self.log = name, log
        self._arguments, self._environ = arguments, environ
        self._began, self._pause, self._again_at, self._said = 0.0, PAUSE_SECONDS, 0.0, 0
        self.process: Process | None = None

    def start(self, stop_seconds: float) -> None:
        self._began = time.monotonic()
        self._said = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-m", "penstock", *self._arguments]
        self.process = Process(command, self.log, environ=self._environ, stop_seconds=stop_seconds)

    @property
    def is_ready(self) -> bool:
        """Since this start."""
        with self.log.open("rb") as file:
            file.seek(self._said)
            return READY.encode() in file.read()

    def ended(self) -> str:
        """What to tell if it has ended since this was last asked; it is to be started again after a pause then."""
        if self.process is None or self.process.code is None:
            return ""
        now = time.monotonic()
        if now - self._began > STEADY_SECONDS:
            self._pause = PAUSE_SECONDS
        self._again_at, self._pause = now + self._pause, min(2 * self._pause, PAUSE_SECONDS_MAX)
        code, last = self.process.code, self.process.last_lines()
        self.process = None
        return f"{self.name} ended with code {code}; it is started again. Its last words: {last or 'none'}"

    @property
    def is_due(self) -> bool:
        return self.process is None and time.monotonic() >= self._again_at


class Supervisor:
    """`say` gets a line for each thing that happens.

    While it is entered, signals ask it to stop.
    """

    def __init__(self, say: Callable[[str], None], grace_seconds: float) -> None:
        self._say, self._stop_seconds = say, grace_seconds + STOP_MARGIN_SECONDS
        self.stopping = threading.Event()
        self.roles: list[Role] = []
        self.servers: list[Server] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._on_signal) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_all()
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what `signal.signal` answered

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)  # everything ends with us: the leashes see to it
        self.stopping.set()

    def start_server(self, server: Server) -> str:
        """Answers its URL."""
        self.servers.append(server)
        return server.start().url

    def start(self, roles: Iterable[Role]) -> None:
        """Returns when all are ready, or when it is asked to stop. Raises if one ends instead."""
        for role in roles:
            self.roles.append(role)
            role.start(self._stop_seconds)
        deadline = time.monotonic() + READY_SECONDS
        while not all(role.is_ready for role in self.roles):
            for role in self.roles:
                if said := role.ended():
                    raise PenstockError(said.replace("; it is started again", ""))
            if self.stopping.wait(STEP_SECONDS):
                return
            if time.monotonic() > deadline:
                late = ", ".join(role.name for role in self.roles if not role.is_ready)
                raise PenstockError(
                    f"not ready after {READY_SECONDS:g} s: {late}; their logs are in {role.log.parent}"
                )

    def watch(self) -> None:
        """Until it is asked to stop."""
        while not self.stopping.wait(STEP_SECONDS):
            for server in self.servers:
                if not server.running:
                    self._say(f"{server.name} has ended; it is started again")
                    server.start()
            for role in self.roles:
                if said := role.ended():
                    self._say(said)
                if role.is_due:
                    role.start(self._stop_seconds)

    def _stop_all(self) -> None:
        """Who takes work first, then who does it, then who records it, then where it is recorded."""
        kinds = list(dict.fromkeys(role.name.partition("-")[0] for role in self.roles))
        for kind in kinds:
            running = [
                role.process
                for role in self.roles
                if role.name.startswith(kind) and role.process is not None
            ]
            if running:
                with ThreadPoolExecutor(len(running)) as threads:
                    list(threads.map(Process.stop, running))
        for server in reversed(self.servers):
            server.stop()
