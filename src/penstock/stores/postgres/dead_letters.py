"""Dead letters in PostgreSQL. They are written with copies from the hot store (`copying.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from typing import Any

from penstock.stores import codec
from penstock.stores.postgres.database import NUMBER_MAX, SLOW_SECONDS, Database
from penstock.stores.postgres.texts import escaped
from penstock.stores.records import Closed, DeadLetterRow, DeadLetterSearch

SELECT_DEAD_LETTER = """
    SELECT dead_letters.id, dead_letter, workflow, version, closed, closed_at, retried_as
    FROM dead_letters JOIN executions USING (n)
"""


class PostgresDeadLetters:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        conditions = list(_conditions(search))
        where = " AND ".join(text for text, _ in conditions) or "true"
        values = chain.from_iterable(condition_values for _, condition_values in conditions)
        statement = f"{SELECT_DEAD_LETTER} WHERE {where} ORDER BY dead_letters.id DESC LIMIT %s"
        rows = await self._database.rows(
            statement, (*values, search.limit), prepare=False, seconds=SLOW_SECONDS
        )
        return [_decode_row(*row) for row in rows]

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None:
        rows = await self._database.rows(
            f"{SELECT_DEAD_LETTER} WHERE dead_letters.id = %s", (dead_letter_id,)
        )
        return _decode_row(*rows[0]) if rows else None

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        storable_ids = [
            dead_letter_id for dead_letter_id in ids if 0 < dead_letter_id <= NUMBER_MAX
        ]
        statement = (
            "UPDATE dead_letters SET closed = %s, closed_at = %s, retried_as = %s "
            "WHERE id = ANY(%s::bigint[]) AND closed IS NULL"
        )
        return await self._database.change(statement, (how, now, retried_as, storable_ids))


def _conditions(search: DeadLetterSearch) -> Iterable[tuple[str, tuple[Any, ...]]]:
    wanted = {
        "workflow = %s": search.workflow,
        "handler = %s": _escaped(search.handler),
        "category = %s": _escaped(search.category),
        "dead_letters.n = (SELECT n FROM executions WHERE id = %s)": search.execution_id,
    }
    for text, value in wanted.items():
        if value is not None:
            yield text, (value,)
    if search.before is not None:
        yield "dead_letters.id < %s", (min(search.before, NUMBER_MAX),)
    if not search.closed:
        yield "closed IS NULL", ()


def _escaped(text: str | None) -> str | None:
    return None if text is None else escaped(text)


def _decode_row(dead_letter_id: int, dead_letter: bytes, *columns: Any) -> DeadLetterRow:
    return DeadLetterRow(dead_letter_id, codec.decode_dead_letter(dead_letter), *columns)
