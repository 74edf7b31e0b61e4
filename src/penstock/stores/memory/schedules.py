"""Schedules in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from penstock.stores import codec
from penstock.stores.base import partition_of
from penstock.stores.schedules import (
    Schedule,
    SlotRow,
    SlotSearch,
    SlotWrite,
    decode_schedule,
    new_intents,
    partition_key,
)

if TYPE_CHECKING:
    from penstock.stores.memory.cold import MemoryExecutions

_slot_decoder = msgspec.msgpack.Decoder(SlotRow)


class MemorySchedules:
    def __init__(self, executions: MemoryExecutions, partitions: int) -> None:
        self._executions = executions
        self._partitions = partitions
        self._schedules: dict[str, bytes] = {}
        """By name."""
        self._slots: dict[tuple[str, str], bytes] = {}
        """By id of the schedule and name of the slot."""

    async def write(self, schedule: Schedule, slots: Sequence[SlotWrite] = ()) -> list[str] | None:
        stored = await self.get(schedule.name)
        if schedule.revision == 0:
            if stored is not None:
                return None
        elif stored is None or (stored.id, stored.revision) != (schedule.id, schedule.revision):
            return None
        written = [one.row.slot for one in slots if self._write_slot(schedule.id, one.row)]
        await self._executions.record_intents(new_intents(slots, written))
        schedule.revision += 1
        self._schedules[schedule.name] = codec.encode(schedule)
        return written

    def _write_slot(self, schedule_id: str, row: SlotRow) -> bool:
        key = (schedule_id, row.slot)
        known = self._slots.get(key)
        if known is not None and _slot_decoder.decode(known).outcome != "queued":
            return False
        self._slots[key] = codec.encode(row)
        return True

    async def get(self, name: str) -> Schedule | None:
        data = self._schedules.get(name)
        return None if data is None else decode_schedule(data)

    async def page(self, after: str | None = None, limit: int = 50) -> list[Schedule]:
        names = sorted(name for name in self._schedules if after is None or name > after)
        return [decode_schedule(self._schedules[name]) for name in names[:limit]]

    async def of_partition(self, partition: int) -> list[Schedule]:
        schedules = [decode_schedule(data) for data in self._schedules.values()]
        return [
            schedule
            for schedule in schedules
            if partition_of(partition_key(schedule.id), self._partitions) == partition
        ]

    async def delete(self, name: str) -> bool:
        schedule = await self.get(name)
        if schedule is None:
            return False
        del self._schedules[name]
        for key in [key for key in self._slots if key[0] == schedule.id]:
            del self._slots[key]
        return True

    async def slots(self, search: SlotSearch) -> list[SlotRow]:
        rows = [
            _slot_decoder.decode(data)
            for (schedule_id, _), data in self._slots.items()
            if schedule_id == search.schedule_id
        ]
        rows.sort(key=lambda row: (row.at, row.slot), reverse=not search.oldest_first)
        found = [
            row
            for row in rows
            if search.outcome in (None, row.outcome)
            and (search.before is None or (row.at, row.slot) < search.before)
        ]
        return found[: search.limit]

    async def forget_slots(self, before: float, limit: int = 1000) -> int:
        old = [
            key
            for key, data in self._slots.items()
            if _slot_decoder.decode(data).recorded_at < before
        ]
        for key in old[:limit]:
            del self._slots[key]
        return len(old[:limit])
