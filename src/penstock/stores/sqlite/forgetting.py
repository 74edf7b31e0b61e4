"""Deleting what retention has done with, while the store is in use: in steps that hold nobody up.

An execution goes in one transaction, all but its changes: there may be thousands of them, so they
go a few at a time. Until then their execution's number is in `forgotten`; nobody finds them without
the execution. A large value is a file that may belong to several executions: it goes when it is old
and nothing that is stored names it.
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
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer

EXECUTIONS_PER_STEP = 20
CHANGES_PER_STEP = 200
BYTES_PER_STEP = 1_000_000
ROWS_PER_READ = 20
PAUSE_SECONDS = 0.01
"""Between two steps: whoever writes meanwhile comes first."""
NOBODY = 0
"""A number that no execution has."""
BLOB_KEY = re.compile(rb"[0-9a-f]{64}")

GONE = """(
    {name}.ended_at IS NOT NULL AND {name}.ended_at < :before
    OR {name}.state = 'PENDING' AND {name}.created_at < :before
)"""
# As in PostgreSQL: those that ended before, or were made before and never triggered, unless a retry
# of it stays.
OLD = f"""
    SELECT n, id, labels, rest FROM executions AS old WHERE {GONE.format(name="old")} AND NOT EXISTS (
      SELECT 1 FROM executions AS retry WHERE retry.retry_of = old.id
        AND NOT {GONE.format(name="retry")}
    )
"""  # noqa: S608 -- our own words
Old = tuple[int, str, bytes | None, bytes | None]
_labels_decoder = msgspec.json.Decoder(dict[str, Any])


class SqliteForgetting:
    def __init__(self, writer: Writer, searcher: Reader, numbers: Numbers) -> None:
        self._writer, self._searcher, self._numbers = writer, searcher, numbers

    async def forget_executions(self, before: float) -> int:
        """Delete old executions; answers how many are gone."""
        forgotten, after = 0, -1
        await self._forget_changes()  # of those that the last process was about to forget
        while numbers := await self._old(before, after):
            after = numbers[-1]
            forgotten += await self._writer.submit(
                functools.partial(forget, before=before, numbers=numbers)
            )
            await self._forget_changes()
        return forgotten

    async def _old(self, before: float, after: int) -> list[int]:
        # what was created later has a greater number; the newest needn't be looked at
        ((_, until),) = self._numbers.between(None, before)
        rows = await self._searcher.run(
            lambda connection: connection.execute(
                f"{OLD} AND n > :after AND n <= :until ORDER BY n LIMIT :limit",
                {"before": before, "after": after, "until": until, "limit": EXECUTIONS_PER_STEP},
            ).fetchall()
        )
        return [row[0] for row in rows]

    async def _forget_changes(self) -> None:
        while await self._writer.submit(forget_changes):  # noqa: ASYNC110 -- it gives way to others
            await asyncio.sleep(PAUSE_SECONDS)

    async def forget_blobs(self, blobs: DirectoryBlobs | BlobsMovedToObjects, before: float) -> int:
        """Delete unused blobs, but for those younger than the oldest running execution.

        No record names what a task is given.
        """
        oldest = await self._searcher.rows(
            "SELECT min(created_at) FROM executions WHERE state IN ('RUNNING', 'PAUSED')"
        )
        before = before if oldest[0][0] is None else min(before, oldest[0][0])
        unused = await blobs.keys_before(before)
        for table, number, column in (
            ("changes", "id", "change"),
            ("executions", "n", "intent"),
            ("executions", "n", "rest"),
            ("letters", "id", "letter"),
        ):
            statement = f"SELECT {number}, {column} FROM {table} WHERE {number} > ? ORDER BY {number} LIMIT ?"  # noqa: S608
            after = -1
            while unused and (rows := await self._searcher.rows(statement, (after, ROWS_PER_READ))):
                after = rows[-1][0]
                unused -= await asyncio.to_thread(named_keys, [data for _, data in rows if data])
                await asyncio.sleep(0)
        return sum([await blobs.delete_before(key, before) for key in sorted(unused)])


def named_keys(values: Sequence[bytes]) -> set[str]:
    """Blob keys in these bytes.

    Whatever looks like one, since a value that is kept in vain does no harm.
    """
    return {key.decode() for data in values for key in BLOB_KEY.findall(data)}


def forget(connection: sqlite3.Connection, before: float, numbers: Sequence[int]) -> int:
    """Delete executions that may still go: meanwhile one may have been triggered or retried."""
    marks = ",".join(str(int(n)) for n in numbers)
    rows = connection.execute(f"{OLD} AND n IN ({marks})", {"before": before}).fetchall()
    for row in rows:
        delete_execution(connection, row)
        connection.execute("INSERT INTO forgotten VALUES (?)", (row[0],))
    return len(rows)


def delete_execution(connection: sqlite3.Connection, row: Old) -> None:
    """Delete an execution's rows, all but its changes.

    By keys only: searching these tables for a number would read all of them.
    """
    from penstock.stores.sqlite.executions import decode_rest  # noqa: PLC0415 -- it imports the whole store

    n, execution_id, labels, rest = row
    if labels is not None:
        pairs = [
            (key, label_text(value), n) for key, value in _labels_decoder.decode(labels).items()
        ]
        connection.executemany("DELETE FROM labels WHERE key = ? AND value = ? AND n = ?", pairs)
    if rest is not None:
        more = decode_rest(rest)
        connection.execute(
            "DELETE FROM idempotency WHERE scope = ? AND key = ? AND execution_id = ?",
            (more.key_scope, more.idempotency_key, execution_id),
        )
    dead_letters = connection.execute("SELECT id FROM letters WHERE n = ?", (n,)).fetchall()
    _delete_rows(connection, "letters", "letter", [each for (each,) in dead_letters])
    connection.execute("DELETE FROM timers WHERE n = ?", (n,))
    connection.execute("DELETE FROM reports WHERE n = ?", (n,))
    connection.execute("DELETE FROM executions WHERE n = ?", (n,))


def forget_changes(connection: sqlite3.Connection) -> bool:
    """Delete some changes of forgotten executions; False when none are left."""
    chosen, size = [], 0
    rows = connection.execute(
        "SELECT id, length(change) FROM forgotten CROSS JOIN changes USING (n) LIMIT ?",
        (CHANGES_PER_STEP,),
    )
    for number, length in rows.fetchall():
        chosen.append(number)
        size += length
        if size > BYTES_PER_STEP:
            break
    _delete_rows(connection, "changes", "change", chosen)
    if not chosen:
        connection.execute("DELETE FROM forgotten")
    return bool(chosen)


def _delete_rows(
    connection: sqlite3.Connection, table: str, column: str, ids: Sequence[int]
) -> None:
    """The last row of a table stays, without content: the next is counted from it, and no number must come twice."""
    if not ids:
        return
    last = connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0]  # noqa: S608 -- ours
    if last in ids:
        connection.execute(f"UPDATE {table} SET n = ?, {column} = x'' WHERE id = ?", (NOBODY, last))  # noqa: S608
    marks = ",".join(str(int(each)) for each in ids if each != last)
    connection.execute(f"DELETE FROM {table} WHERE id IN ({marks})")  # noqa: S608 -- numbers
    connection.execute(f"DELETE FROM {table} WHERE n = ? AND id < ?", (NOBODY, last))  # noqa: S608
