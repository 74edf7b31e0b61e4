"""The audit log in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from penstock.stores.records import AuditLine, AuditSearch
from penstock.stores.sql.audit_log import COLUMNS, conditions, decode_line, encode_line
from penstock.stores.sql.conditions import conjunction
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer, insert_many

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
        where, values = conjunction(conditions(search, str), "?")
        statement = f"""
            SELECT {COLUMNS}, id FROM audit WHERE {where} ORDER BY id DESC LIMIT ?
        """  # noqa: S608 -- our own words
        rows = await self._searcher.rows(statement, (*values, search.limit))
        return [decode_line(row, str) for row in rows]

    async def forget_audit(self, before: float, limit: int = 1000) -> int:
        deleted = await self._writer.submit(
            lambda connection: connection.execute(FORGET_LINES, (limit, before)).rowcount
        )
        return int(deleted)


def write_lines(connection: sqlite3.Connection, lines: Sequence[AuditLine]) -> None:
    rows = [encode_line(line, str) for line in lines]
    insert_many(connection, f"INSERT INTO audit ({COLUMNS})", rows)
