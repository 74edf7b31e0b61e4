"""Dead letters in the file. The hot store writes them, in the commit that made them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import Any

from penstock.stores import codec
from penstock.stores.records import Closed, DeadLetterRow, DeadLetterSearch
from penstock.stores.sqlite.reader import NUMBER_MAX, UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer

SELECT_DEAD_LETTER = """
    SELECT letters.id, letter, workflow, version, closed, closed_at, retried_as
    FROM letters CROSS JOIN executions USING (n)
"""


class SqliteDeadLetters:
    """Dead letters in the table `letters`."""

    def __init__(self, writer: Writer, reader: Reader, searcher: Reader) -> None:
        self._writer, self._reader, self._searcher = writer, reader, searcher

    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        conditions = list(_conditions(search))
        where = " AND ".join(text for text, _ in conditions) or "1"
        values = tuple(value for _, some in conditions for value in some)
        rows = await self._searcher.rows(
            f"{SELECT_DEAD_LETTER} WHERE {where} ORDER BY letters.id DESC LIMIT ?",
            (*values, search.limit),
        )
        return [_dead_letter(*row) for row in rows]

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None:
        rows = await self._reader.rows(
            f"{SELECT_DEAD_LETTER} WHERE letters.id = ?", (dead_letter_id,)
        )
        return _dead_letter(*rows[0]) if rows else None

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        def write(connection: sqlite3.Connection) -> int:
            return sum(_close(connection, each, (how, now, retried_as)) for each in ids)

        return int(await self._writer.submit(write))


def _conditions(search: DeadLetterSearch) -> Iterable[tuple[str, tuple[Any, ...]]]:
    wanted = {
        "workflow = ?": search.workflow,
        "handler = ?": search.handler,
        "category = ?": search.category,
        "letters.n = (SELECT n FROM executions WHERE id = ?)": search.execution_id,
    }
    for text, value in wanted.items():
        if value is not None:
            yield text, (value,)
    if search.before is not None:
        yield "letters.id < ?", (min(search.before, NUMBER_MAX),)
    if not search.closed:
        yield "closed IS NULL", ()


def _dead_letter(number: int, dead_letter: bytes, *others: Any) -> DeadLetterRow:
    return DeadLetterRow(number, codec.decode_dead_letter(dead_letter), *others)


def _close(
    connection: sqlite3.Connection, dead_letter_id: int, how: tuple[Closed, float, str | None]
) -> int:
    statement = "UPDATE letters SET closed = ?, closed_at = ?, retried_as = ? WHERE id = ? AND closed IS NULL"
    try:
        return connection.execute(statement, (*how, dead_letter_id)).rowcount
    except UNKNOWABLE:
        return 0
