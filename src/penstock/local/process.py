"""A process of our own that can't be left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from penstock.errors import PenstockError

LEASH = Path(__file__).with_name("leash.py")
LEASH_SECONDS = 5.0
"""What the leash itself may take, on top of what the command was given to stop."""
TAIL_LINES = 5


@dataclass(frozen=True)
class Account:
    """Whom a process runs as."""

    name: str
    user: int
    group: int


class Process:
    """Started when made.

    Ends by `stop`, `kill`, by itself, or with this process, whatever happens to it.
    """

    def __init__(  # noqa: PLR0913 -- what there is to say about a process
        self,
        command: Sequence[str | Path],
        log: Path | IO[bytes],
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        account: Account | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        stop_seconds: float = 10.0,
    ) -> None:
        """`log` is where its output goes; with `account` it runs as that one (this process must be root then)."""
        self.log, self._stop_seconds = log, stop_seconds
        order = {
            "command": [str(part) for part in command],
            "folder": str(folder) if folder else None,
            "user": account and account.user,
            "group": account and account.group,
            "signal": int(stop_signal),
            "seconds": stop_seconds,
        }
        output = _private_log(log) if isinstance(log, Path) else log
        try:
            self._leash = subprocess.Popen(  # noqa: S603 -- what it is for
                [sys.executable, "-I", "-S", str(LEASH), json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=environ,
                start_new_session=True,
            )
        finally:
            if isinstance(log, Path):
                output.close()
        assert self._leash.stdout is not None  # noqa: S101 -- it is a pipe
        said = self._leash.stdout.readline()
        self.pid = int(said) if said.strip() else 0
        if not self.pid:
            self._ended()
            raise PenstockError(
                f"{command[0]} didn't start: {self.last_lines() or 'it said nothing'}"
            )

    @property
    def code(self) -> int | None:
        """The exit code (128 + the signal's number if one ended it), or None while it runs."""
        if self._leash.poll() is not None:
            self._ended()
        return self._leash.returncode

    def signal(self, number: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def stop(self) -> None:
        """Ask it to stop; after `stop_seconds` it has no choice. Returns when it is gone."""
        if self.code is not None:
            return
        assert self._leash.stdin is not None  # noqa: S101 -- it is a pipe
        self._leash.stdin.close()
        self._wait(self._stop_seconds + LEASH_SECONDS)

    def kill(self) -> None:
        """SIGKILL. Returns when it is gone."""
        self.signal(signal.SIGKILL)
        self._wait(LEASH_SECONDS)

    def _wait(self, seconds: float) -> None:
        try:
            self._leash.wait(seconds)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._leash.wait(seconds)
        self._ended()

    def _ended(self) -> None:
        self._leash.wait()
        for pipe in (self._leash.stdin, self._leash.stdout):
            if pipe is not None:
                pipe.close()

    def last_lines(self) -> str:
        """The end of its log, for an error's text."""
        if not isinstance(self.log, Path):
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-TAIL_LINES:])


def _private_log(path: Path) -> IO[bytes]:
    """What a process says may have data of workflows in it: for its account only."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
