"""What a slot is called, the id of its execution, and its jitter.

All three follow from the schedule and the slot's name alone, so that two who look after the same
schedule for a moment agree about them, even if their zone files don't.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from penstock.schedules.times import Slot, at_of

HASH_MAX = 1 << 64


def slot_name(slot: Slot) -> str:
    """The wall time, its zone, and `;2` the second time that it comes.

    For example `2026-10-25T02:30:00[Europe/Berlin];2`.
    """
    second_time = ";2" if slot.fold else ""
    return f"{slot.wall.isoformat()}[{slot.timezone}]{second_time}"


def slot_named(name: str) -> Slot:
    """The slot of this name, at its moment by the zone files of this machine."""
    wall_text, _, rest = name.partition("[")
    timezone, _, second_time = rest.partition("]")
    wall = datetime.fromisoformat(wall_text)
    fold = 1 if second_time else 0
    return Slot(at_of(wall, fold, timezone), wall, fold, timezone)


def slot_execution_id(schedule_id: str, slot: Slot) -> str:
    """The id of the execution that a slot starts: the same, whoever starts it, and however often.

    A UUID of version 7. Its time is the wall time, read as if it were UTC, and the rest is a hash.
    """
    ms = int(slot.wall.replace(tzinfo=UTC).timestamp() * 1000) & (1 << 48) - 1
    value = ms << 80 | _hash(schedule_id, slot) & (1 << 80) - 1
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def jitter_seconds(
    schedule_id: str, slot: Slot, most_seconds: float, following: Slot | None
) -> float:
    """How much later than its moment a slot starts: less than `most_seconds`.

    It is cut to the interval, so that a slot never starts behind the `following` one.
    """
    most = most_seconds
    if following is not None:
        most = min(most, (following.at - slot.at).total_seconds())
    share = _hash("jitter of " + schedule_id, slot) % HASH_MAX / HASH_MAX
    return max(0.0, most) * share


def _hash(text: str, slot: Slot) -> int:
    return int.from_bytes(hashlib.sha256(f"{text}\n{slot_name(slot)}".encode()).digest())
