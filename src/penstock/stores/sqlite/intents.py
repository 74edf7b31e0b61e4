"""Recording intents: many rows in few statements, whatever they have."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import chain

from penstock.stores import idempotency
from penstock.stores.base import Intent
from penstock.stores.cold import NO_LINES
from penstock.stores.idempotency import Key, KeyUse
from penstock.stores.matching import label_text
from penstock.stores.records import AuditLine
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.audit_log import write_lines
from penstock.stores.sqlite.numbers import write_lead
from penstock.stores.sqlite.writer import insert_many

SQL = statements_beside(__file__)

Row = tuple[int, str, str, int, str, str, float, str | None, bytes | None, bytes, bytes | None]


def record_intents(
    connection: sqlite3.Connection,
    intents: Sequence[Intent],
    rows: Sequence[Row],
    lead: float | None,
    audit: Mapping[str, AuditLine] = NO_LINES,
) -> list[str]:
    """Write new executions and answer their ids.

    For an idempotency key that was used before, no row is written; its id is that of the execution
    that the key has started.
    """
    keys = [
        (intent.key_scope, intent.idempotency_key)
        for intent in intents
        if intent.idempotency_key is not None
    ]
    new_rows = rows
    if keys:
        ids = _resolve_keys(connection, intents, keys)
        new_rows = [row for row, id_ in zip(rows, ids, strict=True) if row[1] == id_]
    else:
        ids = [row[1] for row in rows]

    insert_many(connection, SQL.insert_executions, new_rows)
    insert_many(connection, SQL.insert_labels, _labels(intents, rows, ids))
    if audit:
        write_lines(connection, [audit[row[1]] for row in new_rows if row[1] in audit])
    if lead is not None:
        write_lead(connection, lead)
    return ids


def _labels(
    intents: Sequence[Intent], rows: Sequence[Row], ids: list[str]
) -> list[tuple[str, str, int]]:
    labels: list[tuple[str, str, int]] = []
    for intent, row, execution_id in zip(intents, rows, ids, strict=True):
        is_new = row[1] == execution_id
        if intent.record.labels and is_new:
            n = row[0]
            for key, value in intent.record.labels.items():
                labels.append((key, label_text(value), n))
    return labels


def _resolve_keys(
    connection: sqlite3.Connection, intents: Sequence[Intent], keys: list[Key]
) -> list[str]:
    uses = _key_uses(connection, keys)
    stored = dict(uses)
    ids = idempotency.resolve_keys(intents, uses)
    new_uses = [(*key, *use) for key, use in uses.items() if use is not stored.get(key)]
    insert_many(
        connection,
        SQL.put_keys,
        new_uses,
    )
    return ids


def _key_uses(connection: sqlite3.Connection, keys: list[Key]) -> dict[Key, KeyUse]:
    """Stored uses of idempotency keys."""
    uses: dict[Key, KeyUse] = {}
    batch_size = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // 2
    for first in range(0, len(keys), batch_size):
        batch = keys[first : first + batch_size]
        marks = ",".join(["(?, ?)"] * len(batch))
        rows = connection.execute(
            # not `(scope, key) IN (VALUES …)`: that reads the whole table
            "SELECT scope, key, execution_id, request_hash, created_at "  # noqa: S608 -- marks only
            f"FROM (VALUES {marks}) CROSS JOIN idempotency ON scope = column1 AND key = column2",
            list(chain.from_iterable(batch)),
        )
        for scope, key, *use in rows:
            uses[scope, key] = KeyUse(*use)
    return uses
