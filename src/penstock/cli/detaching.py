"""`penstock up --detach`: the same command as a process in the background."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from penstock.cli.safe_text import clean
from penstock.cli.up_folder import UpFolder, UpState

STEP_SECONDS = 0.1
FLAGS = ("-d", "--detach", "--json")
"""Flags that are for the process in front only."""


def start_detached(folder: UpFolder) -> UpState | int:
    """Start it, and return what runs when it is ready.

    If it ends before, what it said about that is printed, and its exit code is returned.
    """
    arguments = [argument for argument in sys.argv[1:] if argument not in FLAGS]
    command = [sys.executable, "-m", "penstock", *arguments]
    descriptor = os.open(folder.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "ab") as log:
        offset = log.seek(0, os.SEEK_END)
        # In a session of its own, so that it goes on when this terminal is closed.
        process = subprocess.Popen(  # noqa: S603 -- ourselves
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        return _wait_until_ready(folder, process, offset)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise


def _wait_until_ready(
    folder: UpFolder, process: subprocess.Popen[bytes], offset: int
) -> UpState | int:
    while (code := process.poll()) is None:
        state = folder.state()
        if state is not None and state.pid == process.pid:
            # It isn't waited for any more: it outlives this process.
            process.returncode = 0
            return state
        time.sleep(STEP_SECONDS)
    with folder.log.open("rb") as log:
        log.seek(offset)
        said = log.read().decode("utf-8", "replace")
    print(clean(said).rstrip(), file=sys.stderr)
    return code
