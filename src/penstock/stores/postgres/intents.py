"""Recording intents: one COPY, and what a few of them have beside (keys, labels, audit lines, reused blobs)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.engine.events import Blob
from penstock.engine.states import ExecutionState
from penstock.stores import codec, idempotency
from penstock.stores.base import Intent, ReusedOutput, partition_of
from penstock.stores.idempotency import Key, KeyUse
from penstock.stores.postgres.audit_log import write_lines
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
    """What an `Intent` has beside its record, where that is anything."""

    idempotency_key: str | None
    request_hash: str
    key_scope: str
    reused: list[ReusedOutput]


async def record_intents(
    database: Database,
    partitions: int,
    intents: Sequence[Intent],
    audit: Mapping[str, AuditLine],
) -> list[str]:
    """Write new executions.

    Answers their ids: for a known idempotency key that of the execution that it made, and then no
    row is written.
    """
    rows = [
        _row(intent, partition_of(intent.record.execution_id, partitions)) for intent in intents
    ]
    seconds = SLOW_SECONDS if len(intents) > MANY else None
    if not audit and all(_is_plain(intent) for intent in intents):
        async with database.connection(seconds) as connection:  # a COPY by itself is a transaction
            await copy_in(connection, "executions", COLUMNS, TYPES, rows)
        return [row[0] for row in rows]
    async with database.transaction(seconds) as connection:
        ids = await _resolve_keys(connection, intents)
        recorded = [
            intent
            for intent, execution_id in zip(intents, ids, strict=True)
            if intent.record.execution_id == execution_id
        ]
        execution_ids = {intent.record.execution_id for intent in recorded}
        await copy_in(
            connection,
            "executions",
            COLUMNS,
            TYPES,
            [row for row in rows if row[0] in execution_ids],
        )
        await _write_more(connection, recorded)
        lines = [audit[execution_id] for execution_id in audit if execution_id in execution_ids]
        if lines:
            await write_lines(connection, lines)
    return ids


async def record_intents_again(
    connection: Connection, partition: int, intents: Sequence[Intent]
) -> None:
    """Write executions' rows that this database has lost.

    Their keys are theirs, unless somebody has used them again since.
    """
    if not intents:
        return
    rows = [_row(intent, partition) for intent in intents]
    await copy_in(connection, "executions", COLUMNS, TYPES, rows)
    await _write_more(connection, intents)
    keys = [
        (key_digest(intent.key_scope, intent.idempotency_key), *_key_use(intent))
        for intent in intents
        if intent.idempotency_key is not None
    ]
    if keys:
        await connection.execute(CLAIM_KEYS, _columns(keys))


def key_digest(scope: str, key: str) -> bytes:
    return digest(scope, key)


def _is_plain(intent: Intent) -> bool:
    return intent.idempotency_key is None and not intent.record.labels and not intent.reused


def _row(intent: Intent, partition: int) -> Row:
    record = intent.record
    labels = msgspec.json.encode(record.labels).decode() if record.labels else None
    rest = None
    if (
        intent.idempotency_key is not None
        or intent.reused
        or intent.request_hash
        or intent.key_scope
    ):
        rest = codec.encode(
            Rest(intent.idempotency_key, intent.request_hash, intent.key_scope, intent.reused)
        )
    return (
        record.execution_id,
        partition,
        record.workflow,
        record.version,
        WAITS if intent.waits else SHOULD_START,
        record.created_at,
        intent.retry_of,
        labels,
        codec.encode(record),
        rest,
        0,
        0,
    )


async def _write_more(connection: Connection, intents: Sequence[Intent]) -> None:
    records = [intent.record for intent in intents]
    labels = [
        (label_digest(*label), record.execution_id)
        for record in records
        for label in record.labels.items()
    ]
    if labels:
        await connection.execute(INSERT_LABELS, _columns(labels))
    uses = [
        (reused.output.key, intent.record.execution_id)
        for intent in intents
        for reused in intent.reused
        if isinstance(reused.output, Blob)
    ]
    if uses:
        await connection.execute(INSERT_USES, _columns(uses))
        await connection.execute(TOUCH_BLOBS, ([key for key, _ in uses],))


async def _resolve_keys(connection: Connection, intents: Sequence[Intent]) -> list[str]:
    """Resolve idempotency keys; who comes second with a key waits until the first has committed."""
    first: dict[Key, Intent] = {}
    for intent in intents:
        if intent.idempotency_key is not None:
            first.setdefault((intent.key_scope, intent.idempotency_key), intent)
    if not first:
        return [intent.record.execution_id for intent in intents]
    keys = {key_digest(*key): key for key in first}
    claims = [(execution_id, *_key_use(first[key])) for execution_id, key in keys.items()]
    await connection.execute(CLAIM_KEYS, _columns(claims))
    cursor = await connection.execute(SELECT_KEYS, (list(keys),), binary=True)
    stored = {keys[row[0]]: KeyUse(*row[1:]) for row in await cursor.fetchall()}
    known = {
        key: made
        for key, made in stored.items()
        if made.execution_id != first[key].record.execution_id
    }
    ids = idempotency.resolve_keys(intents, known)
    renewed = [(key_digest(*key), *known[key]) for key in known if known[key] != stored[key]]
    if renewed:
        await connection.execute(RENEW_KEYS, _columns(renewed))
    return ids


def _key_use(intent: Intent) -> KeyUse:
    return KeyUse(intent.record.execution_id, intent.request_hash, intent.record.created_at)


def _columns(rows: Sequence[Row]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
