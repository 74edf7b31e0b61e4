"""The folder of `penstock up`: its lock, and what runs there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from penstock.errors import PenstockError, StoreLocked
from penstock.stores.sqlite.lock import LockFile

DEFAULT_FOLDER = ".penstock"
IGNORE_ALL = "# Data and logs of 'penstock up'.\n*\n"


class UpServer(msgspec.Struct):
    """A Redis or a PostgreSQL that `penstock up` has started."""

    name: str
    version: str
    port: int
    folder: str


class UpState(msgspec.Struct):
    """What a `penstock up` that is ready says about itself."""

    pid: int
    url: str
    folder: str
    logs: str
    env: str
    """A file with the URLs of the servers, for a shell."""
    apis: int
    workers: int
    orchestrators: int
    servers: list[UpServer]


class UpFolder:
    """The folder of a `penstock up`, with the data and the logs of its processes."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.logs = self.path / "logs"
        self.log = self.logs / "up.log"
        """The output of `penstock up` itself, if it was started with --detach."""
        self._lock = self.path / "up.lock"
        self._state = self.path / "up.json"

    def make(self) -> None:
        """Create the folder if there is none, so that Git ignores it."""
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            # A folder that was there before may have other things in it.
            ignore = self.path / ".gitignore"
            if (is_new or self.path.name == DEFAULT_FOLDER) and not ignore.exists():
                ignore.write_text(IGNORE_ALL, encoding="utf-8")
        except OSError as error:
            raise PenstockError(
                f"the folder {self.path} can't be created: {error.strerror};"
                " name another with --folder"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, so that it has one `penstock up` at a time."""
        try:
            lock = LockFile(self._lock)
        except StoreLocked:
            raise PenstockError(
                f"another 'penstock up' runs in {self.path};"
                f" 'penstock down{self.flag}' stops it, or name another --folder"
            ) from None
        try:
            yield
        finally:
            self._state.unlink(missing_ok=True)
            lock.release()

    @property
    def flag(self) -> str:
        """The flag by which another command finds this folder, if it needs one."""
        return "" if str(self.path) == DEFAULT_FOLDER else f" --folder {self.path}"

    def holder(self) -> int | None:
        """The process id of the `penstock up` that runs here; None if none does."""
        if not self._lock.exists():
            return None
        try:
            lock = LockFile(self._lock)
        except StoreLocked:
            return int(self._lock.read_text(encoding="ascii") or 0) or None
        lock.release()
        return None

    def write_state(self, state: UpState) -> None:
        """Write what runs here, in one step: another process may read it at any time."""
        unfinished = self._state.with_suffix(".new")
        write_private(unfinished, msgspec.json.encode(state).decode())
        unfinished.replace(self._state)

    def state(self) -> UpState | None:
        """What runs here, if it is ready."""
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=UpState)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
