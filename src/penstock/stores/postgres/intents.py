"""Recording intents: one COPY, and rows for keys, labels, audit lines and reused blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.engine.events import Blob
from penstock.engine.states import ExecutionState
from penstock.stores import codec, idempotency
from penstock.stores.base import Intent, partition_of
from penstock.stores.idempotency import Key, KeyUse
from penstock.stores.phases import Phase
from penstock.stores.postgres.audit_log import write_lines
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row, copy_in
from penstock.stores.postgres.searching import label_digest
from penstock.stores.postgres.texts import digest, escaped
from penstock.stores.records import AuditLine
from penstock.stores.sql.intents import encode_rest
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)

MANY = 500
PENDING = str(ExecutionState.PENDING)
COLUMNS = """
    id, partition, workflow, version, phase, state, created_at, retry_of, labels, intent, rest,
    generation, revision, parent, parent_node, parent_partition
"""
TYPES = (
    "text",
    "int4",
    "text",
    "int4",
    "text",
    "text",
    "float8",
    "text",
    "text",
    "bytea",
    "bytea",
    "int4",
    "int8",
    "text",
    "text",
    "int4",
)


async def record_intents(
    database: Database,
    partitions: int,
    intents: Sequence[Intent],
    audit: Mapping[str, AuditLine],
) -> list[str]:
    """Write new executions and answer their ids.

    For an idempotency key that was used before, no row is written; its id is that of the execution
    that the key has started.
    """
    rows: list[Row] = []
    for intent in intents:
        partition = partition_of(intent.record.execution_id, partitions)
        rows.append(_intent_row(intent, partition, partitions))

    seconds = SLOW_SECONDS if len(intents) > MANY else None
    if not audit and all(_is_plain(intent) for intent in intents):
        async with database.connection(seconds) as connection:  # a COPY by itself is a transaction
            await copy_in(connection, "executions", COLUMNS, TYPES, rows)
        return [row[0] for row in rows]

    async with database.transaction(seconds) as connection:
        ids = await _resolve_keys(connection, intents)
        new_intents = [
            intent
            for intent, execution_id in zip(intents, ids, strict=True)
            if intent.record.execution_id == execution_id
        ]
        new_ids = {intent.record.execution_id for intent in new_intents}
        new_rows = [row for row in rows if row[0] in new_ids]
        await copy_in(connection, "executions", COLUMNS, TYPES, new_rows)
        await _write_labels_and_uses(connection, new_intents)
        lines = [line for execution_id, line in audit.items() if execution_id in new_ids]
        if lines:
            await write_lines(connection, lines)
    return ids


async def record_intents_again(
    connection: Connection, partition: int, intents: Sequence[Intent], partitions: int
) -> None:
    """Write rows of executions that this database has lost.

    They get their idempotency keys back, unless a key was used again since.
    """
    if not intents:
        return
    rows = [_intent_row(intent, partition, partitions) for intent in intents]
    await copy_in(connection, "executions", COLUMNS, TYPES, rows)
    await _write_labels_and_uses(connection, intents)
    keys = [
        (key_digest(intent.key_scope, intent.idempotency_key), *_key_use(intent))
        for intent in intents
        if intent.idempotency_key is not None
    ]
    if keys:
        await connection.execute(SQL.claim_keys, _columns(keys))


def key_digest(scope: str, key: str) -> bytes:
    return digest(scope, key)


def _is_plain(intent: Intent) -> bool:
    return intent.idempotency_key is None and not intent.record.labels and not intent.reused


def _intent_row(intent: Intent, partition: int, partitions: int) -> Row:
    record = intent.record
    parent = record.parent
    labels = msgspec.json.encode(record.labels).decode() if record.labels else None
    return (
        record.execution_id,
        partition,
        record.workflow,
        record.version,
        str(Phase.WAITING if intent.waits else Phase.STARTED),
        PENDING,
        record.created_at,
        intent.retry_of,
        labels,
        codec.encode(record),
        encode_rest(intent),
        0,
        0,
        None if parent is None else parent.execution_id,
        None if parent is None else escaped(parent.node_id),
        None if parent is None else partition_of(parent.execution_id, partitions),
    )


async def _write_labels_and_uses(connection: Connection, intents: Sequence[Intent]) -> None:
    """Write labels of executions, and which blobs their reused outputs use."""
    labels: list[tuple[bytes, str]] = []
    uses: list[tuple[str, str]] = []
    for intent in intents:
        execution_id = intent.record.execution_id
        labels += [(label_digest(*label), execution_id) for label in intent.record.labels.items()]
        outputs = [reused.output for reused in intent.reused]
        uses += [(output.key, execution_id) for output in outputs if isinstance(output, Blob)]

    if labels:
        await connection.execute(SQL.insert_labels, _columns(labels))
    await record_blob_uses(connection, uses)
    if uses:
        await connection.execute(SQL.touch_blobs, ([key for key, _ in uses],))


async def record_blob_uses(connection: Connection, uses: Sequence[tuple[str, str]]) -> None:
    """Record which blobs are used, by their keys, and by which executions."""
    if uses:
        await connection.execute(SQL.insert_uses, _columns(uses))


async def _resolve_keys(connection: Connection, intents: Sequence[Intent]) -> list[str]:
    """Resolve idempotency keys.

    A second transaction with the same key waits until the first has committed.
    """
    first_intents: dict[Key, Intent] = {}
    for intent in intents:
        if intent.idempotency_key is not None:
            first_intents.setdefault((intent.key_scope, intent.idempotency_key), intent)
    if not first_intents:
        return [intent.record.execution_id for intent in intents]

    keys = {key_digest(*key): key for key in first_intents}
    claims = [(digest_, *_key_use(first_intents[key])) for digest_, key in keys.items()]
    await connection.execute(SQL.claim_keys, _columns(claims))
    cursor = await connection.execute(SQL.select_keys, (list(keys),), binary=True)
    stored = {keys[row[0]]: KeyUse(*row[1:]) for row in await cursor.fetchall()}

    uses = {
        key: use
        for key, use in stored.items()
        if use.execution_id != first_intents[key].record.execution_id
    }
    ids = idempotency.resolve_keys(intents, uses)
    renewed = [(key_digest(*key), *use) for key, use in uses.items() if use != stored[key]]
    if renewed:
        await connection.execute(SQL.renew_keys, _columns(renewed))
    return ids


def _key_use(intent: Intent) -> KeyUse:
    return KeyUse(intent.record.execution_id, intent.request_hash, intent.record.created_at)


def _columns(rows: Sequence[Row]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
