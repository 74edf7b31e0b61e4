"""Schedules, their slots, and when they start next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from penstock.schedules.model import Catchup, Outcome, Overlap
from penstock.schedules.slots import slot_name, slot_named
from penstock.schedules.times import Rule, Slot
from penstock.stores.schedules import Schedule, SlotRow
from penstock.views.times import time_text


class UpcomingSlot(msgspec.Struct, kw_only=True):
    """A slot that hasn't come yet."""

    slot: Annotated[str, Meta(description="Its name: the wall time, and its zone.")]
    at: str
    local: Annotated[str, Meta(description="What clocks in the zone show then.")]
    note: Annotated[
        str | None, Meta(description="What a change of the clock has to do with it.")
    ] = None


class ScheduleView(msgspec.Struct, kw_only=True, rename={"from_": "from"}):
    """A schedule, and how far it has got."""

    name: str
    workflow: str
    when: list[Rule]
    input: dict[str, Any] | None
    overlap: Overlap
    catchup: Catchup
    jitter_seconds: float
    from_: str | None
    until: str | None
    pause_on_failure: bool
    labels: dict[str, Any]
    priority: int
    paused: bool
    paused_reason: str | None
    next: Annotated[UpcomingSlot | None, Meta(description="The next slot; null if it is over.")]
    running: Annotated[
        list[str],
        Meta(description="Executions that it has started and that the next slot goes by."),
    ]
    queued: int
    created_at: str
    updated_at: str


class PutScheduleView(msgspec.Struct, kw_only=True):
    """The schedule that has been stored."""

    created: bool
    schedule: ScheduleView


class SlotItem(msgspec.Struct, kw_only=True):
    """What has become of a slot."""

    slot: str
    at: str
    local: str
    outcome: Outcome
    reason: str | None
    execution_id: str | None
    recorded_at: str


def schedule_view(schedule: Schedule) -> ScheduleView:
    definition = schedule.definition
    upcoming: UpcomingSlot | None = None
    if schedule.next_slot is not None:
        upcoming = upcoming_view(slot_named(schedule.next_slot))
    return ScheduleView(
        name=schedule.name,
        workflow=definition.workflow,
        when=list(definition.when),
        input=definition.input,
        overlap=definition.overlap,
        catchup=definition.catchup,
        jitter_seconds=definition.jitter_seconds,
        from_=time_text(definition.from_at),
        until=time_text(definition.until_at),
        pause_on_failure=definition.pause_on_failure,
        labels=definition.labels,
        priority=definition.priority,
        paused=schedule.paused,
        paused_reason=schedule.paused_reason,
        next=upcoming,
        running=schedule.running,
        queued=schedule.queued,
        created_at=time_text(schedule.created_at),
        updated_at=time_text(schedule.updated_at),
    )


def slot_item(row: SlotRow) -> SlotItem:
    slot = slot_named(row.slot)
    return SlotItem(
        slot=row.slot,
        at=time_text(row.at),
        local=slot.local.isoformat(),
        outcome=row.outcome,
        reason=row.reason,
        execution_id=row.execution_id,
        recorded_at=time_text(row.recorded_at),
    )


def upcoming_view(slot: Slot, previous: Slot | None = None) -> UpcomingSlot:
    return UpcomingSlot(
        slot=slot_name(slot),
        at=time_text(slot.at.timestamp()),
        local=slot.local.isoformat(),
        note=_note(slot, previous),
    )


def upcoming_views(slots: Sequence[Slot]) -> list[UpcomingSlot]:
    return [
        upcoming_view(slot, slots[index - 1] if index else None) for index, slot in enumerate(slots)
    ]


def _note(slot: Slot, previous: Slot | None) -> str | None:
    """What a change of the clock has to do with a slot, if anything."""
    local = slot.local
    if slot.is_shifted:
        return f"{_clock(slot.wall)} doesn't exist on this day: it starts at {_clock(local)}"
    other = slot.wall.replace(tzinfo=ZoneInfo(slot.timezone), fold=1 - slot.fold)
    if other.utcoffset() != local.utcoffset():
        which = "second" if slot.fold else "first"
        return f"{_clock(slot.wall)} comes twice on this day: this is the {which} time"
    if previous is not None and previous.timezone == slot.timezone:
        before = previous.local.utcoffset()
        now = local.utcoffset()
        if before is not None and now is not None and before != now:
            direction = "forward" if now > before else "back"
            return f"clocks have been put {direction} since the slot before"
    return None


def _clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
