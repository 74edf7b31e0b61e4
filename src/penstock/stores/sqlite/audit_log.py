"""The audit log in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.stores.records import AuditLine, AuditSearch
from penstock.stores.sqlite.reader import NUMBER_MAX, Reader
from penstock.stores.sqlite.writer import Writer, insert_many

AUDIT_COLUMNS = "at, key_id, key_name, action, object, address, status, detail"
# Lines are in the order of time: if the first ones are younger, so is the rest.
FORGET_LINES = """
    DELETE FROM audit
    WHERE id IN (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT ?) WHERE at < ?)
"""


class SqliteAuditLog:
    def __init__(self, writer: Writer, searcher: Reader) -> None:
        self._writer = writer
        self._searcher = searcher

    async def write_audit(self, lines: Sequence[AuditLine]) -> None:
        await self._writer.submit(lambda connection: write_lines(connection, lines))

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        conditions = list(_conditions(search))
        where = " AND ".join(text for text, _ in conditions) or "1"
        values = tuple(value for _, value in conditions)
        statement = f"""
            SELECT {AUDIT_COLUMNS}, id FROM audit WHERE {where} ORDER BY id DESC LIMIT ?
        """  # noqa: S608 -- our own words
        rows = await self._searcher.rows(statement, (*values, search.limit))
        return [_decode_line(row) for row in rows]

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        deleted = await self._writer.submit(
            lambda connection: connection.execute(FORGET_LINES, (limit, before)).rowcount
        )
        return int(deleted)


def write_lines(connection: sqlite3.Connection, lines: Sequence[AuditLine]) -> None:
    rows = [_encode_line(line) for line in lines]
    insert_many(connection, f"INSERT INTO audit ({AUDIT_COLUMNS})", rows)


def _conditions(search: AuditSearch) -> Iterable[tuple[str, Any]]:
    wanted = {
        "key_id = ?": search.key_id,
        "action = ?": search.action,
        "object = ?": search.object,
        "at >= ?": search.since,
        "at < ?": search.until,
        "id < ?": None if search.before is None else min(search.before, NUMBER_MAX),
    }
    return ((text, value) for text, value in wanted.items() if value is not None)


def _encode_line(line: AuditLine) -> tuple[object, ...]:
    detail = msgspec.json.encode(line.detail) if line.detail else None
    return (
        line.at,
        line.key_id,
        line.key_name,
        line.action,
        line.object,
        line.address,
        line.status,
        detail,
    )


def _decode_line(row: tuple[Any, ...]) -> AuditLine:
    *values, detail, number = row
    line = AuditLine(*values)
    line.id = number
    if detail is not None:
        line.detail = msgspec.json.decode(detail)
    return line
