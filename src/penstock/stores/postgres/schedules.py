"""Schedules in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from penstock.stores import codec
from penstock.stores.base import partition_of
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row
from penstock.stores.postgres.intents import record_new_intents
from penstock.stores.postgres.texts import escaped, unescaped
from penstock.stores.schedules import (
    Schedule,
    SlotRow,
    SlotSearch,
    SlotWrite,
    decode_schedule,
    new_intents,
    partition_key,
)
from penstock.stores.sql.schedules import decode_slot, search_statement
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)


class PostgresSchedules:
    def __init__(self, database: Database, partitions: Callable[[], int]) -> None:
        """`partitions` answers how many there are, once the store has been opened."""
        self._database = database
        self._partitions = partitions

    async def write(self, schedule: Schedule, slots: Sequence[SlotWrite] = ()) -> list[str] | None:
        new = structs.replace(schedule, revision=schedule.revision + 1)
        partitions = self._partitions()
        async with self._database.transaction() as connection:
            if not await _store(connection, new, partitions):
                return None
            written = [one.row.slot for one in slots if await _write_slot(connection, new, one.row)]
            intents = new_intents(slots, written)
            if intents:
                await record_new_intents(connection, partitions, intents)
        schedule.revision = new.revision
        return written

    async def get(self, name: str) -> Schedule | None:
        rows = await self._database.rows(SQL.select_schedule, (escaped(name),))
        return decode_schedule(rows[0][0]) if rows else None

    async def page(self, after: str | None = None, limit: int = 50) -> list[Schedule]:
        rows = await self._database.rows(SQL.select_page, (escaped(after or ""), limit))
        return [decode_schedule(data) for (data,) in rows]

    async def of_partition(self, partition: int) -> list[Schedule]:
        rows = await self._database.rows(SQL.select_partition, (partition,), seconds=SLOW_SECONDS)
        return [decode_schedule(data) for (data,) in rows]

    async def delete(self, name: str) -> bool:
        async with self._database.transaction() as connection:
            cursor = await connection.execute(SQL.delete_schedule, (escaped(name),))
            row = await cursor.fetchone()
            if row is None:
                return False
            await connection.execute(SQL.delete_slots, row)
        return True

    async def slots(self, search: SlotSearch) -> list[SlotRow]:
        statement, values = search_statement(search, "%s")
        rows = await self._database.rows(statement, values, prepare=False)
        return [decode_slot(row, unescaped) for row in rows]

    async def forget_slots(self, before: float, limit: int = 1000) -> int:
        return await self._database.change(SQL.forget_slots, (before, limit))


async def _store(connection: Connection, schedule: Schedule, partitions: int) -> bool:
    data = codec.encode(schedule)
    expected = schedule.revision - 1
    values: Row
    if expected == 0:
        partition = partition_of(partition_key(schedule.id), partitions)
        values = (schedule.id, partition, schedule.revision, escaped(schedule.name), data)
        cursor = await connection.execute(SQL.insert_schedule, values)
    else:
        values = (schedule.revision, data, schedule.id, expected)
        cursor = await connection.execute(SQL.update_schedule, values)
    return await cursor.fetchone() is not None


async def _write_slot(connection: Connection, schedule: Schedule, row: SlotRow) -> bool:
    values = (
        schedule.id,
        row.slot,
        row.at,
        row.recorded_at,
        row.outcome,
        None if row.reason is None else escaped(row.reason),
        row.execution_id,
    )
    cursor = await connection.execute(SQL.write_slot, values)
    return await cursor.fetchone() is not None
