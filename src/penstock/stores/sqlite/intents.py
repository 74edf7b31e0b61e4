"""Recording intents: many rows in few statements, whatever they have."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from penstock.stores import idempotency
from penstock.stores.base import Intent
from penstock.stores.cold import NO_LINES
from penstock.stores.idempotency import Key, KeyUse
from penstock.stores.matching import label_text
from penstock.stores.records import AuditLine
from penstock.stores.sqlite.audit_log import write_lines
from penstock.stores.sqlite.numbers import write_lead
from penstock.stores.sqlite.writer import insert_many

Row = tuple[int, str, str, int, str, float, str | None, bytes | None, bytes, bytes | None]
NEW_EXECUTIONS = "INSERT INTO executions (n, id, workflow, version, state, created_at, retry_of, labels, intent, rest)"


def record_intents(
    connection: sqlite3.Connection,
    intents: Sequence[Intent],
    rows: Sequence[Row],
    lead: float | None,
    audit: Mapping[str, AuditLine] = NO_LINES,
) -> list[str]:
    """Write new executions.

    Answers their ids: for a known idempotency key that of the execution that it made, and then no
    row is written.
    """
    keys = [
        (intent.key_scope, intent.idempotency_key)
        for intent in intents
        if intent.idempotency_key is not None
    ]
    ids = _resolve_keys(connection, intents, keys) if keys else [row[1] for row in rows]
    new_rows = (
        [row for row, execution_id in zip(rows, ids, strict=True) if row[1] == execution_id]
        if keys
        else rows
    )
    insert_many(connection, NEW_EXECUTIONS, new_rows)
    insert_many(connection, "INSERT INTO labels (key, value, n)", _labels(intents, rows, ids))
    if audit:
        write_lines(connection, [audit[row[1]] for row in new_rows if row[1] in audit])
    if lead is not None:
        write_lead(connection, lead)
    return ids


def _labels(
    intents: Sequence[Intent], rows: Sequence[Row], ids: list[str]
) -> list[tuple[str, str, int]]:
    return [
        (key, label_text(value), row[0])
        for intent, row, name in zip(intents, rows, ids, strict=True)
        if intent.record.labels and row[1] == name
        for key, value in intent.record.labels.items()
    ]


def _resolve_keys(
    connection: sqlite3.Connection, intents: Sequence[Intent], keys: list[Key]
) -> list[str]:
    known = _known(connection, keys)
    before = dict(known)
    ids = idempotency.resolve_keys(intents, known)
    new_keys = [(*key, *known[key]) for key in known if known[key] is not before.get(key)]
    insert_many(
        connection,
        "INSERT OR REPLACE INTO idempotency (scope, key, execution_id, request_hash, created_at)",
        new_keys,
    )
    return ids


def _known(connection: sqlite3.Connection, keys: list[Key]) -> dict[Key, KeyUse]:
    known: dict[Key, KeyUse] = {}
    batch_size = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // 2
    for first in range(0, len(keys), batch_size):
        some = keys[first : first + batch_size]
        marks = ",".join(["(?, ?)"] * len(some))
        found = connection.execute(
            # not `(scope, key) IN (VALUES …)`: that reads the whole table
            "SELECT scope, key, execution_id, request_hash, created_at "  # noqa: S608 -- marks only
            f"FROM (VALUES {marks}) CROSS JOIN idempotency ON scope = column1 AND key = column2",
            [value for key in some for value in key],
        )
        known.update(((scope, key), KeyUse(*made)) for scope, key, *made in found)
    return known
