"""Schedules in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from penstock.stores import codec
from penstock.stores.base import Intent
from penstock.stores.schedules import (
    Schedule,
    SlotRow,
    SlotSearch,
    SlotWrite,
    decode_schedule,
    new_intents,
)
from penstock.stores.sql.schedules import decode_slot, search_statement
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import Reader
from penstock.stores.sqlite.writer import Writer

if TYPE_CHECKING:
    from penstock.stores.sqlite.executions import SqliteExecutions

SQL = statements_beside(__file__)


class SqliteSchedules:
    def __init__(self, writer: Writer, reader: Reader, executions: SqliteExecutions) -> None:
        self._writer = writer
        self._reader = reader
        self._executions = executions

    async def write(self, schedule: Schedule, slots: Sequence[SlotWrite] = ()) -> list[str] | None:
        new = structs.replace(schedule, revision=schedule.revision + 1)
        written: list[str] | None = None

        def choose(connection: sqlite3.Connection) -> list[Intent]:
            nonlocal written
            written = _write(connection, new, slots)
            return new_intents(slots, written or ())

        intents = [one.intent for one in slots if one.intent is not None]
        await self._executions.record_together(intents, choose)
        if written is not None:
            schedule.revision = new.revision
        return written

    async def get(self, name: str) -> Schedule | None:
        rows = await self._reader.rows(SQL.select_schedule, (name,))
        return decode_schedule(rows[0][0]) if rows else None

    async def page(self, after: str | None = None, limit: int = 50) -> list[Schedule]:
        rows = await self._reader.rows(SQL.select_page, (after or "", limit))
        return [decode_schedule(data) for (data,) in rows]

    async def of_partition(self, partition: int) -> list[Schedule]:  # noqa: ARG002
        rows = await self._reader.rows(SQL.select_all)
        return [decode_schedule(data) for (data,) in rows]

    async def delete(self, name: str) -> bool:
        def write(connection: sqlite3.Connection) -> bool:
            row = connection.execute(SQL.delete_schedule, (name,)).fetchone()
            if row is None:
                return False
            connection.execute(SQL.delete_slots, row)
            return True

        is_deleted: bool = await self._writer.submit(write)
        return is_deleted

    async def slots(self, search: SlotSearch) -> list[SlotRow]:
        statement, values = search_statement(search, "?")
        return [decode_slot(row, str) for row in await self._reader.rows(statement, values)]

    async def forget_slots(self, before: float, limit: int = 1000) -> int:
        deleted = await self._writer.submit(
            lambda connection: connection.execute(SQL.forget_slots, (before, limit)).rowcount
        )
        return int(deleted)


def _write(
    connection: sqlite3.Connection, schedule: Schedule, slots: Sequence[SlotWrite]
) -> list[str] | None:
    data = codec.encode(schedule)
    expected = schedule.revision - 1
    if expected == 0:
        values = (schedule.id, schedule.name, schedule.revision, data)
        is_stored = connection.execute(SQL.insert_schedule, values).fetchone()
    else:
        is_stored = connection.execute(
            SQL.update_schedule, (schedule.revision, data, schedule.id, expected)
        ).fetchone()
    if is_stored is None:
        return None

    written: list[str] = []
    for row, _ in slots:
        values_of_slot = (
            schedule.id,
            row.slot,
            row.at,
            row.recorded_at,
            row.outcome,
            row.reason,
            row.execution_id,
        )
        if connection.execute(SQL.write_slot, values_of_slot).fetchone() is not None:
            written.append(row.slot)
    return written
