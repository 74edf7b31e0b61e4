"""Preparing a file: it becomes a store, or is upgraded to this schema, before it is used.

A process can be killed, and the disk can be full, at every step. So there are only two kinds of
steps: the one transaction that creates or upgrades everything, and steps that leave nothing behind
when they end half-way.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import SchemaMismatch, StoreError, StoreUnavailable
from penstock.stores.sqlite.writer import LOG_PAGES, UNAVAILABLE, connect

SCHEMA_VERSION = "7"
FOLDER = Path(__file__).parent
UPDATES = {
    version: (FOLDER / "upgrades" / f"from_{version}.sql").read_text("utf-8")
    for version in ("3", "4", "5", "6")
}
"""Statements that upgrade a file to the next schema, by the schema that it has."""
LOG_BYTES = (LOG_PAGES + 100) * 4120
"""A page in the log has 24 bytes of its own in front of it."""


def prepare(path: Path) -> sqlite3.Connection:
    try:
        connection = connect(path)
    except sqlite3.Error as error:
        raise unusable(path, error, "can't be opened as a SQLite file") from None
    try:
        upgrade(connection, path)
        _record_name(connection, path)
        _stretch_log(connection, path)
    except BaseException as error:
        connection.close()  # which rolls back what isn't committed
        if isinstance(error, sqlite3.Error):
            raise unusable(path, error) from None
        raise
    return connection


def upgrade(connection: sqlite3.Connection, path: Path) -> None:
    """Create or upgrade the schema, in one transaction; a failed one ends with the connection."""
    connection.execute("BEGIN IMMEDIATE")
    _check_schema(connection, path)
    _create_schema(connection)
    connection.execute("COMMIT")


def unusable(path: Path, error: Exception, what: str = "can't be used") -> StoreError:
    """The error of opening a file.

    `StoreUnavailable` where it may be tried again with the same file.
    """
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, OSError) or any(word in text for word in UNAVAILABLE):
        return StoreUnavailable(
            f"{path} {what}: {text}; nothing was lost, open it again when that is fixed"
        )
    return StoreError(f"{path} {what}: {text}")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Check the schema of a file that has been used before; an older one is brought up to date."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if row is None:
        return
    version = str(row[0])
    while version in UPDATES:
        for statement in _statements(UPDATES[version]):
            connection.execute(statement)
        version = str(int(version) + 1)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (version,))
    if version != SCHEMA_VERSION:
        raise SchemaMismatch(
            f"{path} has schema {version}; this version of Penstock uses {SCHEMA_VERSION}"
        )


def _create_schema(connection: sqlite3.Connection) -> None:
    """Create tables and indexes that aren't there yet.

    A file that has all of them isn't written to.
    """
    # one by one: `executescript` would commit what is done before it
    for statement in _statements((FOLDER / "schema.sql").read_text("utf-8")):
        connection.execute(statement)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('store_id', ?)", (secrets.token_hex(8),))
    # earlier versions left it behind if they were killed, or the disk was full, during opening
    connection.execute("DROP TABLE IF EXISTS stretch")


def _record_name(connection: sqlite3.Connection, path: Path) -> None:
    """Record the file's name, for processes that open it through a hard link.

    The log and other files are beside this name. It has to be in the file itself, not in the log,
    before anything else is written.
    """
    row = connection.execute("SELECT value FROM meta WHERE key = 'path'").fetchone()
    if row is None or row[0] != str(path):
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('path', ?)", (str(path),))
        connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def _stretch_log(connection: sqlite3.Connection, path: Path) -> None:
    """Give the write-ahead log its size from the start.

    Syncing a file that also grows takes half as long again. SQLite ignores zeros behind the end of
    the log, so nothing has to be undone if this ends half-way, and everything works without them
    on a full disk.
    """
    connection.execute("BEGIN IMMEDIATE")  # nobody appends to the log meanwhile
    try:
        with (
            contextlib.suppress(OSError),
            path.with_name(path.name + "-wal").open("r+b", buffering=0) as log,
        ):
            missing = LOG_BYTES - log.seek(0, os.SEEK_END)
            if missing > 0:
                log.write(bytes(missing))
                os.fsync(log.fileno())
    finally:
        connection.execute("ROLLBACK")
