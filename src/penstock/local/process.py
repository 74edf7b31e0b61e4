"""Child processes that always end with this one."""

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
"""The time that the leash itself may take, after the time for the command to stop."""
TAIL_LINES = 5


@dataclass(frozen=True)
class Account:
    """The account that a process runs as."""

    name: str
    user: int
    group: int


class Process:
    """A child process, which starts when the object is created.

    It ends by `stop`, by `kill`, by itself, or with this process, however this process ends.
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
        """Start it; `log` gets its output. With `account`, this process must be root."""
        self.log = log
        self._stop_seconds = stop_seconds
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
        pid_line = self._leash.stdout.readline()
        self.pid = int(pid_line) if pid_line.strip() else 0
        if not self.pid:
            self._clean_up()
            reason = self.last_lines() or "it printed nothing"
            raise PenstockError(f"{command[0]} didn't start: {reason}")

    @property
    def code(self) -> int | None:
        """The exit code (128 + the signal's number if one ended it), or None while it runs."""
        if self._leash.poll() is not None:
            self._clean_up()
        return self._leash.returncode

    def signal(self, number: signal.Signals) -> None:
        if self.code is None:
            os.kill(self.pid, number)

    def stop(self) -> None:
        """Ask it to stop, and kill it after `stop_seconds`. Returns when it has ended."""
        if self.code is not None:
            return
        assert self._leash.stdin is not None  # noqa: S101 -- it is a pipe
        self._leash.stdin.close()
        self._wait(self._stop_seconds + LEASH_SECONDS)

    def kill(self) -> None:
        """Send SIGKILL. Returns when it has ended."""
        self.signal(signal.SIGKILL)
        self._wait(LEASH_SECONDS)

    def _wait(self, seconds: float) -> None:
        try:
            self._leash.wait(seconds)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self._leash.wait(seconds)
        self._clean_up()

    def _clean_up(self) -> None:
        self._leash.wait()
        for pipe in (self._leash.stdin, self._leash.stdout):
            if pipe is not None:
                pipe.close()

    def last_lines(self) -> str:
        """The end of its log, for an error's text."""
        if not isinstance(self.log, Path):
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(plain_line(line) for line in lines[-TAIL_LINES:])


def plain_line(line: str) -> str:
    """A line of a log for people: of a record in JSON, what it says."""
    line = line.strip()
    try:
        record = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return line
    if not isinstance(record, dict) or "event" not in record:
        return line
    text = f"{record['event']}"
    if "level" in record:
        text = f"{record['level']}: {text}"
    exception = str(record.get("exception", "")).strip()
    if exception:
        text += f" ({exception.splitlines()[-1].strip()})"
    return text


def _private_log(path: Path) -> IO[bytes]:
    """A log file that only its owner can read: it may contain data of workflows."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    return os.fdopen(descriptor, "ab")
