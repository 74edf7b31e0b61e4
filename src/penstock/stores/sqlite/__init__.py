"""The embedded store: one file, one process, one writer thread; nothing else to install."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from penstock.errors import SchemaMismatch, StoreError
from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.sqlite.claims import Claims
from penstock.stores.sqlite.cold import SqliteColdStore
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.lock import LockFile
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import LOG_PAGES, Writer, connect

SCHEMA_VERSION = "4"
UPDATES = {"3": "ALTER TABLE handlers ADD COLUMN defaults BLOB NOT NULL DEFAULT x'80'"}
"""By the schema that a file may still have, what it lacks; commands that need none of it take such a file as it is."""


class SqliteStores:
    split = events = None

    def __init__(self, path: Path, blobs: Path | None = None) -> None:
        path = path.absolute()
        if not path.parent.is_dir():
            raise StoreError(f"{path}: the folder {path.parent} doesn't exist; create it, or name another file")
        self.path = path
        self._lock = LockFile(path.with_name(path.name + ".lock"))
        try:
            with closing(
                _prepare(path)
            ):  # the last connection that closes removes the log: not before there is another
                self._claims = Claims(path.with_name(path.name + ".claims"))
                self._reader = Reader(path)
                self._searcher = Reader(path)
                self._writer = Writer(path)
        except BaseException:
            self._lock.release()
            raise
        self.hot = SqliteHotStore(self._writer, self._reader, self._claims)
        self.queue = self.hot.queue
        self.cold = SqliteColdStore(self.hot, self._writer, self._reader, self._searcher)
        self.blobs = DirectoryBlobs(blobs or path.with_name(path.name + ".blobs"))

    async def open(self) -> None:
        """It is."""

    async def close(self) -> None:
        await self._writer.close()
        self._reader.close()
        self._searcher.close()
        self._claims.close()
        self._lock.release()


def _prepare(path: Path) -> sqlite3.Connection:
    try:
        connection = connect(path)
    except sqlite3.Error as error:
        raise StoreError(f"{path} can't be opened as a SQLite file: {error}") from None
    try:
        _check_schema(connection, path)
        connection.executescript((Path(__file__).parent / "schema.sql").read_text())
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
        connection.execute("INSERT OR IGNORE INTO meta VALUES ('store_id', ?)", (secrets.token_hex(8),))
        _stretch_log(connection)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise StoreError(f"{path} can't be used: {error}") from None
        raise
    return connection


def _stretch_log(connection: sqlite3.Connection) -> None:
    """Let the write-ahead log have its size from the start: syncing a file that also grows takes half as long again."""
    connection.execute("CREATE TABLE stretch (data BLOB)")
    connection.execute("INSERT INTO stretch VALUES (zeroblob(?))", ((LOG_PAGES + 100) * 4096,))
    connection.execute("DROP TABLE stretch")
    connection.execute("PRAGMA wal_checkpoint(RESTART)")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Of a file that has been used before; one of the schema before is brought up to date."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if row and str(row[0]) in UPDATES:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            connection.execute(UPDATES[str(row[0])])
            connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION,))
    elif row and str(row[0]) != SCHEMA_VERSION:
        raise SchemaMismatch(f"{path} has schema {row[0]}; this version of Penstock uses {SCHEMA_VERSION}")
