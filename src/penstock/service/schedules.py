"""Schedules: what users do with them. The scheduler starts what is due (`scheduler`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec import structs

from penstock.definition.problems import Problem
from penstock.engine.commands import ExecutionRecord
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.schedules.deciding import first_slot, following_slots, moment_of
from penstock.schedules.inputs import BadTemplate, check_templates, render, slot_fields
from penstock.schedules.model import Catchup, Definition, Outcome, Overlap
from penstock.schedules.slots import slot_name, slot_named
from penstock.schedules.times import BadWhen, Rule, Slot, When, check_year
from penstock.service.firing import LABEL, Firing
from penstock.service.submissions import (
    StartRequest,
    Submissions,
    check_labels,
    check_priority,
    new_execution_id,
)
from penstock.service.workflows import Workflows
from penstock.stores.base import Stores
from penstock.stores.schedules import Schedule, SlotRow, SlotSearch

OUTCOMES: tuple[str, ...] = get_args(Outcome)
NAME_CHARACTERS_MAX = 128
NEXT_MAX = 100
TRIES_MAX = 20
CATCHUP_MAX = 10_000
SECONDS_MAX = 366 * 86_400.0
"""The longest jitter, and the longest catch-up window."""


class ScheduleDocument(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """A schedule as users write it."""

    workflow: str
    when: Rule | list[Rule]
    name: str | None = None
    input: dict[str, Any] | None = None
    overlap: Overlap = "skip"
    catchup: Catchup = Catchup()
    jitter_seconds: float = 0.0
    from_: str | None = None
    until: str | None = None
    pause_on_failure: bool = False
    labels: dict[str, Any] = {}
    priority: int = 0


class PutSchedule(NamedTuple):
    schedule: Schedule
    created: bool


class Schedules:
    """The use cases of schedules."""

    def __init__(
        self, stores: Stores, workflows: Workflows, submissions: Submissions, firing: Firing
    ) -> None:
        self._stores = stores
        self._workflows = workflows
        self._submissions = submissions
        self._firing = firing
        self.on_change: Callable[[], None] = _nothing
        """Called after each change: the scheduler of this process reads the rows again."""

    async def put(self, name: str, document: Mapping[str, Any]) -> PutSchedule:
        """Store a schedule, also in place of the one of this name.

        A changed `when` counts from now on; slots that are due already are seen to before.

        Raises `InvalidInput`, or `NotFound` if there is no such workflow.
        """
        _check_name(name)
        definition = definition_of(document, name)
        await self._workflows.meaning(definition.workflow)
        when = When(definition.when)
        for _ in range(TRIES_MAX):
            now = self._stores.hot.now()
            stored = await self._stores.cold.schedules.get(name)
            if stored is not None:
                stored = await self._firing.fire(stored)
                if stored is None:
                    continue
            slot = first_slot(definition, when, now)
            schedule = _edited(name, definition, slot, stored, now)
            if schedule.next_slot is None and stored is None:
                raise _invalid("never_fires", "when", "it never fires from now on")
            if await self._stores.cold.schedules.write(schedule) is not None:
                self.on_change()
                return PutSchedule(schedule, stored is None)
        raise _busy(name)

    async def get(self, name: str) -> Schedule:
        """Raises `NotFound`."""
        schedule = await self._stores.cold.schedules.get(name)
        if schedule is None:
            raise NotFound(f"there is no schedule {name!r} in this store")
        return schedule

    async def page(self, after: str | None, limit: int) -> list[Schedule]:
        return await self._stores.cold.schedules.page(after, limit)

    async def delete(self, name: str) -> None:
        """Delete a schedule and its slots; what it has started goes on. Raises `NotFound`."""
        if not await self._stores.cold.schedules.delete(name):
            raise NotFound(f"there is no schedule {name!r} in this store")
        self.on_change()

    async def pause(self, name: str, reason: str | None = None) -> Schedule:
        """Start no more slots. Raises `NotFound`, or `Conflict` if it is paused."""

        def change(schedule: Schedule) -> None:
            if schedule.paused:
                raise Conflict(f"the schedule {name!r} is paused already")
            schedule.paused = True
            schedule.paused_reason = reason or "by hand"

        return await self._change(name, change)

    async def resume(self, name: str) -> Schedule:
        """Start slots again; what was missed is caught up by its policy.

        Raises `NotFound`, or `Conflict` if it isn't paused.
        """

        def change(schedule: Schedule) -> None:
            if not schedule.paused:
                raise Conflict(f"the schedule {name!r} isn't paused")
            schedule.paused = False
            schedule.paused_reason = None

        return await self._change(name, change)

    async def _change(self, name: str, change: Callable[[Schedule], None]) -> Schedule:
        for _ in range(TRIES_MAX):
            schedule = await self.get(name)
            change(schedule)
            schedule.updated_at = self._stores.hot.now()
            if await self._stores.cold.schedules.write(schedule) is not None:
                self.on_change()
                return schedule
        raise _busy(name)

    async def trigger(self, name: str, key_scope: str = "") -> ExecutionRecord:
        """Start an execution now, as a slot of this moment would; it is none of the slots.

        Raises what a start raises.
        """
        schedule = await self.get(name)
        definition = schedule.definition
        at = moment_of(math.floor(self._stores.hot.now()))
        timezone = definition.when[0].timezone
        slot = Slot(at, at.replace(tzinfo=None), 0, timezone)
        previous = None if schedule.previous_at is None else moment_of(schedule.previous_at)
        start_request = StartRequest(
            workflow=definition.workflow,
            input=render(definition.input, slot_fields(name, slot, previous)),
            labels={LABEL: name, **definition.labels},
            priority=definition.priority,
            key_scope=key_scope,
        )
        intent = await self._submissions.prepare(start_request)
        await self._submissions.record_soon(intent)
        return intent.record

    async def slots(
        self, name: str, *, outcome: Any = None, before: str | None = None, limit: int = 50
    ) -> list[SlotRow]:
        """What has become of slots, the newest first; `before`: those before this slot."""
        schedule = await self.get(name)
        if outcome is not None and outcome not in OUTCOMES:
            raise InvalidInput(
                f"the outcome is {outcome!r}; it must be one of {', '.join(OUTCOMES)}"
            )
        search = SlotSearch(schedule_id=schedule.id, outcome=outcome, limit=limit)
        if before is not None:
            try:
                slot = slot_named(before)
            except (ValueError, OSError, LookupError):
                raise InvalidInput(f"there is no slot {before!r}") from None
            search.before = (slot.at.timestamp(), before)
        return await self._stores.cold.schedules.slots(search)

    async def next(self, name: str, count: int = 10) -> list[Slot]:
        """The next slots, as if it weren't paused."""
        schedule = await self.get(name)
        return upcoming(schedule, count)


def upcoming(schedule: Schedule, count: int) -> list[Slot]:
    """The next slots of a schedule, from the one that it waits for."""
    if schedule.next_slot is None:
        return []
    definition = schedule.definition
    slots = following_slots(definition, When(definition.when), slot_named(schedule.next_slot))
    return list(islice(slots, min(count, NEXT_MAX)))


def definition_of(document: Mapping[str, Any], name: str | None = None) -> Definition:
    """The definition in a document, checked. Raises `InvalidInput` with the problem."""
    try:
        read = msgspec.convert(document, ScheduleDocument)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        raise _invalid("bad_schedule", place.rstrip("`"), message) from None
    if read.name is not None and name is not None and read.name != name:
        raise _invalid("bad_schedule", "name", f"it is {read.name!r}, but it is put as {name!r}")

    rules = tuple(read.when) if isinstance(read.when, list) else (read.when,)
    try:
        When(rules)
        check_templates(read.input)
    except BadWhen as bad:
        raise _invalid(bad.code, bad.path, str(bad)) from None
    except BadTemplate as bad:
        raise _invalid("bad_template", bad.path, str(bad)) from None

    _check_seconds("jitter_seconds", read.jitter_seconds)
    _check_seconds("catchup.window_seconds", read.catchup.window_seconds)
    if not 0 <= read.catchup.max <= CATCHUP_MAX:
        raise _invalid("bad_schedule", "catchup.max", f"it must be from 0 to {CATCHUP_MAX:,}")
    check_labels({LABEL: name or "", **read.labels})
    check_priority(read.priority)
    from_at = _seconds_of("from", read.from_)
    until_at = _seconds_of("until", read.until)
    if from_at is not None and until_at is not None and until_at <= from_at:
        raise _invalid("never_fires", "until", "it is not after 'from'")
    return Definition(
        workflow=read.workflow,
        when=rules,
        input=read.input,
        overlap=read.overlap,
        catchup=read.catchup,
        jitter_seconds=read.jitter_seconds,
        from_at=from_at,
        until_at=until_at,
        pause_on_failure=read.pause_on_failure,
        labels=read.labels,
        priority=read.priority,
    )


def _edited(
    name: str, definition: Definition, slot: Slot | None, stored: Schedule | None, now: float
) -> Schedule:
    next_slot = None if slot is None else slot_name(slot)
    if stored is None:
        return Schedule(
            id=new_execution_id(),
            name=name,
            definition=definition,
            created_at=now,
            updated_at=now,
            next_slot=next_slot,
        )
    old = stored.definition
    same = (old.when, old.from_at, old.until_at)
    if same == (definition.when, definition.from_at, definition.until_at):
        next_slot = stored.next_slot
    return structs.replace(stored, definition=definition, updated_at=now, next_slot=next_slot)


def _check_name(name: str) -> None:
    is_plain = name.isprintable() and "/" not in name and name == name.strip()
    if not name or len(name) > NAME_CHARACTERS_MAX or not is_plain:
        raise _invalid(
            "bad_schedule",
            "name",
            f"a schedule's name has 1 to {NAME_CHARACTERS_MAX} printable characters, without '/'",
        )


def _check_seconds(path: str, seconds: float) -> None:
    if not 0 <= seconds <= SECONDS_MAX:
        raise _invalid("bad_schedule", path, f"it must be from 0 to {SECONDS_MAX:,.0f} seconds")


def _seconds_of(path: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        check_year(moment)
    except ValueError:
        message = f"{text[:100]!r} isn't a time, such as '2026-11-20T09:30:00Z'"
        raise _invalid("bad_schedule", path, message) from None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def _invalid(code: str, path: str, message: str) -> InvalidInput:
    problem = Problem(code, path, message)
    return InvalidInput(f"the schedule can't be used: {problem}", [problem])


def _busy(name: str) -> Conflict:
    return Conflict(f"the schedule {name!r} is being changed all the time; try again")


def _nothing() -> None:
    """Nobody in this process looks after schedules."""
