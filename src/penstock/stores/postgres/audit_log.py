"""The audit log in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.stores.postgres.database import (
    SLOW_SECONDS,
    Connection,
    Database,
    Row,
    copy_in,
)
from penstock.stores.postgres.texts import escaped, unescaped
from penstock.stores.records import AuditLine, AuditSearch
from penstock.stores.sql.audit_log import COLUMNS, conditions, decode_line, encode_line
from penstock.stores.sql.conditions import conjunction
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)

TYPES = ("float8", "text", "text", "text", "text", "text", "int4", "text")


class PostgresAuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def write_audit(self, lines: Sequence[AuditLine]) -> None:
        if lines:
            async with self._database.connection() as connection:
                await write_lines(connection, lines)

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        where, values = conjunction(conditions(search, escaped), "%s")
        statement = f"""
            SELECT {COLUMNS}, id FROM audit WHERE {where} ORDER BY id DESC LIMIT %s
        """  # noqa: S608 -- our own words
        rows = await self._database.rows(
            statement, (*values, search.limit), prepare=False, seconds=SLOW_SECONDS
        )
        return [decode_line(row, unescaped) for row in rows]

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        return await self._database.change(SQL.forget_lines, (limit, before))


async def write_lines(connection: Connection, lines: Iterable[AuditLine]) -> None:
    rows = [_encode_line(line) for line in lines]
    await copy_in(connection, "audit", COLUMNS, TYPES, rows)


def _encode_line(line: AuditLine) -> Row:
    *values, detail = encode_line(line, escaped)
    return (*values, None if detail is None else detail.decode())
