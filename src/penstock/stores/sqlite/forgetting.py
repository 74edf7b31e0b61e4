"""Retention while the store is in use: old executions are deleted in small steps.

An execution is deleted in one transaction, except for its changes: there may be thousands of them,
so they are deleted a few at a time. Until then the execution's number is in `forgotten`. A blob may
belong to several executions: it is deleted when it is old and no record names it.
"""

from __future__ import annotations

import asyncio
import functools
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.stores.blobs import DirectoryBlobs
from penstock.stores.matching import label_text
from penstock.stores.object_blobs import BlobsMovedToObjects
from penstock.stores.sql.intents import decode_rest
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer

SQL = statements_beside(__file__)

EXECUTIONS_PER_STEP = 20
CHANGES_PER_STEP = 200
BYTES_PER_STEP = 1_000_000
ROWS_PER_READ = 20
PAUSE_SECONDS = 0.01
"""The pause between two steps, in which other jobs are written."""
NOBODY = 0
"""A number that no execution has."""
BLOB_KEY = re.compile(rb"[0-9a-f]{64}")

GONE = """(
    {name}.ended_at IS NOT NULL AND {name}.ended_at < :before
    OR {name}.phase = 'waiting' AND {name}.created_at < :before
)"""
# As in PostgreSQL: executions that ended before, or were created before and never triggered, unless
# a retry of it stays.
OLD = f"""
    SELECT n, id, labels, rest FROM executions AS old
    WHERE {GONE.format(name="old")} AND NOT EXISTS (
      SELECT 1 FROM executions AS retry WHERE retry.retry_of = old.id
        AND NOT {GONE.format(name="retry")}
    )
"""  # noqa: S608 -- our own words
Old = tuple[int, str, bytes | None, bytes | None]
_labels_decoder = msgspec.json.Decoder(dict[str, Any])


class SqliteRetention:
    def __init__(self, writer: Writer, searcher: Reader, numbers: Numbers) -> None:
        self._writer = writer
        self._searcher = searcher
        self._numbers = numbers

    async def forget_executions(self, before: float) -> int:
        """Delete old executions; answers how many were deleted."""
        forgotten = 0
        after = -1
        await self._forget_changes()  # the last process may have left some
        while numbers := await self._find_old(before, after):
            after = numbers[-1]
            job = functools.partial(forget, before=before, numbers=numbers)
            forgotten += await self._writer.submit(job)
            await self._forget_changes()
        return forgotten

    async def _find_old(self, before: float, after: int) -> list[int]:
        """Numbers of the next old executions, of which `after` is the last one that was read."""
        # executions that were created later have greater numbers, and needn't be read
        ((_, until),) = self._numbers.between(None, before)
        statement = f"{OLD} AND n > :after AND n <= :until ORDER BY n LIMIT :limit"
        values = {"before": before, "after": after, "until": until, "limit": EXECUTIONS_PER_STEP}
        rows = await self._searcher.run(
            lambda connection: connection.execute(statement, values).fetchall()
        )
        return [row[0] for row in rows]

    async def _forget_changes(self) -> None:
        while await self._writer.submit(forget_changes):  # noqa: ASYNC110 -- it gives way to others
            await asyncio.sleep(PAUSE_SECONDS)

    async def forget_blobs(self, blobs: DirectoryBlobs | BlobsMovedToObjects, before: float) -> int:
        """Delete unused blobs, except those younger than the oldest running execution.

        Younger ones may be inputs of tasks, which no record names.
        """
        rows = await self._searcher.rows(SQL.select_oldest_started)
        oldest_running = rows[0][0]
        if oldest_running is not None:
            before = min(before, oldest_running)

        unused = await blobs.keys_before(before)
        for table, number, column in (
            ("changes", "id", "change"),
            ("executions", "n", "intent"),
            ("executions", "n", "rest"),
            ("dead_letters", "id", "dead_letter"),
        ):
            statement = f"""
                SELECT {number}, {column} FROM {table}
                WHERE {number} > ? ORDER BY {number} LIMIT ?
            """  # noqa: S608
            await self._remove_used(unused, statement)

        deleted = 0
        for key in sorted(unused):
            deleted += await blobs.delete_before(key, before)
        return deleted

    async def _remove_used(self, unused: set[str], statement: str) -> None:
        """Remove blob keys that are named in the rows that a statement selects, page by page."""
        after = -1
        while unused:
            rows = await self._searcher.rows(statement, (after, ROWS_PER_READ))
            if not rows:
                return
            after = rows[-1][0]
            unused -= await asyncio.to_thread(named_keys, [data for _, data in rows if data])
            await asyncio.sleep(0)


def named_keys(values: Sequence[bytes]) -> set[str]:
    """Blob keys in these bytes.

    Anything that looks like a key counts: a blob that isn't deleted does no harm.
    """
    keys: set[str] = set()
    for data in values:
        keys.update(key.decode() for key in BLOB_KEY.findall(data))
    return keys


def forget(connection: sqlite3.Connection, before: float, numbers: Sequence[int]) -> int:
    """Delete those executions that are still old: meanwhile one may be triggered or retried."""
    marks = ",".join(str(int(n)) for n in numbers)
    rows = connection.execute(f"{OLD} AND n IN ({marks})", {"before": before}).fetchall()
    for row in rows:
        delete_execution(connection, row)
        connection.execute(SQL.insert_forgotten, (row[0],))
    return len(rows)


def delete_execution(connection: sqlite3.Connection, row: Old) -> None:
    """Delete an execution's rows, all but its changes.

    Rows are deleted by their keys: finding them by the execution's number would read whole tables.
    """
    n, execution_id, labels_data, rest_data = row
    if labels_data is not None:
        labels = _labels_decoder.decode(labels_data)
        label_rows = [(key, label_text(value), n) for key, value in labels.items()]
        connection.executemany(SQL.delete_label, label_rows)
    if rest_data is not None:
        rest = decode_rest(rest_data)
        connection.execute(
            SQL.delete_key,
            (rest.key_scope, rest.idempotency_key, execution_id),
        )
    dead_letters = connection.execute(SQL.select_dead_letters, (n,)).fetchall()
    _delete_rows(connection, "dead_letters", "dead_letter", [row_id for (row_id,) in dead_letters])
    connection.execute(SQL.delete_timer, (n,))
    connection.execute(SQL.delete_report, (n,))
    connection.execute(SQL.delete_signals, (n,))
    connection.execute(SQL.delete_execution, (n,))


def forget_changes(connection: sqlite3.Connection) -> bool:
    """Delete some changes of forgotten executions; False when none are left."""
    chosen: list[int] = []
    size = 0
    rows = connection.execute(
        SQL.select_forgotten_changes,
        (CHANGES_PER_STEP,),
    )
    for number, length in rows.fetchall():
        chosen.append(number)
        size += length
        if size > BYTES_PER_STEP:
            break
    _delete_rows(connection, "changes", "change", chosen)
    if not chosen:
        connection.execute(SQL.delete_forgotten)
    return bool(chosen)


def _delete_rows(
    connection: sqlite3.Connection, table: str, column: str, ids: Sequence[int]
) -> None:
    """Delete rows of a table.

    The last row stays, without content: the next id is counted from it, and no id may come twice.
    """
    if not ids:
        return
    last = connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0]  # noqa: S608 -- ours
    if last in ids:
        clear = f"UPDATE {table} SET n = ?, {column} = x'' WHERE id = ?"  # noqa: S608 -- ours
        connection.execute(clear, (NOBODY, last))
    marks = ",".join(str(int(row_id)) for row_id in ids if row_id != last)
    connection.execute(f"DELETE FROM {table} WHERE id IN ({marks})")  # noqa: S608 -- numbers
    connection.execute(f"DELETE FROM {table} WHERE n = ? AND id < ?", (NOBODY, last))  # noqa: S608
