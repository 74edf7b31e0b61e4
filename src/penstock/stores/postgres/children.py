"""Executions that other executions have started: what both ends look at."""

from __future__ import annotations

from penstock.stores import codec
from penstock.stores.postgres.database import SLOW_SECONDS, Database
from penstock.stores.postgres.texts import unescaped
from penstock.stores.sql.statements import statements_beside
from penstock.stores.tiering import EndedChild

SQL = statements_beside(__file__)


class PostgresChildren:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def ended(self, partition: int, seconds: float) -> list[EndedChild]:
        rows = await self._database.rows(
            SQL.select_ended, (partition, seconds), seconds=SLOW_SECONDS
        )
        return [EndedChild(child, parent, unescaped(node_id)) for child, parent, node_id in rows]

    async def left_behind(self, partition: int) -> list[str]:
        rows = await self._database.rows(SQL.select_left, (partition,), seconds=SLOW_SECONDS)
        children: list[str] = []
        for (intent,) in rows:
            record = codec.decode_record(intent)
            parent = record.parent
            if parent is not None and parent.is_awaited and parent.on_end == "cancel":
                children.append(record.execution_id)
        return children
