"""`penstock dev --reload`: a child process that is restarted when handlers change."""

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
    """Run the child until Ctrl-C, or until it ends by itself and no file changes."""
    folders = folders_of(handlers)
    arguments = [argument for argument in sys.argv[1:] if argument != "--reload"]
    command = [sys.executable, "-m", "penstock", *arguments]

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        seen = snapshot(folders)
        with subprocess.Popen(command) as child:  # noqa: S603 -- ourselves
            while child.poll() is None and not stop.wait(LOOK_SECONDS):
                if snapshot(folders) != seen:
                    break
            ended = child.poll()
            if ended is None:
                child.send_signal(signal.SIGTERM)
                child.wait()
            elif not _wait_for_change(folders, seen, stop):
                return ended
        if not stop.is_set():
            print("a file changed; restarting", file=sys.stderr, flush=True)
    return 0


def _wait_for_change(folders: list[Path], seen: dict[Path, int], stop: threading.Event) -> bool:
    """Wait for a change of files, after an error in a handlers file has ended the child."""
    print("waiting for a change…", file=sys.stderr, flush=True)
    while not stop.wait(LOOK_SECONDS):
        if snapshot(folders) != seen:
            return True
    return False


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


def snapshot(folders: Iterable[Path]) -> dict[Path, int]:
    """The modification time of every Python file."""
    times: dict[Path, int] = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):
                try:
                    times[path] = path.stat().st_mtime_ns
                except FileNotFoundError:  # removed between the two calls
                    continue
    return times
