"""Executions that are old enough leave a file that no engine has open: `penstock purge`.

An engine does the same by itself, in small steps (`forgetting`). Here nothing is under way, so
large values that nobody needs can be told from those that are about to be needed at once, and the
file is made smaller.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from penstock.errors import SchemaMismatch, StoreError
from penstock.stores.object_blobs import ObjectBlobs, StoredObject
from penstock.stores.sqlite.forgetting import OLD, forget, forget_changes, named_keys
from penstock.stores.sqlite.lock import StoreLock
from penstock.stores.sqlite.preparing import SCHEMA_VERSION, UPDATES, unusable
from penstock.stores.sqlite.writer import connect

BATCH = 500

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


def purge(
    path: Path,
    before: float,
    *,
    blobs: Path | None = None,
    objects: ObjectBlobs | None = None,
    dry_run: bool = False,
) -> Purged:
    """Delete executions that ended, or were never triggered, before this time, and unused blobs.

    Raises `StoreLocked` if a process has the file open.
    """
    if not path.exists():
        raise StoreError(f"there is no store {path}; name another with --store")
    with _open(path.absolute()) as (connection, name):
        folder = blobs or name.with_name(name.name + ".blobs")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS forgotten (n INTEGER PRIMARY KEY)"
        )  # not in older files
        if dry_run:
            old = [row[0] for row in connection.execute(OLD, {"before": before})]
            used_keys = _keys_after(connection, old)
            unneeded = asyncio.run(_unused_objects(objects, used_keys, before))
            return Purged(len(old), *_sizes(_unused(used_keys, folder, before), unneeded))
        executions = _delete_executions(connection, before)
        used_keys = _keys(connection, EVERYTHING)
        unused = _unused(used_keys, folder, before)
        unneeded = asyncio.run(_unused_objects(objects, used_keys, before, delete=True))
        sizes = _sizes(unused, unneeded)
        for blob in unused:
            blob.unlink(missing_ok=True)
        if executions:
            connection.execute("VACUUM")
        return Purged(executions, *sizes)


@contextmanager
def _open(given: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Open the file; answers the connection and the name that the file is used by."""
    try:
        lock = StoreLock(given, create=False)
    except OSError as error:
        raise unusable(given, error, "can't be purged") from None
    path = lock.path
    try:
        with closing(
            sqlite3.connect(path)
        ) as looking:  # before anything is set in it: it may be another program's
            row = looking.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if row is None or str(row[0]) not in (SCHEMA_VERSION, *UPDATES):
            found = row[0] if row else "none"
            raise SchemaMismatch(
                f"{path} has schema {found}; this version of Penstock uses {SCHEMA_VERSION}"
            )
        with closing(connect(path)) as connection:
            yield connection, path
    except sqlite3.Error as error:
        raise StoreError(f"{path} can't be purged: {error}") from None
    finally:
        lock.release()


def _delete_executions(connection: sqlite3.Connection, before: float) -> int:
    deleted = 0
    while rows := connection.execute(
        f"{OLD} ORDER BY n LIMIT :limit", {"before": before, "limit": BATCH}
    ).fetchall():
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            deleted += forget(connection, before, [row[0] for row in rows])
            while forget_changes(connection):
                pass
    return deleted


def _keys(connection: sqlite3.Connection, query: str) -> set[str]:
    """Blob keys in what a query gives.

    Whatever looks like one, since a value that is kept in vain does no harm.
    """
    rows = connection.execute(query)
    return {key for (data,) in rows for key in named_keys([data])}


def _keys_after(connection: sqlite3.Connection, gone: list[int]) -> set[str]:
    """Blob keys that would still be referred to."""
    connection.execute("CREATE TEMP TABLE gone (n INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO gone VALUES (?)", [(n,) for n in gone])
    keys: set[str] = set()
    for table, column in (
        ("changes", "change"),
        ("letters", "letter"),
        ("executions", "intent"),
        ("executions", "rest"),
    ):
        used_keys = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL AND n NOT IN (SELECT n FROM gone)"  # noqa: S608
        keys |= _keys(connection, used_keys)
    return keys


def _unused(keys: set[str], folder: Path, before: float) -> list[Path]:
    """Unused blobs; younger ones are left, since no record names a task's inputs."""
    files = [path for path in folder.glob("*/*") if path.is_file()] if folder.is_dir() else []
    return [
        path
        for path in files
        if path.name.partition(".")[0] not in keys and path.stat().st_mtime < before
    ]


async def _unused_objects(
    objects: ObjectBlobs | None, used_keys: set[str], before: float, *, delete: bool = False
) -> list[StoredObject]:
    if objects is None:
        return []
    found = [
        each
        async for each in objects.objects()
        if each.key not in used_keys and each.modified_at < before
    ]
    if delete:
        await objects.delete_many([each.key for each in found])
    return found


def _sizes(files: list[Path], objects: Sequence[StoredObject]) -> tuple[int, int]:
    size = sum(path.stat().st_size for path in files) + sum(each.size for each in objects)
    return len(files) + len(objects), size
