"""What every local server has: a folder, a port, a password, and a start that returns when it answers."""

from __future__ import annotations

import os
import secrets
import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from penstock.errors import PenstockError
from penstock.local.finding import Installation
from penstock.local.ports import free_port
from penstock.local.process import Process

START_SECONDS = 30.0
STEP_SECONDS = 0.01
TRIES = 5
PASSWORD_BYTES = 18


class Server(ABC):
    """`port` 0 takes a free one, which it keeps: also for the next process that starts it from this folder."""

    name = ""
    installation: Installation
    """What was started; known from the first start on."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder.absolute(), port
        self._any_port = port == 0
        self._process: Process | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def pid(self) -> int:
        """Of the server, for a test that stops or kills it by itself."""
        if self._process is None:
            raise PenstockError(f"{self.name} in {self.folder} isn't running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.code is None

    def start(self) -> Self:
        """Returns when it answers. What is in its folder is there again."""
        if self.running:
            return self
        self._prepare()
        last = ""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(STEP_SECONDS * 4**attempt)  # a killed one's helpers may still be going
            if self._any_port:
                self.port = self._last_port() if attempt == 0 else free_port()
            self._process = self._launch()
            if self._answers_soon(self._process):
                self._any_port = False
                (self.folder / "port").write_text(str(self.port), encoding="ascii")
                return self
            last = self._process.last_lines()
        raise PenstockError(
            f"{self.name} didn't start on port {self.port}: {last}; all of it is in {self.log}"
        )

    def stop(self) -> None:
        """Cleanly: what it was told is on the disk then."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """As a crash would: nothing is said to it."""
        if self._process is not None:
            self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.signal(number)

    def restart(self) -> Self:
        """At the same address, whether it runs, was stopped or was killed."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _last_port(self) -> int:
        try:
            return int((self.folder / "port").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return free_port()

    def password(self) -> str:
        """Made at the first start: other people on this machine may see the port."""
        path = self.folder / "password"
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(PASSWORD_BYTES))
        except FileExistsError:
            pass
        return path.read_text(encoding="ascii").strip()

    def _answers_soon(self, process: Process) -> bool:
        """False if it ends instead."""
        deadline = time.monotonic() + START_SECONDS
        while process.code is None:
            if self._answers():
                return True
            if time.monotonic() > deadline:
                process.kill()
                raise PenstockError(
                    f"{self.name} doesn't answer after {START_SECONDS:g} s; see {self.log}"
                )
            time.sleep(STEP_SECONDS)
        return False

    @abstractmethod
    def _prepare(self) -> None:
        """Before the first try: what doesn't depend on the port."""

    @abstractmethod
    def _launch(self) -> Process: ...

    @abstractmethod
    def _answers(self) -> bool: ...
