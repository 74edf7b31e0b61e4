"""The audit log in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.stores.postgres.database import (
    NUMBER_MAX,
    SLOW_SECONDS,
    Connection,
    Database,
    Row,
    copy_in,
)
from penstock.stores.postgres.texts import escaped, unescaped
from penstock.stores.records import AuditLine, AuditSearch

AUDIT_COLUMNS = "at, key_id, key_name, action, object, address, status, detail"
AUDIT_TYPES = ("float8", "text", "text", "text", "text", "text", "int4", "text")
# Lines are in the order of time: if the first ones are younger, so is the rest.
FORGET_LINES = """
    DELETE FROM audit WHERE id IN (
      SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT %s) AS first WHERE at < %s
    )
"""


class PostgresAuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write_audit(self, lines: Sequence[AuditLine]) -> None:
        if lines:
            async with self._database.connection() as connection:
                await write_lines(connection, lines)

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        conditions = list(_conditions(search))
        where = " AND ".join(text for text, _ in conditions) or "true"
        values = tuple(value for _, value in conditions)
        statement = f"""
            SELECT {AUDIT_COLUMNS}, id FROM audit WHERE {where} ORDER BY id DESC LIMIT %s
        """  # noqa: S608 -- our own words
        rows = await self._database.rows(
            statement, (*values, search.limit), prepare=False, seconds=SLOW_SECONDS
        )
        return [_decode_line(row) for row in rows]

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        return await self._database.change(FORGET_LINES, (limit, before))


async def write_lines(connection: Connection, lines: Iterable[AuditLine]) -> None:
    rows = [_encode_line(line) for line in lines]
    await copy_in(connection, "audit", AUDIT_COLUMNS, AUDIT_TYPES, rows)


def _conditions(search: AuditSearch) -> Iterable[tuple[str, Any]]:
    wanted = {
        "key_id = %s": search.key_id,
        "action = %s": search.action,
        "object = %s": None if search.object is None else escaped(search.object),
        "at >= %s": search.since,
        "at < %s": search.until,
        "id < %s": None if search.before is None else min(search.before, NUMBER_MAX),
    }
    return ((text, value) for text, value in wanted.items() if value is not None)


def _encode_line(line: AuditLine) -> Row:
    detail = msgspec.json.encode(line.detail).decode() if line.detail else None
    return (
        line.at,
        line.key_id,
        escaped(line.key_name),
        line.action,
        escaped(line.object),
        escaped(line.address),
        line.status,
        detail,
    )


def _decode_line(row: Row) -> AuditLine:
    at, key_id, key_name, action, subject, address, status, detail, number = row
    line = AuditLine(
        at, key_id, unescaped(key_name), action, unescaped(subject), unescaped(address), status
    )
    line.id = number
    if detail is not None:
        line.detail = msgspec.json.decode(detail)
    return line
