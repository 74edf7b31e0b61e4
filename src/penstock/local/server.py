"""What local servers have in common: a folder, a port, a password, start and stop."""

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
    """A server on this machine, with its data in a folder.

    With `port` 0 it takes a free port and keeps it, also when it is started again from the folder.
    """

    name = ""
    installation: Installation
    """The program; known from the first start on."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.absolute()
        self.port = port
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
        """The server's process id, for tests that stop or kill it themselves."""
        if self._process is None:
            raise PenstockError(f"{self.name} in {self.folder} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.code is None

    def start(self) -> Self:
        """Start it with the data in its folder. Returns when it answers."""
        if self.running:
            return self

        self._prepare()
        last_lines = ""
        for attempt in range(TRIES):
            if attempt:
                # Child processes of a killed server may still be running.
                time.sleep(STEP_SECONDS * 4**attempt)
            if self._any_port:
                self.port = self._last_port() if attempt == 0 else free_port()
            self._process = self._launch()
            if self._answers_soon(self._process):
                self._any_port = False
                (self.folder / "port").write_text(str(self.port), encoding="ascii")
                return self
            last_lines = self._process.last_lines()

        raise PenstockError(
            f"{self.name} didn't start on port {self.port}: {last_lines}; its log is {self.log}"
        )

    def stop(self) -> None:
        """Stop it cleanly: everything that was written to it is on disk."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """End it without notice, as a crash would."""
        if self._process is not None:
            self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.signal(number)

    def restart(self) -> Self:
        """Start it again at the same address, whether it runs, was stopped or was killed."""
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
        """The password, created at the first start: other users may see the port."""
        path = self.folder / "password"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(PASSWORD_BYTES))
        except FileExistsError:
            pass
        return path.read_text(encoding="ascii").strip()

    def _answers_soon(self, process: Process) -> bool:
        """Wait until it answers; False if it ends instead."""
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
        """Prepare what doesn't depend on the port, before the first attempt."""

    @abstractmethod
    def _launch(self) -> Process: ...

    @abstractmethod
    def _answers(self) -> bool: ...
