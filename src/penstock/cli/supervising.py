"""The supervisor of `penstock up`: it starts processes, restarts them, and stops them in order."""

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
from typing import Any, Self

from penstock.cli.interrupt import SIGNALS
from penstock.cli.roles import READY
from penstock.errors import PenstockError
from penstock.local import PostgresServer, Process, RedisServer

READY_SECONDS = 60.0
STEP_SECONDS = 0.1
PAUSE_SECONDS = 0.5
PAUSE_SECONDS_MAX = 30.0
STEADY_SECONDS = 60.0
"""After a process has run this long, the pause before its restart is the shortest again."""
STOP_MARGIN_SECONDS = 5.0
RESTART = "; it is restarted"
Server = RedisServer | PostgresServer


class Role:
    """A process with one role, which is restarted when it ends."""

    def __init__(
        self, name: str, arguments: Sequence[str], environ: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        self.process: Process | None = None
        self._arguments = arguments
        self._environ = environ
        self._started_at = 0.0
        self._pause_seconds = PAUSE_SECONDS
        self._restart_at = 0.0
        self._log_offset = 0

    def start(self, stop_seconds: float) -> None:
        self._started_at = time.monotonic()
        self._log_offset = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-m", "penstock", *self._arguments]
        self.process = Process(command, self.log, environ=self._environ, stop_seconds=stop_seconds)

    @property
    def is_ready(self) -> bool:
        """Whether it has said so since its last start."""
        with self.log.open("rb") as file:
            file.seek(self._log_offset)
            return READY.encode() in file.read()

    def ended(self) -> str:
        """A message if it has ended since the last call; it is then due again after a pause."""
        if self.process is None or self.process.code is None:
            return ""
        now = time.monotonic()
        if now - self._started_at > STEADY_SECONDS:
            self._pause_seconds = PAUSE_SECONDS
        self._restart_at = now + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, PAUSE_SECONDS_MAX)

        code = self.process.code
        last_lines = self.process.last_lines() or "none"
        self.process = None
        return f"{self.name} ended with code {code}{RESTART}. Its last lines: {last_lines}"

    @property
    def is_due(self) -> bool:
        return self.process is None and time.monotonic() >= self._restart_at


class Supervisor:
    """The supervisor of servers and roles; `say` gets a line for each thing that happens.

    While it is entered, signals ask it to stop.
    """

    def __init__(self, say: Callable[[str], None], grace_seconds: float) -> None:
        self._say = say
        self._stop_seconds = grace_seconds + STOP_MARGIN_SECONDS
        self.stopping = threading.Event()
        self.roles: list[Role] = []
        self.servers: list[Server] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_all()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping.is_set():
            # The leashes end all child processes with this one.
            os._exit(128 + number)
        self.stopping.set()

    def start_server(self, server: Server) -> str:
        """Start a server and return its URL."""
        self.servers.append(server)
        return server.start().url

    def start(self, roles: Iterable[Role]) -> None:
        """Start roles; returns when all are ready or a stop is requested, raises if one ends."""
        for role in roles:
            self.roles.append(role)
            role.start(self._stop_seconds)

        deadline = time.monotonic() + READY_SECONDS
        while not all(role.is_ready for role in self.roles):
            for role in self.roles:
                if message := role.ended():
                    raise PenstockError(message.replace(RESTART, ""))
            if self.stopping.wait(STEP_SECONDS):
                return
            if time.monotonic() > deadline:
                late = ", ".join(role.name for role in self.roles if not role.is_ready)
                logs = role.log.parent
                raise PenstockError(
                    f"not ready after {READY_SECONDS:g} s: {late}; their logs are in {logs}"
                )

    def watch(self) -> None:
        """Restart whatever ends, until a stop is requested."""
        while not self.stopping.wait(STEP_SECONDS):
            for server in self.servers:
                if not server.running:
                    self._say(f"{server.name} has ended{RESTART}")
                    server.start()
            for role in self.roles:
                if message := role.ended():
                    self._say(message)
                if role.is_due:
                    role.start(self._stop_seconds)

    def _stop_all(self) -> None:
        """Stop APIs first, then workers, then orchestrators, then the servers."""
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
