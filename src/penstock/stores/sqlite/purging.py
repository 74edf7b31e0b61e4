"""Purging: deleting old executions from a file that no engine has open (`penstock purge`).

An engine does the same by itself, in small steps (`forgetting`). Here nothing runs meanwhile, so
unused blobs are known at once, and the file can be made smaller.
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
from penstock.stores.sqlite.preparing import SCHEMA_VERSION, UPDATES, unusable, upgrade
from penstock.stores.sqlite.writer import connect

BATCH = 500

# A retry has its reused outputs in `rest`, so blobs of deleted executions are named there.
EVERYTHING = """
    SELECT change FROM changes UNION ALL SELECT intent FROM executions
    UNION ALL SELECT rest FROM executions WHERE rest IS NOT NULL
    UNION ALL SELECT dead_letter FROM dead_letters
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
        if dry_run:
            old = [row[0] for row in connection.execute(OLD, {"before": before})]
            used_keys = _keys_after(connection, old)
            unused_files = _unused_files(used_keys, folder, before)
            unused_objects = asyncio.run(_unused_objects(objects, used_keys, before))
            return Purged(len(old), *_sizes(unused_files, unused_objects))

        executions = _delete_executions(connection, before)
        used_keys = _keys(connection, EVERYTHING)
        unused_files = _unused_files(used_keys, folder, before)
        unused_objects = asyncio.run(_unused_objects(objects, used_keys, before, delete=True))
        sizes = _sizes(unused_files, unused_objects)
        for file in unused_files:
            file.unlink(missing_ok=True)
        if executions:
            connection.execute("VACUUM")
        return Purged(executions, *sizes)


@contextmanager
def _open(opened: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Open the file; answers the connection and the name that the file is used by."""
    try:
        lock = StoreLock(opened, create=False)
    except OSError as error:
        raise unusable(opened, error, "can't be purged") from None
    path = lock.path
    try:
        # with no setting changed yet: the file may be another program's
        with closing(sqlite3.connect(path)) as plain:
            row = plain.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        if row is None or str(row[0]) not in (SCHEMA_VERSION, *UPDATES):
            version = row[0] if row else "none"
            raise SchemaMismatch(
                f"{path} has schema {version}; this version of Penstock uses {SCHEMA_VERSION}"
            )
        with closing(connect(path)) as connection:
            upgrade(connection, path)
            yield connection, path
    except sqlite3.Error as error:
        raise StoreError(f"{path} can't be purged: {error}") from None
    finally:
        lock.release()


def _delete_executions(connection: sqlite3.Connection, before: float) -> int:
    deleted = 0
    statement = f"{OLD} ORDER BY n LIMIT :limit"
    values = {"before": before, "limit": BATCH}
    while rows := connection.execute(statement, values).fetchall():
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            deleted += forget(connection, before, [row[0] for row in rows])
            while forget_changes(connection):
                pass
    return deleted


def _keys(connection: sqlite3.Connection, query: str) -> set[str]:
    """Blob keys in the values that a query selects.

    Anything that looks like a key counts: a blob that isn't deleted does no harm.
    """
    keys: set[str] = set()
    for (data,) in connection.execute(query):
        keys |= named_keys([data])
    return keys


def _keys_after(connection: sqlite3.Connection, deleted: list[int]) -> set[str]:
    """Blob keys that would still be used if these executions were deleted."""
    connection.execute("CREATE TEMP TABLE gone (n INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO gone VALUES (?)", [(n,) for n in deleted])
    keys: set[str] = set()
    for table, column in (
        ("changes", "change"),
        ("dead_letters", "dead_letter"),
        ("executions", "intent"),
        ("executions", "rest"),
    ):
        query = f"""
            SELECT {column} FROM {table}
            WHERE {column} IS NOT NULL AND n NOT IN (SELECT n FROM gone)
        """  # noqa: S608
        keys |= _keys(connection, query)
    return keys


def _unused_files(used_keys: set[str], folder: Path, before: float) -> list[Path]:
    """Unused blobs in a folder; younger ones are left, since no record names a task's inputs."""
    if not folder.is_dir():
        return []
    unused: list[Path] = []
    for path in folder.glob("*/*"):
        key = path.name.partition(".")[0]
        if path.is_file() and key not in used_keys and path.stat().st_mtime < before:
            unused.append(path)
    return unused


async def _unused_objects(
    objects: ObjectBlobs | None, used_keys: set[str], before: float, *, delete: bool = False
) -> list[StoredObject]:
    if objects is None:
        return []
    unused = [
        stored
        async for stored in objects.objects()
        if stored.key not in used_keys and stored.modified_at < before
    ]
    if delete:
        await objects.delete_many([stored.key for stored in unused])
    return unused


def _sizes(files: list[Path], objects: Sequence[StoredObject]) -> tuple[int, int]:
    """How many blobs these are, and how many bytes they have."""
    file_bytes = sum(path.stat().st_size for path in files)
    object_bytes = sum(stored.size for stored in objects)
    return len(files) + len(objects), file_bytes + object_bytes
