"""Schedules and their slots, as every store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from penstock.schedules.model import Definition, Outcome
from penstock.stores.base import Intent


class Schedule(msgspec.Struct, kw_only=True):
    """A schedule, and how far it has got."""

    id: str
    name: str
    definition: Definition
    created_at: float
    updated_at: float
    revision: int = 0
    """Raised by each write. A write that expects another one is refused. 0: not stored yet."""
    next_slot: str | None = None
    """The name of the next slot; None: there is none, it is over."""
    paused: bool = False
    paused_reason: str | None = None
    running: list[str] = []
    """Executions that it has started and that may not have ended, the oldest first."""
    queued: int = 0
    """Slots that wait for these to end."""
    previous_at: float | None = None
    """The moment of the last slot that has started."""


class SlotRow(msgspec.Struct, kw_only=True):
    """What has become of a slot."""

    slot: str
    at: float
    """The moment of the slot."""
    outcome: Outcome
    reason: str | None = None
    execution_id: str | None = None
    recorded_at: float


class SlotWrite(NamedTuple):
    """A slot's row, and the intent of the execution that it starts."""

    row: SlotRow
    intent: Intent | None = None


class SlotSearch(msgspec.Struct, kw_only=True):
    """A search for slots of a schedule, the newest first."""

    schedule_id: str
    before: tuple[float, str] | None = None
    """Only slots before this moment and name."""
    outcome: Outcome | None = None
    oldest_first: bool = False
    limit: int = 50


_decoder = msgspec.msgpack.Decoder(Schedule)


decode_schedule = _decoder.decode


def partition_key(schedule_id: str) -> str:
    """What is hashed for the partition whose owner looks after a schedule."""
    return f"schedule:{schedule_id}"


def new_intents(slots: Sequence[SlotWrite], written: Sequence[str]) -> list[Intent]:
    """The intents of those slots that have been written."""
    return [one.intent for one in slots if one.intent is not None and one.row.slot in written]
