"""Retention in PostgreSQL: deleting old executions in batches, so that nobody waits for locks."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from penstock.stores.base import KEY_SECONDS
from penstock.stores.postgres.blobs import TOUCH_SECONDS
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row
from penstock.stores.postgres.searching import label_digest
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)

BATCH = 1000
GONE = """(
    {name}.phase = 'ended' AND coalesce({name}.ended_at, {name}.created_at) < %(before)s
    OR {name}.phase = 'waiting' AND {name}.created_at < %(before)s
)"""
# Executions that ended before, or were created before and never triggered, unless a retry of it
# stays.
MAY_GO = f"""
    {GONE.format(name="old")} AND NOT EXISTS (
      SELECT 1 FROM executions AS retry WHERE retry.retry_of = old.id
        AND NOT {GONE.format(name="retry")}
    )
"""  # noqa: S608 -- our own words
# Checked again before it is deleted: meanwhile it may have been triggered or retried.
STILL_OLD = (
    f"SELECT n FROM executions AS old WHERE n = ANY(%(numbers)s) AND {MAY_GO} FOR UPDATE OF old"  # noqa: S608
)
SELECT_OLD = f"""
    SELECT n, labels, created_at, {MAY_GO} FROM executions AS old
    WHERE n > %(after)s ORDER BY n LIMIT %(batch)s
"""  # noqa: S608
COUNT_OLD = f"SELECT count(*) FROM executions AS old WHERE {MAY_GO}"  # noqa: S608
COUNT_BLOBS = f"""
    SELECT count(*), coalesce(sum(octet_length(data)), 0)::bigint FROM blobs
    WHERE used_at < %(limit)s AND NOT EXISTS (
      SELECT 1 FROM blob_uses JOIN executions AS old USING (n)
      WHERE blob_uses.key = blobs.key AND NOT ({MAY_GO})
    ) AND (used_at < %(strays)s OR EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.key = blobs.key))
"""  # noqa: S608


class Purged(NamedTuple):
    """What retention deleted: how many of each."""

    executions: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    dead_letters: int = 0
    keys: int = 0


async def purge(store: PostgresColdStore, before: float, batch: int = BATCH) -> Purged:
    """Delete executions that ended, or were never triggered, before this time.

    Everything that belongs to them is deleted too. An execution stays as long as a retry of it
    does, and a blob as long as any record names it. Idempotency keys are valid for a day: they are
    deleted when they are a day older than the rest.
    """
    database = store.database
    deleted = Counter[str]()
    after = 0
    while True:
        values = {"before": before, "after": after, "batch": batch}
        rows = await database.rows(SELECT_OLD, values, seconds=SLOW_SECONDS)
        # the oldest come first: behind a batch of younger ones there are no older ones
        if not any(created_at < before for _, _, created_at, _ in rows):
            break
        after = rows[-1][0]
        old_rows = [(n, labels) for n, labels, _, may_go in rows if may_go]
        deleted.update(await _delete(store, old_rows, before))

    deleted.update(await _delete_strays(store, before, batch))
    deleted["keys"] = await _repeat(database, SQL.delete_keys, (before - KEY_SECONDS, batch))
    return Purged(**deleted)


async def would_go(store: PostgresColdStore, before: float) -> Purged:
    """Executions and blobs that `purge` would delete."""
    limits = {
        "before": before,
        "limit": before - TOUCH_SECONDS,
        "strays": await _strays_before(store.database, before),
    }
    executions = await store.database.rows(COUNT_OLD, limits, seconds=SLOW_SECONDS)
    blobs = await store.database.rows(COUNT_BLOBS, limits, seconds=SLOW_SECONDS)
    return Purged(executions[0][0], *blobs[0])


async def _delete(store: PostgresColdStore, rows: list[Row], before: float) -> Counter[str]:
    if not rows:
        return Counter()
    async with store.database.transaction(SLOW_SECONDS) as connection:
        values = {"numbers": [n for n, _ in rows], "before": before}
        cursor = await connection.execute(STILL_OLD, values)
        still_old = {n for (n,) in await cursor.fetchall()}
        rows = [row for row in rows if row[0] in still_old]
        numbers = [n for n, _ in rows]

        await _delete_labels(connection, rows)
        await connection.execute(SQL.delete_segments, (numbers,))
        await connection.execute(SQL.delete_reports, (numbers,))
        await connection.execute(SQL.delete_signals, (numbers,))
        await connection.execute(SQL.delete_waits, (numbers,))
        dead_letters = await connection.execute(SQL.delete_dead_letters, (numbers,))
        used = await connection.execute(SQL.delete_uses, (numbers,))
        keys = sorted({key for (key,) in await used.fetchall()})
        deleted = await _delete_blobs(store, connection, keys, before - TOUCH_SECONDS)
        executions = await connection.execute(SQL.delete_executions, (numbers,))
        deleted.update(executions=executions.rowcount, dead_letters=dead_letters.rowcount)
    return deleted


async def _delete_labels(connection: Connection, rows: list[Row]) -> None:
    digests: list[bytes] = []
    numbers: list[int] = []
    for n, text in rows:
        if text is not None:
            for label in msgspec.json.decode(text).items():
                digests.append(label_digest(*label))
                numbers.append(n)
    if digests:
        await connection.execute(SQL.delete_labels, (digests, numbers))


async def _delete_blobs(
    store: PostgresColdStore, connection: Connection, keys: list[str], before: float
) -> Counter[str]:
    """Delete blobs that no execution uses and that weren't put again.

    Objects in an object store are deleted before the transaction ends: a process that puts one
    again meanwhile waits for its row.
    """
    if not keys:
        return Counter()
    cursor = await connection.execute(SQL.delete_blobs, (keys, before))
    rows = await cursor.fetchall()
    if store.objects is not None:
        await store.objects.delete_many([key for key, size in rows if not size])
    return Counter(blobs=len(rows), blob_bytes=sum(size for _, size in rows))


async def _delete_strays(store: PostgresColdStore, before: float, batch: int) -> Counter[str]:
    """Delete blobs that no record names."""
    database = store.database
    deleted = Counter[str]()
    limit = await _strays_before(database, before)
    while rows := await database.rows(SQL.select_strays, (limit, batch), seconds=SLOW_SECONDS):
        keys = [key for (key,) in rows]
        async with database.transaction(SLOW_SECONDS) as connection:
            deleted.update(await _delete_blobs(store, connection, keys, limit))
        if len(rows) < batch:
            break
    return deleted


async def _strays_before(database: Database, before: float) -> float:
    """The time before which blobs that no record names may be deleted.

    Such blobs are inputs of tasks, and outputs of attempts that were never recorded. A task that
    waits or runs may need one, so those younger than the oldest running execution stay.
    """
    ((oldest_running,),) = await database.rows(SQL.select_oldest_started, seconds=SLOW_SECONDS)
    if oldest_running is not None:
        before = min(before, oldest_running)
    return before - TOUCH_SECONDS


async def _repeat(database: Database, statement: str, values: tuple[Any, ...]) -> int:
    """Run a statement until it changes no more rows; answers how many it has changed."""
    total = 0
    while changed := await database.change(statement, values, seconds=SLOW_SECONDS):
        total += changed
    return total
