"""Finished executions that are old enough leave a file that no engine has open.

Not while one has it open: a large value is stored before the record that points to it, so only who knows that nothing
is under way can tell a value that nobody needs from one that is about to be needed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from penstock.errors import SchemaMismatch, StoreError
from penstock.stores.sqlite.lock import StoreLock
from penstock.stores.sqlite.preparing import SCHEMA_VERSION, UPDATES, unusable
from penstock.stores.sqlite.writer import connect

BATCH = 500
NOBODY = 0
"""A number that no execution has."""
BLOB_KEY = re.compile(rb"[0-9a-f]{64}")

# As in PostgreSQL: those that ended before, unless a retry of it hasn't.
OLD = """
    SELECT n, id FROM executions AS old WHERE ended_at IS NOT NULL AND ended_at < :before AND NOT EXISTS (
      SELECT 1 FROM executions AS retry WHERE retry.retry_of = old.id
        AND (retry.ended_at IS NULL OR retry.ended_at >= :before)
    ) ORDER BY n LIMIT :most
"""
# A retry has in `rest` what it keeps, so blobs of executions that are gone are found there.
EVERYTHING = """
    SELECT change FROM changes UNION ALL SELECT intent FROM executions
    UNION ALL SELECT rest FROM executions WHERE rest IS NOT NULL
    UNION ALL SELECT letter FROM letters
"""


class Purged(NamedTuple):
    executions: int
    blobs: int
    blob_bytes: int


def purge(path: Path, before: float, *, blobs: Path | None = None, dry_run: bool = False) -> Purged:
    """Executions that ended before this time, with all that belongs to them, and large values that nobody needs.

    Raises `StoreLocked` if a process has the file open.
    """
    if not path.exists():
        raise StoreError(f"there is no store {path}; name another with --store")
    with _open(path.absolute()) as (connection, name):
        folder = blobs or name.with_name(name.name + ".blobs")
        if dry_run:
            old = [n for n, _ in connection.execute(OLD, {"before": before, "most": -1})]
            return Purged(len(old), *_sizes(_unused(_keys_after(connection, old), folder, before)))
        executions = _delete_executions(connection, before)
        unused = _unused(_keys(connection, EVERYTHING), folder, before)
        sizes = _sizes(unused)
        for blob in unused:
            blob.unlink(missing_ok=True)
        if executions:
            connection.execute("VACUUM")
        return Purged(executions, *sizes)


@contextmanager
def _open(given: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """And the name that the file is used by."""
    try:
        lock = StoreLock(given, create=False)
    except OSError as error:
        raise unusable(given, error, "can't be purged") from None
    path = lock.path
    try:
        with closing(sqlite3.connect(path)) as looking:  # before anything is set in it: it may be another program's
            row = looking.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if row is None or str(row[0]) not in (SCHEMA_VERSION, *UPDATES):
            found = row[0] if row else "none"
            raise SchemaMismatch(f"{path} has schema {found}; this version of Penstock uses {SCHEMA_VERSION}")
        with closing(connect(path)) as connection:
            yield connection, path
    except sqlite3.Error as error:
        raise StoreError(f"{path} can't be purged: {error}") from None
    finally:
        lock.release()


def _delete_executions(connection: sqlite3.Connection, before: float) -> int:
    deleted = 0
    while rows := connection.execute(OLD, {"before": before, "most": BATCH}).fetchall():
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            _delete_some(connection, rows)
        deleted += len(rows)
    return deleted


def _delete_some(connection: sqlite3.Connection, rows: list[tuple[int, str]]) -> None:
    numbers, names = [(n,) for n, _ in rows], [(name,) for _, name in rows]
    # The last row of these stays, without content: the next one is counted from it, and no number must come twice.
    for table, column in (("changes", "change"), ("letters", "letter")):
        last = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]  # noqa: S608 -- ours
        emptied = f"UPDATE {table} SET n = ?, {column} = x'' WHERE n = ? AND id = ?"  # noqa: S608 -- ours
        connection.executemany(emptied, [(NOBODY, n, last) for (n,) in numbers])
        connection.execute(f"DELETE FROM {table} WHERE n = ? AND id < ?", (NOBODY, last))  # noqa: S608 -- ours
    for table in ("changes", "timers", "letters", "reports", "executions"):
        connection.executemany(f"DELETE FROM {table} WHERE n = ?", numbers)  # noqa: S608 -- from the line above
    connection.executemany("DELETE FROM idempotency WHERE execution_id = ?", names)
    marks = ",".join("?" * len(numbers))
    connection.execute(f"DELETE FROM labels WHERE n IN ({marks})", [n for (n,) in numbers])  # noqa: S608 -- marks


def _keys(connection: sqlite3.Connection, query: str) -> set[str]:
    """Whatever looks like a blob's key in these bytes: a value that is kept in vain does no harm."""
    rows = connection.execute(query)
    return {key.decode() for (data,) in rows for key in BLOB_KEY.findall(data)}


def _keys_after(connection: sqlite3.Connection, gone: list[int]) -> set[str]:
    """What would still be referred to."""
    connection.execute("CREATE TEMP TABLE gone (n INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO gone VALUES (?)", [(n,) for n in gone])
    keys: set[str] = set()
    for table, column in (
        ("changes", "change"),
        ("letters", "letter"),
        ("executions", "intent"),
        ("executions", "rest"),
    ):
        kept = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL AND n NOT IN (SELECT n FROM gone)"  # noqa: S608
        keys |= _keys(connection, kept)
    return keys


def _unused(keys: set[str], folder: Path, before: float) -> list[Path]:
    """Younger ones are left: what a task is given isn't written in any record."""
    files = [path for path in folder.glob("*/*") if path.is_file()] if folder.is_dir() else []
    return [path for path in files if path.name.partition(".")[0] not in keys and path.stat().st_mtime < before]


def _sizes(files: list[Path]) -> tuple[int, int]:
    return len(files), sum(path.stat().st_size for path in files)
