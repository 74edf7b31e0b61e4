"""Dead letters in PostgreSQL. They are written with copies from the hot store (`copying.py`)."""

from __future__ import annotations

from collections.abc import Collection

from penstock.stores.postgres.database import SLOW_SECONDS, Database
from penstock.stores.postgres.texts import escaped
from penstock.stores.records import Closed, DeadLetterRow, DeadLetterSearch
from penstock.stores.sql.conditions import NUMBER_MAX, conjunction
from penstock.stores.sql.dead_letters import conditions, decode_row
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)


class PostgresDeadLetters:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        where, values = conjunction(conditions(search, escaped), "%s")
        statement = (
            f"{SQL.select_dead_letters} WHERE {where} ORDER BY dead_letters.id DESC LIMIT %s"
        )
        rows = await self._database.rows(
            statement, (*values, search.limit), prepare=False, seconds=SLOW_SECONDS
        )
        return [decode_row(*row) for row in rows]

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None:
        rows = await self._database.rows(
            f"{SQL.select_dead_letters} WHERE dead_letters.id = %s", (dead_letter_id,)
        )
        return decode_row(*rows[0]) if rows else None

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        storable_ids = [
            dead_letter_id for dead_letter_id in ids if 0 < dead_letter_id <= NUMBER_MAX
        ]
        return await self._database.change(
            SQL.close_dead_letters, (how, now, retried_as, storable_ids)
        )
