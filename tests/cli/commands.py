"""Calls of the real command in a process of its own, on pipes or on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PENSTOCK = (sys.executable, "-m", "penstock")
TIMEOUT_SECONDS = 60


def environment(**variables: str) -> dict[str, str]:
    """Nothing of this machine's own settings and terminal."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PENSTOCK_", "OPENAI_", "NO_COLOR"))
    }
    return {**inherited, "PYTHONUNBUFFERED": "", "COLUMNS": "100", **variables}


def penstock(
    *arguments: str, cwd: Path = ROOT, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return call([*PENSTOCK, *arguments], cwd=cwd, stdin=stdin, env=env)


def call(
    command: Sequence[str],
    *,
    cwd: Path = ROOT,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        input=stdin,
        env=environment(**(env or {})),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PENSTOCK, *arguments],
        cwd=cwd,
        env=environment(),
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_hear_signals,
    )


def _hear_signals() -> None:
    """Restore the default signal handlers.

    Tests that run in a shell's background inherit ignored signals; a terminal's processes don't.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """A pseudo-terminal with a command on it.

    `screen` is everything that was written there so far.
    """

    def __init__(
        self,
        *arguments: str,
        cwd: Path,
        columns: int = 80,
        rows: int = 24,
        command: Sequence[str] = PENSTOCK,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = environment(TERM="xterm-256color")
        del env["COLUMNS"]
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_hear_signals,
        )
        os.close(slave)
        self.screen = ""

    def read_until(self, text: str) -> None:
        while text not in self.screen:
            assert self._read(), f"the command ended without {text!r}:\n{self.screen}"

    def read_all(self) -> str:
        while self._read():
            pass
        return self.screen

    def _read(self) -> bool:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that nobody has the other side open
            return False
        self.screen += data.decode("utf-8", "replace")
        return bool(data)

    def close(self) -> int:
        self.read_all()
        os.close(self._master)
        return self.process.wait(TIMEOUT_SECONDS)


ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|.)")
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\d*A|2K|\?25[lh])")
"""Colours, cursor up, erase the line, hide and show the cursor: all that the live table needs."""


def foreign_escapes(screen: str) -> list[str]:
    return [escape for escape in ESCAPES.findall(screen) if not OURS.fullmatch(escape)]


def visible(screen: str) -> str:
    return ESCAPES.sub("", screen).replace("\r", "")


def steady(text: str) -> str:
    """Without what differs from run to run: times and ids."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"^ +\d+\.\d{3}s", "<time>", text, flags=re.MULTILINE)
    return re.sub(r"(?:<1|\d+) ms|\d+\.\d s", "<duration>", text)


def write(path: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")


def nodes(*documents: Mapping[str, object]) -> dict[str, object]:
    return {"name": "test", "nodes": list(documents)}


def chain(names: Iterable[str]) -> dict[str, object]:
    chained: list[dict[str, object]] = []
    for name in names:
        parents = [chained[-1]["id"]] if chained else []
        chained.append({"id": name, "handler": "noop", "dependencies": parents})
    return nodes(*chained)
