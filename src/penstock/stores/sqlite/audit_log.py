"""The audit log in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from penstock.stores.records import AuditLine, AuditSearch
from penstock.stores.sql.audit_log import COLUMNS, conditions, decode_line, encode_line
from penstock.stores.sql.conditions import conjunction
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer, insert_many

SQL = statements_beside(__file__)


class SqliteAuditLog:
    def __init__(self, writer: Writer, searcher: Reader) -> None:
        self._writer = writer
        self._searcher = searcher

    async def write_audit(self, lines: Sequence[AuditLine]) -> None:
        await self._writer.submit(lambda connection: write_lines(connection, lines))

    async def audit(self, search: AuditSearch) -> list[AuditLine]:
        where, values = conjunction(conditions(search, str), "?")
        statement = f"""
            SELECT {COLUMNS}, id FROM audit WHERE {where} ORDER BY id DESC LIMIT ?
        """  # noqa: S608 -- our own words
        rows = await self._searcher.rows(statement, (*values, search.limit))
        return [decode_line(row, str) for row in rows]

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        deleted = await self._writer.submit(
            lambda connection: connection.execute(SQL.forget_lines, (limit, before)).rowcount
        )
        return int(deleted)


def write_lines(connection: sqlite3.Connection, lines: Sequence[AuditLine]) -> None:
    rows = [encode_line(line, str) for line in lines]
    insert_many(connection, f"INSERT INTO audit ({COLUMNS})", rows)
