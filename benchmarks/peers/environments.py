"""An environment for each peer, with the current release from the package index."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.catalog import Peer

FOLDER = Path.home() / ".cache" / "penstock-peers"
INSTALL_SECONDS = 600


class NotInstalled(Exception):
    """Why a peer can't be measured here."""


def python_of(peer: Peer) -> Path:
    """The interpreter for the peer's script.

    Its environment is created, or upgraded to the current release, first.
    """
    if peer.is_penstock:
        return Path(sys.executable)
    venv = FOLDER / peer.environment
    python, uv = venv / "bin" / "python", shutil.which("uv")
    if uv:
        make, install = (
            [uv, "venv", "--python", sys.executable],
            [uv, "pip", "install", "--python", str(python)],
        )
    else:
        make, install = (
            [sys.executable, "-m", "venv", "--clear"],
            [str(python), "-m", "pip", "install"],
        )
    # one that uv made has no pip
    if not python.exists() or not (uv or (venv / "bin" / "pip").exists()):
        _run([*make, str(venv)])
    _run([*install, "--quiet", "--upgrade", *peer.packages])
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"installing took more than {INSTALL_SECONDS} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NotInstalled(f"doesn't install: {said[-1].strip()}")
