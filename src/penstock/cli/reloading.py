"""`penstock dev --reload`: a child process that serves, started again when a file with handlers changes."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

LOOK_SECONDS = 0.3


def run_reloading(handlers: Iterable[str]) -> int:
    """Until Ctrl-C, or until the child ends by itself: a port that is in use won't mend by trying again."""
    folders = folders_of(handlers)
    command = [
        sys.executable,
        "-m",
        "penstock",
        *(each for each in sys.argv[1:] if each != "--reload"),
    ]
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        seen = snapshot(folders)
        with subprocess.Popen(command) as child:  # noqa: S603 -- ourselves
            while (
                child.poll() is None and not stop.wait(LOOK_SECONDS) and snapshot(folders) == seen
            ):
                pass
            ended = child.poll()
            if ended is None:
                child.send_signal(signal.SIGTERM)
                child.wait()
            elif not _wait_for_change(folders, seen, stop):
                return ended
        if not stop.is_set():
            print("a file changed: starting again", file=sys.stderr, flush=True)
    return 0


def _wait_for_change(folders: list[Path], seen: dict[Path, int], stop: threading.Event) -> bool:
    """A mistake in a handler's file ends the child: mending it starts another."""
    print("waiting for a change…", file=sys.stderr, flush=True)
    while not stop.wait(LOOK_SECONDS):
        if snapshot(folders) != seen:
            return True
    return False


def folders_of(handlers: Iterable[str]) -> list[Path]:
    """Where the handlers' files are; this folder if there are none."""
    found = []
    for origin in handlers:
        if origin.endswith(".py"):
            found.append(Path(origin).resolve().parent)
        else:
            sys.path.insert(0, str(Path.cwd()))
            spec = importlib.util.find_spec(origin.partition(".")[0])
            found += (
                [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
            )
            if spec and spec.origin:
                found.append(Path(spec.origin).parent)
    return found or [Path.cwd()]


def snapshot(folders: Iterable[Path]) -> dict[Path, int]:
    """The time of change of every Python file."""
    found: dict[Path, int] = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):
                try:
                    found[path] = path.stat().st_mtime_ns
                except FileNotFoundError:  # removed between the two calls
                    continue
    return found
