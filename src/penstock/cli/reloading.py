"""`penstock dev --reload`: a child process that is restarted when handlers change."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from watchfiles import Change, watch

from penstock.cli.interrupt import SIGNALS

LOOK_MS = 300
"""How often it is seen that the child has ended; changes are seen at once."""


class Reloader:
    """Runs the child, and restarts it when a file changes.

    The first signal asks the child to stop, as it would itself; the second one ends it at once.
    """

    def __init__(self, command: list[str], folders: list[Path]) -> None:
        self._command = command
        self._folders = folders
        self._stopping = threading.Event()
        self._is_child_ending = False
        self._child = self._start_child()

    def _start_child(self) -> subprocess.Popen[bytes]:
        # In a session of its own: Ctrl-C in a terminal would reach it too, and together with the
        # signal from here it would be the second one.
        return subprocess.Popen(self._command, start_new_session=True)  # noqa: S603 -- ourselves

    def run(self) -> int:
        """Run until a signal comes; returns the exit code of the last child."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

        is_waiting = False
        changes = watch(
            *self._folders,
            watch_filter=self._is_source,
            stop_event=self._stopping,
            rust_timeout=LOOK_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        for changed in changes:
            if changed:
                self._stop_child()
                if self._stopping.is_set():
                    break
                _say(f"{_names(changed)} changed; restarting")
                self._child = self._start_child()
                is_waiting = False
            elif self._child.poll() is not None and not is_waiting:
                _say("waiting for a change…")
                is_waiting = True
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _stop_child(self) -> None:
        self._is_child_ending = True
        self._end_child()
        self._child.wait()
        self._is_child_ending = False

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        is_first = not self._stopping.is_set()
        self._stopping.set()
        # A child that is being restarted was asked to stop already; twice would end it at once.
        if not (is_first and self._is_child_ending):
            self._end_child()

    def _end_child(self) -> None:
        if self._child.poll() is None:
            self._child.terminate()

    def _is_source(self, _change: Change, path: str) -> bool:
        """Whether a file is a Python file outside of hidden folders, such as `.venv`."""
        file = Path(path)
        if file.suffix != ".py":
            return False
        for folder in self._folders:
            if file.is_relative_to(folder):
                return not any(part.startswith(".") for part in file.relative_to(folder).parts)
        return False


def run_reloading(handlers: Iterable[str]) -> int:
    """Run `penstock dev` with these flags, and restart it when a file changes, until Ctrl-C."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--reload"]
    command = [sys.executable, "-m", "penstock", *arguments]
    return Reloader(command, folders_of(handlers)).run()


def folders_of(handlers: Iterable[str]) -> list[Path]:
    """The folders of the handlers' files; the current folder if there are none."""
    folders = []
    for origin in handlers:
        if origin.endswith(".py"):
            folders.append(Path(origin).resolve().parent)
        else:
            sys.path.insert(0, str(Path.cwd()))
            spec = importlib.util.find_spec(origin.partition(".")[0])
            if spec is None:
                continue
            folders += [Path(folder) for folder in spec.submodule_search_locations or []]
            if spec.origin:
                folders.append(Path(spec.origin).parent)
    return folders or [Path.cwd()]


def _names(changed: Iterable[tuple[Change, str]]) -> str:
    names = sorted({Path(path).name for _, path in changed})
    rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{rest}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
