"""Schedules and their slots, as every store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.schedules.times import Rule
from penstock.stores.base import Intent

Overlap = Literal["skip", "queue_one", "queue_all", "cancel_old", "allow"]
CatchupPolicy = Literal["last", "all", "skip"]
Outcome = Literal["started", "skipped", "late", "queued", "failed_to_start"]

RUNNING_KEPT_MAX = 100
"""Executions of a schedule that are remembered as perhaps running."""


class Catchup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens with slots that passed while nothing looked after the schedule."""

    policy: CatchupPolicy = "last"
    window_seconds: float = 86_400.0
    """Slots that are older than this are never started."""
    max: int = 100


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a user says about a schedule."""

    workflow: str
    when: tuple[Rule, ...]
    input: dict[str, Any] | None = None
    overlap: Overlap = "skip"
    catchup: Catchup = Catchup()
    jitter_seconds: float = 0.0
    from_at: float | None = None
    """Slots before this don't exist."""
    until_at: float | None = None
    """Nor do slots from this on."""
    pause_on_failure: bool = False
    labels: dict[str, Any] = {}
    priority: int = 0


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
