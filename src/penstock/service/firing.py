"""Firing: what is due of a schedule is decided and written, and the executions begin.

All of it is one write, at the revision that was read: whoever else looks after the same schedule
writes nothing then. Only after that the starts are appended; if that fails, the reconciler finds
the intents.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import PenstockError, StoreError
from penstock.orchestrator.recovery import CONTROL_EVENTS
from penstock.schedules.deciding import REPLACED, Verdict, decide, due_at, moment_of
from penstock.schedules.inputs import render, slot_fields
from penstock.schedules.model import Outcome
from penstock.schedules.slots import slot_execution_id, slot_name, slot_named
from penstock.schedules.times import Slot, When
from penstock.service.submissions import StartRequest, Submissions
from penstock.stores.base import Intent, Stores
from penstock.stores.schedules import Schedule, SlotRow, SlotSearch, SlotWrite
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.schedules")

QUEUED_SECONDS = 1.0
"""How often it is looked whether a queued slot can start."""
REASON_CHARACTERS_MAX = 1000
LABEL = "schedule"
"""The label of the executions of a schedule; its value is the schedule's name."""


class Firing:
    def __init__(
        self, stores: Stores, submissions: Submissions, metrics: Metrics | None = None
    ) -> None:
        self._stores = stores
        self._submissions = submissions
        self._metrics = metrics

    def due_at(self, schedule: Schedule) -> float | None:
        """When something is to be done for a schedule; None: not before it is changed."""
        if schedule.paused:
            return None
        due: float | None = None
        if schedule.next_slot is not None:
            definition = schedule.definition
            slot = slot_named(schedule.next_slot)
            due = due_at(schedule.id, definition, When(definition.when), slot)
        if schedule.queued:
            look_at = self._stores.hot.now() + QUEUED_SECONDS
            due = look_at if due is None else min(due, look_at)
        return due

    async def fire(self, schedule: Schedule) -> Schedule | None:
        """Do what is due of a schedule. Returns what has become of it.

        None: somebody else has written it meanwhile, and it must be read again.
        """
        if schedule.paused:
            return schedule
        now = self._stores.hot.now()
        schedule = structs.replace(schedule, running=list(schedule.running))
        definition = schedule.definition
        failed_id = await self._forget_ended(schedule)
        if failed_id is not None and definition.pause_on_failure:
            schedule.paused = True
            schedule.paused_reason = f"execution {failed_id} has failed"
            written = await self._stores.cold.schedules.write(schedule)
            return None if written is None else schedule

        writes: list[SlotWrite] = []
        if schedule.queued and not schedule.running:
            writes += await self._start_queued(schedule, now)
        cancelled: list[str] = []
        if schedule.next_slot is not None:
            when = When(definition.when)
            slot = slot_named(schedule.next_slot)
            decision = decide(
                schedule.id,
                definition,
                when,
                slot,
                now,
                is_running=bool(schedule.running),
                queued=schedule.queued,
            )
            if decision.cancels_running:
                cancelled = list(schedule.running)
                writes += await self._replace_queued(schedule, now)
            for verdict in decision.verdicts:
                writes.append(await self._write_of(schedule, verdict, now))
            following = decision.next_slot
            schedule.next_slot = None if following is None else slot_name(following)
        if writes and not await self._write(schedule, writes, cancelled):
            return None
        return schedule

    async def _write(
        self, schedule: Schedule, writes: Sequence[SlotWrite], cancelled: Sequence[str]
    ) -> bool:
        written = await self._stores.cold.schedules.write(schedule, writes)
        if written is None:
            return False
        started: list[str] = []
        for row, intent in writes:
            if row.slot not in written:
                continue
            if self._metrics is not None:
                self._metrics.slots[row.outcome] += 1
            if row.outcome == "failed_to_start":
                log.warning("schedule %s, %s: %s", schedule.name, row.slot, row.reason)
            if intent is not None:
                started.append(intent.record.execution_id)
        await self._submissions.append_started(started)
        for execution_id in cancelled:
            await self._cancel(execution_id)
        return True

    async def _write_of(self, schedule: Schedule, verdict: Verdict, now: float) -> SlotWrite:
        slot, outcome, reason = verdict
        if outcome in ("started", "late"):
            return await self._start(schedule, slot, outcome, reason, now)
        if outcome == "queued":
            schedule.queued += 1
        return SlotWrite(_row(slot, outcome, reason, now))

    async def _start(
        self, schedule: Schedule, slot: Slot, outcome: Outcome, reason: str | None, now: float
    ) -> SlotWrite:
        """The row of a slot that starts, with its intent; or the row that says why it can't."""
        definition = schedule.definition
        try:
            intent = await self._intent(schedule, slot)
        except StoreError:
            raise  # the store is away: the slot stays due
        except (PenstockError, ValueError) as error:
            text = str(error)[:REASON_CHARACTERS_MAX]
            return SlotWrite(_row(slot, "failed_to_start", text, now))
        execution_id = intent.record.execution_id
        schedule.previous_at = slot.at.timestamp()
        if definition.overlap != "allow" or definition.pause_on_failure:
            schedule.running.append(execution_id)
        return SlotWrite(_row(slot, outcome, reason, now, execution_id), intent)

    async def _intent(self, schedule: Schedule, slot: Slot) -> Intent:
        definition = schedule.definition
        previous: datetime | None = None
        if schedule.previous_at is not None:
            previous = moment_of(schedule.previous_at)
        fields = slot_fields(schedule.name, slot, previous)
        start_request = StartRequest(
            workflow=definition.workflow,
            input=render(definition.input, fields),
            labels={LABEL: schedule.name, **definition.labels},
            priority=definition.priority,
        )
        return await self._submissions.prepare(start_request, slot_execution_id(schedule.id, slot))

    async def _queued(self, schedule: Schedule, limit: int) -> list[SlotRow]:
        search = SlotSearch(
            schedule_id=schedule.id, outcome="queued", oldest_first=True, limit=limit
        )
        return await self._stores.cold.schedules.slots(search)

    async def _start_queued(self, schedule: Schedule, now: float) -> list[SlotWrite]:
        """Start the oldest slot that is queued."""
        rows = await self._queued(schedule, 1)
        if not rows:
            schedule.queued = 0
            return []
        schedule.queued -= 1
        slot = slot_named(rows[0].slot)
        reason = "it waited for an earlier execution to end"
        return [await self._start(schedule, slot, "started", reason, now)]

    async def _replace_queued(self, schedule: Schedule, now: float) -> list[SlotWrite]:
        rows = await self._queued(schedule, schedule.queued) if schedule.queued else []
        schedule.queued = 0
        return [SlotWrite(_row(slot_named(row.slot), "skipped", REPLACED, now)) for row in rows]

    async def _forget_ended(self, schedule: Schedule) -> str | None:
        """Drop executions that have ended from those that may run.

        Returns one that has failed, if there is one.
        """
        failed_id: str | None = None
        running: list[str] = []
        for execution_id in schedule.running:
            stored = await self._stores.cold.executions.execution(execution_id)
            if stored is None or stored.record.state in EXECUTION_ENDS:
                if stored is not None and stored.record.state == ExecutionState.FAILED:
                    failed_id = execution_id
            else:
                running.append(execution_id)
        schedule.running = running
        return failed_id

    async def _cancel(self, execution_id: str) -> None:
        # it may have ended meanwhile; and what is stored is carried out: the reconciler sees to it
        with contextlib.suppress(PenstockError):
            await self._stores.cold.executions.request_control(execution_id, "cancel")
            await self._stores.hot.append([CONTROL_EVENTS["cancel"](execution_id)])


def _row(
    slot: Slot, outcome: Outcome, reason: str | None, now: float, execution_id: str | None = None
) -> SlotRow:
    return SlotRow(
        slot=slot_name(slot),
        at=slot.at.timestamp(),
        outcome=outcome,
        reason=reason,
        execution_id=execution_id,
        recorded_at=now,
    )
