"""Starts a role of a plant through `tests.faults.launched`, beside those that are well."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from penstock.local.process import Process
from tests.acceptance import works
from tests.acceptance.plant import Plant, Role
from tests.faults import handlers

ROOT = Path(__file__).resolve().parents[2]
HANDLERS = ("--handlers", str(handlers.__file__))
"""For a worker or an orchestrator that is well, too."""


def launch(plant: Plant, kind: str, order: dict[str, Any], *arguments: str, **environ: str) -> Role:
    """It isn't ready yet, and perhaps never is."""
    number = next(plant._numbers)
    log = plant.folder / "logs" / f"{kind}-{number}.log"
    own = (
        ("--port", "0")
        if kind == "api"
        else ("--health-port", "0", "--handlers", str(works.__file__), *HANDLERS)
    )
    command = [
        sys.executable,
        "-m",
        "tests.faults.launched",
        json.dumps(order),
        kind,
        *own,
        *arguments,
    ]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = Process(
        command, log, folder=plant.folder, environ={**plant._environ(environ), "PYTHONPATH": path}
    )
    role = Role(kind, number, process, log)
    plant.roles.append(role)
    return role
