"""A store's file for reading only, also while another process has it open.

Nothing is locked and nothing is written. SQLite lets any number of processes read beside the one
that writes. While nobody has the file open, it has no log beside it, and SQLite would create one to
read: such a file is read as one that doesn't change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from penstock.errors import SchemaMismatch, StoreError
from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.object_blobs import BlobsMovedToObjects, ObjectBlobs
from penstock.stores.sqlite.cold import SqliteColdStore
from penstock.stores.sqlite.lock import name_in_use
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.preparing import SCHEMA_VERSION, UPDATES
from penstock.stores.sqlite.reader import Reader
from penstock.stores.topology import Topology


class ReadOnlySqliteStores:
    """The stores of a file that is read only: `cold` and `blobs` can be read."""

    topology = Topology(is_tiered=False, is_shared=False, tasks_are_durable=False)
    tiering = None
    commit_feed = None
    fleet = None
    blobs: DirectoryBlobs | BlobsMovedToObjects

    def __init__(
        self, opened: Path, blobs: Path | None = None, objects: ObjectBlobs | None = None
    ) -> None:
        """Raises `StoreError` if the file isn't a store of this version."""
        opened = opened.absolute()
        if not opened.is_file():
            raise StoreError(f"there is no store {opened}; name another with --store")
        path = self.path = name_in_use(opened)
        _check_schema(path)
        with ExitStack() as undo:
            reader = Reader(path, connect_for_reading)
            undo.callback(reader.close)
            searcher = Reader(path, connect_for_reading)
            undo.callback(searcher.close)
            self.refusing = refusing(path)
            self.hot = self.queue = self.refusing
            self.cold = SqliteColdStore(self.hot, self.refusing, reader, searcher, Numbers(reader))
            self._closing = undo.pop_all()

        folder = blobs or path.with_name(path.name + ".blobs")
        directory = DirectoryBlobs(folder, opened.with_name(opened.name + ".blobs"))
        self.blobs = directory if objects is None else BlobsMovedToObjects(objects, directory)

    async def open(self) -> None:
        """Nothing to do: the store is open once it is made."""

    async def forget(self, before: float) -> int:  # noqa: ARG002 -- as the protocol has it
        """Refuse: nothing is deleted."""
        self.refusing.forget()
        return 0

    async def close(self) -> None:
        self._closing.close()


class _Refusing:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        return partial(_refuse, self._path)


def refusing(path: Path) -> Any:
    """Stands for a part that only the process has which runs the store: every call is refused."""
    return _Refusing(path)


def _refuse(path: Path, *_: object, **__: object) -> NoReturn:
    raise StoreError(f"{path} was opened for reading only; nothing in it can be changed")


def connect_for_reading(path: Path) -> sqlite3.Connection:
    has_log = path.with_name(path.name + "-wal").exists()
    query = "mode=ro" if has_log else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"{path.as_uri()}?{query}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.execute("PRAGMA query_only=ON")
    return connection


def _check_schema(path: Path) -> None:
    try:
        with closing(connect_for_reading(path)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path} isn't a store of Penstock: {error}") from None

    schema = "none" if row is None else str(row[0])
    hint = ""
    if schema in UPDATES:
        hint = f"; 'penstock serve --store sqlite:///{path}' brings it up to date"
    if schema != SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{path} has schema {schema}; this version of Penstock reads {SCHEMA_VERSION}{hint}"
        )
