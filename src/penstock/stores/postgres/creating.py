"""Writing new executions: one COPY, and what a few of them have beside (keys, labels, audit lines, reused blobs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.engine.events import Blob
from penstock.engine.states import ExecutionState
from penstock.stores import codec, idempotency
from penstock.stores.base import NewExecution, ReusedOutput, partition_of
from penstock.stores.idempotency import Key, Made
from penstock.stores.postgres.books import write_lines
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row, copy_in
from penstock.stores.postgres.searching import label_digest
from penstock.stores.postgres.texts import digest
from penstock.stores.records import AuditLine

MANY = 500
WAITS, SHOULD_START = str(ExecutionState.PENDING), str(ExecutionState.RUNNING)
COLUMNS = "id, partition, workflow, version, state, created_at, retry_of, labels, intent, rest, generation, revision"
TYPES = (
    "text",
    "int4",
    "text",
    "int4",
    "text",
    "float8",
    "text",
    "text",
    "bytea",
    "bytea",
    "int4",
    "int8",
)

INSERT_LABELS = """
    INSERT INTO labels (label, n) SELECT label, n FROM unnest(%b::bytea[], %b::text[]) AS new (label, id)
    JOIN executions USING (id)
"""
INSERT_USES = """
    INSERT INTO blob_uses (key, n) SELECT key, n FROM unnest(%b::text[], %b::text[]) AS new (key, id)
    JOIN executions USING (id) ON CONFLICT DO NOTHING
"""
# touched, so that a purge that has just found them unused looks again
TOUCH_BLOBS = "UPDATE blobs SET used_at = extract(epoch FROM clock_timestamp()) WHERE key = ANY(%b)"
# in the order of keys, so that two calls with the same ones wait for each other and not in a circle
CLAIM_KEYS = """
    INSERT INTO idempotency (key, execution_id, request_hash, created_at)
    SELECT * FROM unnest(%b::bytea[], %b::text[], %b::text[], %b::float8[]) AS new (key) ORDER BY key
    ON CONFLICT DO NOTHING
"""
SELECT_KEYS = """
    SELECT key, execution_id, request_hash, created_at FROM idempotency WHERE key = ANY(%b) ORDER BY key FOR UPDATE
"""
RENEW_KEYS = """
    UPDATE idempotency SET execution_id = new.execution_id, request_hash = new.request_hash, created_at = new.created_at
    FROM unnest(%b::bytea[], %b::text[], %b::text[], %b::float8[]) AS new (key, execution_id, request_hash, created_at)
    WHERE idempotency.key = new.key
"""


class Rest(msgspec.Struct, array_like=True):
    """What a NewExecution has beside its record, where that is anything."""

    idempotency_key: str | None
    request_hash: str
    key_scope: str
    reused: list[ReusedOutput]


async def create(
    database: Database,
    partitions: int,
    executions: Sequence[NewExecution],
    audit: Mapping[str, AuditLine],
) -> list[str]:
    """Write new executions.

    Answers their ids: for a known idempotency key that of the execution that it made, and then no
    row is written.
    """
    rows = [_row(new, partition_of(new.record.execution_id, partitions)) for new in executions]
    seconds = SLOW_SECONDS if len(executions) > MANY else None
    if not audit and all(_is_plain(new) for new in executions):
        async with database.connection(seconds) as connection:  # a COPY by itself is a transaction
            await copy_in(connection, "executions", COLUMNS, TYPES, rows)
        return [row[0] for row in rows]
    async with database.transaction(seconds) as connection:
        ids = await _resolve_keys(connection, executions)
        new = [
            made
            for made, name in zip(executions, ids, strict=True)
            if made.record.execution_id == name
        ]
        names = {made.record.execution_id for made in new}
        await copy_in(
            connection, "executions", COLUMNS, TYPES, [row for row in rows if row[0] in names]
        )
        await _write_more(connection, new)
        lines = [audit[name] for name in audit if name in names]
        if lines:
            await write_lines(connection, lines)
    return ids


async def create_again(
    connection: Connection, partition: int, executions: Sequence[NewExecution]
) -> None:
    """Write executions' rows that this database has lost.

    Their keys are theirs, unless somebody has used them again since.
    """
    if not executions:
        return
    rows = [_row(new, partition) for new in executions]
    await copy_in(connection, "executions", COLUMNS, TYPES, rows)
    await _write_more(connection, executions)
    keys = [
        (key_digest(new.key_scope, new.idempotency_key), *_made(new))
        for new in executions
        if new.idempotency_key is not None
    ]
    if keys:
        await connection.execute(CLAIM_KEYS, _columns(keys))


def key_digest(scope: str, key: str) -> bytes:
    return digest(scope, key)


def _is_plain(new: NewExecution) -> bool:
    return new.idempotency_key is None and not new.record.labels and not new.reused


def _row(new: NewExecution, partition: int) -> Row:
    record = new.record
    labels = msgspec.json.encode(record.labels).decode() if record.labels else None
    rest = None
    if new.idempotency_key is not None or new.reused or new.request_hash or new.key_scope:
        rest = codec.encode(Rest(new.idempotency_key, new.request_hash, new.key_scope, new.reused))
    return (
        record.execution_id,
        partition,
        record.workflow,
        record.version,
        WAITS if new.waits else SHOULD_START,
        record.created_at,
        new.retry_of,
        labels,
        codec.encode(record),
        rest,
        0,
        0,
    )


async def _write_more(connection: Connection, executions: Sequence[NewExecution]) -> None:
    records = [new.record for new in executions]
    labels = [
        (label_digest(*label), record.execution_id)
        for record in records
        for label in record.labels.items()
    ]
    if labels:
        await connection.execute(INSERT_LABELS, _columns(labels))
    uses = [
        (reused.output.key, new.record.execution_id)
        for new in executions
        for reused in new.reused
        if isinstance(reused.output, Blob)
    ]
    if uses:
        await connection.execute(INSERT_USES, _columns(uses))
        await connection.execute(TOUCH_BLOBS, ([key for key, _ in uses],))


async def _resolve_keys(connection: Connection, executions: Sequence[NewExecution]) -> list[str]:
    """Resolve idempotency keys; who comes second with a key waits until the first has committed."""
    first: dict[Key, NewExecution] = {}
    for new in executions:
        if new.idempotency_key is not None:
            first.setdefault((new.key_scope, new.idempotency_key), new)
    if not first:
        return [new.record.execution_id for new in executions]
    keys = {key_digest(*key): key for key in first}
    claims = [(name, *_made(first[key])) for name, key in keys.items()]
    await connection.execute(CLAIM_KEYS, _columns(claims))
    cursor = await connection.execute(SELECT_KEYS, (list(keys),), binary=True)
    stored = {keys[row[0]]: Made(*row[1:]) for row in await cursor.fetchall()}
    known = {
        key: made
        for key, made in stored.items()
        if made.execution_id != first[key].record.execution_id
    }
    ids = idempotency.resolve_keys(executions, known)
    renewed = [(key_digest(*key), *known[key]) for key in known if known[key] != stored[key]]
    if renewed:
        await connection.execute(RENEW_KEYS, _columns(renewed))
    return ids


def _made(new: NewExecution) -> Made:
    return Made(new.record.execution_id, new.request_hash, new.record.created_at)


def _columns(rows: Sequence[Row]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
