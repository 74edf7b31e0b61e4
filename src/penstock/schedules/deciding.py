"""What becomes of the slots that are due: which start, which wait, and which are skipped, and why.

A slot is missed if its moment passed while nothing looked after the schedule: during an outage, or
while the schedule was paused. `catchup` decides which of these start after all; `overlap` decides
what happens while an earlier execution still runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from penstock.schedules.model import Definition, Outcome
from penstock.schedules.slots import jitter_seconds, slot_name
from penstock.schedules.times import EPOCH, Slot, When

ON_TIME_SECONDS = 30.0
"""A slot that starts this late is on time still: a new owner takes over meanwhile."""
ROWS_MAX = 1000
"""Missed slots that get a row, the newest of them."""
QUEUED_MAX = 100
ONE_MICROSECOND = timedelta(microseconds=1)

FROM_PAST = "it passed while nothing looked after the schedule"
TOO_MANY = (
    "it and others passed while nothing looked after the schedule;"
    f" only the newest {ROWS_MAX:,} of them have rows of their own"
)
OLDER = "it passed while nothing looked after the schedule, and a newer slot is due"
OUTSIDE = "it passed while nothing looked after the schedule, longer ago than the catch-up window"
BEYOND_MAX = "it passed while nothing looked after the schedule, and catch-up starts only {} slots"
STILL_RUNNING = "an earlier execution still runs"
ONE_QUEUED = "an earlier execution still runs, and a slot is queued already"
MANY_QUEUED = f"an earlier execution still runs, and {QUEUED_MAX} slots are queued already"
REPLACED = "a newer slot has replaced it before it could start"


class Verdict(NamedTuple):
    """What becomes of one slot."""

    slot: Slot
    outcome: Outcome
    reason: str | None = None


class Decision(NamedTuple):
    """What becomes of all slots that are due."""

    verdicts: list[Verdict]
    next_slot: Slot | None
    cancels_running: bool = False
    """The executions that still run are cancelled, and slots that are queued already skipped."""


class _Queue(NamedTuple):
    """What an overlap rule goes by."""

    is_running: bool
    queued: int


def first_slot(definition: Definition, when: When, now: float) -> Slot | None:
    """The first slot of a schedule that is new or has been changed."""
    start = moment_of(now)
    if definition.from_at is not None:
        start = max(start, moment_of(definition.from_at) - ONE_MICROSECOND)
    return next(_slots_after(definition, when, start), None)


def following_slots(definition: Definition, when: When, slot: Slot) -> Iterator[Slot]:
    """A slot, and those that come after it."""
    return chain([slot], _slots_after(definition, when, slot.at))


def due_at(schedule_id: str, definition: Definition, when: When, slot: Slot) -> float:
    """When a slot starts: its moment and its jitter."""
    delay = 0.0
    if definition.jitter_seconds:
        following = when.next_after(slot.at)
        delay = jitter_seconds(schedule_id, slot, definition.jitter_seconds, following)
    return slot.at.timestamp() + delay


def decide(  # noqa: PLR0913 -- what it goes by
    schedule_id: str,
    definition: Definition,
    when: When,
    next_slot: Slot,
    now: float,
    *,
    is_running: bool,
    queued: int = 0,
) -> Decision:
    """Decide about all slots from `next_slot` on that are due."""
    due, following, has_gap = _due(schedule_id, definition, when, next_slot, now)
    verdicts: list[Verdict] = []
    if has_gap:
        verdicts.append(Verdict(next_slot, "skipped", TOO_MANY))
        due = [slot for slot in due if slot != next_slot]

    caught_up = _caught_up(definition, due, now)
    queue = _Queue(is_running, queued)
    cancels_running = False
    for slot in due:
        reason = caught_up.get(slot_name(slot))
        if reason is not None:
            verdicts.append(Verdict(slot, "skipped", reason))
            continue
        if definition.overlap == "cancel_old":
            # the newest cancels what runs and replaces what hasn't started
            verdicts = [_replaced(verdict) for verdict in verdicts]
            queue = _Queue(is_running, queued)
            cancels_running = is_running or queued > 0
        verdict, queue = _by_overlap(definition, slot, queue)
        if verdict.outcome == "started" and _is_missed(slot, now):
            verdict = verdict._replace(outcome="late", reason=FROM_PAST)
        verdicts.append(verdict)
    return Decision(verdicts, following, cancels_running)


def moment_of(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def _replaced(verdict: Verdict) -> Verdict:
    if verdict.outcome == "skipped":
        return verdict
    return verdict._replace(outcome="skipped", reason=REPLACED)


def _by_overlap(definition: Definition, slot: Slot, queue: _Queue) -> tuple[Verdict, _Queue]:
    is_busy = queue.is_running or queue.queued > 0
    if definition.overlap == "allow" or not is_busy:
        return Verdict(slot, "started"), queue._replace(is_running=True)
    if definition.overlap == "queue_one":
        if queue.queued:
            return Verdict(slot, "skipped", ONE_QUEUED), queue
    elif definition.overlap == "queue_all":
        if queue.queued >= QUEUED_MAX:
            return Verdict(slot, "skipped", MANY_QUEUED), queue
    elif definition.overlap == "skip":
        return Verdict(slot, "skipped", STILL_RUNNING), queue
    return Verdict(slot, "queued", STILL_RUNNING), queue._replace(queued=queue.queued + 1)


def _caught_up(definition: Definition, due: Sequence[Slot], now: float) -> dict[str, str]:
    """Why missed slots aren't started, by their names; those that are have no reason."""
    catchup = definition.catchup
    missed = [slot for slot in due if _is_missed(slot, now)]
    reasons: dict[str, str] = {}
    within: list[Slot] = []
    for slot in missed:
        if now - slot.at.timestamp() > catchup.window_seconds:
            reasons[slot_name(slot)] = OUTSIDE
        elif catchup.policy == "skip":
            reasons[slot_name(slot)] = FROM_PAST
        else:
            within.append(slot)

    most = catchup.max
    reason = BEYOND_MAX.format(most)
    if catchup.policy == "last":
        most = 0 if len(missed) < len(due) else 1
        reason = OLDER
    for slot in within[: max(0, len(within) - most)]:
        reasons[slot_name(slot)] = reason
    return reasons


def _is_missed(slot: Slot, now: float) -> bool:
    return now - slot.at.timestamp() > ON_TIME_SECONDS


def _due(
    schedule_id: str, definition: Definition, when: When, next_slot: Slot, now: float
) -> tuple[list[Slot], Slot | None, bool]:
    """The slots that are due, the one after them, and whether older ones were left out."""
    if next_slot.at > moment_of(now):
        return [], next_slot, False
    slots, has_gap = _newest(definition, when, next_slot, now)
    following = next(_slots_after(definition, when, moment_of(now)), None)
    if slots and due_at(schedule_id, definition, when, slots[-1]) > now:
        following = slots.pop()  # its jitter isn't over
    return slots, following, has_gap


def _newest(
    definition: Definition, when: When, next_slot: Slot, now: float
) -> tuple[list[Slot], bool]:
    """The newest slots up to now, from `next_slot` on, and whether there are older ones.

    They are looked for in a span of time that is doubled until it has enough of them: an outage of
    a year may have had millions of slots.
    """
    end = moment_of(now)
    span = timedelta(seconds=ROWS_MAX)
    while True:
        is_whole = end - span <= next_slot.at
        if is_whole:
            stream = following_slots(definition, when, next_slot)
        else:
            stream = _slots_after(definition, when, end - span)
        slots: list[Slot] = []
        for slot in stream:
            if slot.at > end:
                break
            slots.append(slot)
        if len(slots) > ROWS_MAX:
            return slots[-ROWS_MAX:], True
        if is_whole:
            return slots, False
        span *= 2


def _slots_after(definition: Definition, when: When, moment: datetime) -> Iterator[Slot]:
    until = definition.until_at
    for slot in when.after(moment):
        if until is not None and slot.at >= moment_of(until):
            return
        yield slot
