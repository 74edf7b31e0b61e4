"""Dead letters in the file. The hot store writes them, in the commit that made them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from penstock.stores.records import Closed, DeadLetterRow, DeadLetterSearch
from penstock.stores.sql.conditions import conjunction
from penstock.stores.sql.dead_letters import conditions, decode_row
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer

SQL = statements_beside(__file__)


class SqliteDeadLetters:
    def __init__(self, writer: Writer, reader: Reader, searcher: Reader) -> None:
        self._writer = writer
        self._reader = reader
        self._searcher = searcher

    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        where, values = conjunction(conditions(search, str), "?")
        rows = await self._searcher.rows(
            f"{SQL.select_dead_letters} WHERE {where} ORDER BY dead_letters.id DESC LIMIT ?",
            (*values, search.limit),
        )
        return [decode_row(*row) for row in rows]

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None:
        rows = await self._reader.rows(
            f"{SQL.select_dead_letters} WHERE dead_letters.id = ?", (dead_letter_id,)
        )
        return decode_row(*rows[0]) if rows else None

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        def write(connection: sqlite3.Connection) -> int:
            closed = (how, now, retried_as)
            return sum(_close(connection, dead_letter_id, closed) for dead_letter_id in ids)

        return int(await self._writer.submit(write))


def _close(
    connection: sqlite3.Connection, dead_letter_id: int, closed: tuple[Closed, float, str | None]
) -> int:
    try:
        return connection.execute(SQL.close_dead_letter, (*closed, dead_letter_id)).rowcount
    except UNKNOWABLE:
        return 0
