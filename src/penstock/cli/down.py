"""`penstock down`: stops a `penstock up`."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import click

from penstock.cli.remote import as_json, print_json
from penstock.cli.up_folder import DEFAULT_FOLDER, UpFolder
from penstock.errors import PenstockError

STEP_SECONDS = 0.1
STOP_SECONDS = 120.0
"""How long the processes may take: workers finish running tasks first."""

EPILOG = """Examples:

\b
  penstock up --detach
  penstock down"""


@click.command(short_help="Stop what 'penstock up' has started.", epilog=EPILOG)
@click.option(
    "--folder",
    default=DEFAULT_FOLDER,
    show_default=True,
    metavar="FOLDER",
    help="The folder of the 'penstock up'.",
)
@as_json
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def down(folder: str, **options: Any) -> None:
    """Stop the 'penstock up' that runs in this folder, and all of its processes.

    Running tasks are finished first, as with Ctrl-C. The data stay.
    """
    up_folder = UpFolder(folder)
    pid = up_folder.holder()
    if pid is not None:
        stop(up_folder, pid)
    if options["as_json"]:
        print_json({"folder": folder, "stopped": pid is not None})
    elif pid is None:
        print(f"nothing runs in {folder}", file=sys.stderr)
    else:
        print(f"stopped; the data stay in {folder}")


def stop(up_folder: UpFolder, pid: int) -> None:
    """Ask the process to stop, and wait until it has given up its lock."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return  # it has just ended by itself
    except PermissionError:
        raise PenstockError(
            f"process {pid}, which runs in {up_folder.path}, belongs to another user"
        ) from None
    deadline = time.monotonic() + STOP_SECONDS
    while up_folder.holder() == pid:
        if time.monotonic() > deadline:
            raise PenstockError(
                f"process {pid} hasn't stopped within {STOP_SECONDS:g} s;"
                f" its logs are in {up_folder.logs}"
            )
        time.sleep(STEP_SECONDS)
