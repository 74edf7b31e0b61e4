"""Schedules over the stores: each slot starts once, and has a row that says what became of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest

from penstock.config import Settings
from penstock.contract.facts import Owner, ended, started
from penstock.contract.waiting import let_others_run, until
from penstock.engine.events import AnyEvent
from penstock.engine.states import ExecutionState
from penstock.errors import Conflict, InvalidInput, NotFound, StoreUnavailable
from penstock.orchestrator.recovery import sweep
from penstock.schedules import times
from penstock.schedules.slots import slot_named
from penstock.service import Service
from penstock.service.scheduler import Scheduler
from penstock.stores.base import Stores
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.schedules import Schedule, SlotRow
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import WORK, node

HOUR = 3600.0
T0 = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
HOURLY = {"workflow": "report", "when": {"cron": "0 * * * *"}}
REPORT = {"name": "report", "nodes": [node("a")]}


class Almanac:
    """A service and what looks after its schedules, at a time that the test sets."""

    def __init__(self, now: float = T0, stores: Stores | None = None) -> None:
        self.now = now
        self.stores: Stores = stores or MemoryStores(lambda: self.now)
        self.metrics = Metrics()
        self.service = Service(
            self.stores,
            PlanCache(self.stores.cold, lambda: WORK),
            Settings.load({}, environ={}),
            lambda: WORK,
            metrics=self.metrics,
        )

    async def put(self, name: str = "hourly", **fields: Any) -> Schedule:
        await self.service.workflows.put(REPORT)
        put = await self.service.schedules.put(name, {**HOURLY, **fields})
        return put.schedule

    async def fire_at(self, now: float, name: str = "hourly") -> list[SlotRow]:
        """What is known of slots after the scheduler has looked at this time, the oldest first."""
        self.now = now
        await self.service.firing.fire(await self.service.schedules.get(name))
        return await self.rows(name)

    async def rows(self, name: str = "hourly") -> list[SlotRow]:
        return (await self.service.schedules.slots(name, limit=5000))[::-1]

    async def outcomes(self, name: str = "hourly") -> list[str]:
        return [row.outcome for row in await self.rows(name)]

    async def end(
        self, execution_id: str | None, state: ExecutionState = ExecutionState.COMPLETED
    ) -> None:
        assert execution_id is not None
        owner = await Owner.of(self.stores)
        await owner.commit(started(execution_id))
        await owner.commit(ended(execution_id, state))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_slot_starts_an_execution_that_is_told_of_it() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put(
            input={"day": "{{ slot.local_date }}"}, labels={"team": "ops"}, priority=5
        )
        assert await almanac.fire_at(T0 + HOUR - 1) == []
        (row,) = await almanac.fire_at(T0 + HOUR)
        assert (row.outcome, row.reason, row.at) == ("started", None, T0 + HOUR)
        intent = await almanac.stores.cold.executions.intent(row.execution_id or "")
        assert intent is not None
        assert intent.record.input == b'{"day":"2026-11-20"}'
        assert intent.record.labels == {"schedule": "hourly", "team": "ops"}
        assert intent.record.priority == 5
        assert almanac.metrics.slots == Counter(started=1)
        events = await almanac.stores.hot.receive(0, 0, 10, 0.0)
        assert [event.execution_id for _, event in events] == [row.execution_id]

        assert await almanac.fire_at(T0 + HOUR + 1) == [row]

    run(main())


def test_every_slot_over_both_changes_of_the_clock_has_a_row_though_nothing_ran() -> None:
    async def main(change: datetime) -> None:
        begin, end = change - timedelta(hours=8), change + timedelta(hours=8)
        almanac = Almanac(begin.timestamp())
        when = {"cron": "*/20 * * * *", "timezone": "Europe/Berlin"}
        nightly = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
        catchup = {"policy": "all", "max": 1000}
        await almanac.put(when=when, overlap="allow", catchup=catchup)
        await almanac.put("nightly", when=nightly)

        # it runs for two hours, is away for eleven with the change in them, and runs on
        at = begin.timestamp()
        while at < end.timestamp():
            if not 2 * HOUR < at - begin.timestamp() < 13 * HOUR:
                await almanac.fire_at(at)
                await almanac.fire_at(at, "nightly")
            at += 600
        rows = await almanac.fire_at(end.timestamp())

        assert [row.at for row in rows] == [begin.timestamp() + 1200 * n for n in range(1, 49)]
        assert len({row.slot for row in rows}) == len({row.execution_id for row in rows}) == 48
        counted = Counter(row.outcome for row in rows)
        assert counted["late"] >= 32
        assert counted["late"] + counted["started"] == 48
        (night,) = await almanac.rows("nightly")
        assert night.outcome == "late"
        assert night.slot.endswith("T02:30:00[Europe/Berlin]")

    run(main(datetime(2026, 3, 29, 1, tzinfo=UTC)))
    run(main(datetime(2026, 10, 25, 1, tzinfo=UTC)))


def test_two_owners_with_different_zone_files_start_no_slot_twice() -> None:
    """The one has files by which this zone has summer time in November: an hour more."""

    async def main() -> None:
        almanac = Almanac()
        await almanac.put(
            when={"cron": "*/30 * * * *", "timezone": "Europe/Berlin"}, overlap="allow"
        )
        others = Almanac(stores=almanac.stores)
        for step in range(1, 97):
            almanac.now = others.now = T0 + 900.0 * step
            read = [await one.service.schedules.get("hourly") for one in (almanac, others)]
            with patch.object(times, "ZoneInfo", _other_zone_files):
                await others.service.firing.fire(read[1])
            await almanac.service.firing.fire(read[0])

        rows = await almanac.rows()
        assert len(rows) >= 40
        walls = [row.slot for row in rows]
        assert len(walls) == len(set(walls))
        ids = [row.execution_id for row in rows if row.execution_id is not None]
        assert len(ids) == len(set(ids))
        recorded = await almanac.stores.cold.executions.started(0)
        assert sorted(recorded) == sorted(ids)

    def _other_zone_files(name: str) -> ZoneInfo:
        return ZoneInfo("Africa/Cairo" if name == "Europe/Berlin" else name)

    run(main())


def test_a_start_that_is_lost_after_the_transaction_is_found_by_the_reconciler() -> None:
    """As a kill between the two: everything is written, and the inbox hears nothing."""

    async def main() -> None:
        almanac = Almanac()
        await almanac.put()
        await Owner.of(almanac.stores)

        async def killed(events: Sequence[AnyEvent], *, own: bool = False) -> None:
            raise StoreUnavailable("killed")

        with patch.object(almanac.stores.hot, "append", killed):
            (row,) = await almanac.fire_at(T0 + HOUR)
        assert row.outcome == "started"
        assert await almanac.stores.hot.receive(0, 0, 10, 0.0) == []

        almanac.now += 60
        assert await sweep(almanac.stores, 0, overdue_seconds=15) == 1
        events = await almanac.stores.hot.receive(0, 0, 10, 0.0)
        assert [event.execution_id for _, event in events] == [row.execution_id]
        assert await almanac.fire_at(almanac.now) == [row]

    run(main())


def test_a_slot_is_skipped_with_a_row_while_the_last_one_runs() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put()
        (first,) = await almanac.fire_at(T0 + HOUR)
        (_, second) = await almanac.fire_at(T0 + 2 * HOUR)
        assert (second.outcome, second.execution_id) == ("skipped", None)
        await almanac.end(first.execution_id)
        (*_, third) = await almanac.fire_at(T0 + 3 * HOUR)
        assert third.outcome == "started"

    run(main())


def test_queued_slots_start_one_after_another() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put(overlap="queue_all", input={"at": "{{ slot.time }}"})
        for hour in (1, 2, 3):
            await almanac.fire_at(T0 + hour * HOUR)
        assert await almanac.outcomes() == ["started", "queued", "queued"]
        for hour in (1, 2):
            rows = await almanac.rows()
            await almanac.end(rows[hour - 1].execution_id)
            await almanac.fire_at(T0 + 3 * HOUR + 60 * hour)
        rows = await almanac.rows()
        assert [row.outcome for row in rows] == ["started"] * 3
        intent = await almanac.stores.cold.executions.intent(rows[1].execution_id or "")
        assert intent is not None
        assert intent.record.input == b'{"at":"2026-11-20T02:00:00Z"}'
        assert (await almanac.service.schedules.get("hourly")).queued == 0

    run(main())


def test_a_new_slot_cancels_the_old_one_and_starts_when_it_has_ended() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put(overlap="cancel_old")
        (first,) = await almanac.fire_at(T0 + HOUR)
        await almanac.fire_at(T0 + 2 * HOUR)
        await almanac.fire_at(T0 + 3 * HOUR)
        assert await almanac.outcomes() == ["started", "skipped", "queued"]
        requests = await almanac.stores.cold.executions.control_requests(0)
        assert requests == {first.execution_id: "cancel"}
        await almanac.end(first.execution_id, ExecutionState.CANCELLED)
        await almanac.fire_at(T0 + 3 * HOUR + 5)
        assert await almanac.outcomes() == ["started", "skipped", "started"]

    run(main())


def test_a_slot_that_can_not_start_says_why_and_the_next_one_comes() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put()
        await almanac.service.workflows.delete("report")
        (row,) = await almanac.fire_at(T0 + HOUR)
        assert row.outcome == "failed_to_start"
        assert "there is no workflow 'report'" in (row.reason or "")
        await almanac.service.workflows.put(REPORT)
        assert (await almanac.fire_at(T0 + 2 * HOUR))[-1].outcome == "started"

    run(main())


def test_a_schedule_is_paused_when_its_execution_fails_if_that_is_wanted() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put(pause_on_failure=True, overlap="allow")
        (row,) = await almanac.fire_at(T0 + HOUR)
        await almanac.end(row.execution_id, ExecutionState.FAILED)
        assert await almanac.fire_at(T0 + 2 * HOUR) == [row]
        schedule = await almanac.service.schedules.get("hourly")
        assert schedule.paused
        assert schedule.paused_reason == f"execution {row.execution_id} has failed"

    run(main())


def test_what_was_missed_in_a_pause_is_caught_up() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put()
        schedules = almanac.service.schedules
        await schedules.pause("hourly", "holidays")
        with pytest.raises(Conflict):
            await schedules.pause("hourly")
        assert await almanac.fire_at(T0 + 3.5 * HOUR) == []
        assert not (await schedules.resume("hourly")).paused
        with pytest.raises(Conflict):
            await schedules.resume("hourly")
        await almanac.fire_at(T0 + 3.6 * HOUR)
        assert await almanac.outcomes() == ["skipped", "skipped", "late"]

    run(main())


def test_an_edit_counts_from_now_on_and_slots_that_are_due_stay() -> None:
    async def main() -> None:
        almanac = Almanac()
        before = await almanac.put()
        almanac.now = T0 + HOUR + 5  # nobody has looked yet
        after = await almanac.put(when={"cron": "15 * * * *"})
        assert after.id == before.id
        assert await almanac.outcomes() == ["started"]
        assert slot_named(after.next_slot or "").at.timestamp() == T0 + 1.25 * HOUR

        same = await almanac.put(when={"cron": "15 * * * *"}, overlap="allow")
        assert same.next_slot == after.next_slot

    run(main())


def test_a_trigger_starts_an_execution_that_is_no_slot() -> None:
    async def main() -> None:
        almanac = Almanac()
        schedule = await almanac.put(input={"day": "{{ slot.local_date }}"})
        record = await almanac.service.schedules.trigger("hourly")
        assert record.input == b'{"day":"2026-11-20"}'
        assert await almanac.rows() == []
        assert (await almanac.service.schedules.get("hourly")).next_slot == schedule.next_slot

    run(main())


def test_a_schedule_that_is_over_has_no_next_slot() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put(when={"at": "2026-11-20T00:30:00Z"})
        assert len(await almanac.service.schedules.next("hourly")) == 1
        await almanac.fire_at(T0 + 0.5 * HOUR)
        assert await almanac.outcomes() == ["started"]
        assert await almanac.service.schedules.next("hourly") == []
        assert almanac.service.firing.due_at(await almanac.service.schedules.get("hourly")) is None
        await almanac.service.schedules.delete("hourly")
        with pytest.raises(NotFound):
            await almanac.service.schedules.delete("hourly")

    run(main())


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"when": {"cron": "0 0 31 2 *"}}, "never_fires", "when.cron"),
        ({"when": {"at": "2020-01-01T00:00:00Z"}}, "never_fires", "when"),
        ({"until": "2020-01-01"}, "never_fires", "when"),
        ({"from": "2027-01-02", "until": "2027-01-01"}, "never_fires", "until"),
        ({"when": [{"every_seconds": 0.1}]}, "too_frequent", "when.every_seconds"),
        ({"when": {"cron": "x"}}, "bad_cron", "when.cron"),
        ({"when": {"cron": 7}}, "bad_schedule", "when.cron"),
        ({"overlap": "never"}, "bad_schedule", "overlap"),
        ({"overlp": "skip"}, "bad_schedule", ""),
        ({"input": {"day": "{{ slot.date }}"}}, "bad_template", "input.day"),
        ({"jitter_seconds": -1}, "bad_schedule", "jitter_seconds"),
        ({"catchup": {"max": -1}}, "bad_schedule", "catchup.max"),
        ({"from": "soon"}, "bad_schedule", "from"),
        ({"from": "9999-12-31T23:59:59-12:00"}, "bad_schedule", "from"),
        ({"until": "0001-01-01"}, "bad_schedule", "until"),
    ],
)
def test_a_schedule_that_can_not_be_used_is_refused(
    fields: dict[str, Any], code: str, path: str
) -> None:
    async def main() -> None:
        with pytest.raises(InvalidInput) as caught:
            await Almanac().put(**fields)
        (problem,) = caught.value.problems
        assert (problem.code, problem.path) == (code, path)

    run(main())


def test_a_schedule_of_an_unknown_workflow_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(NotFound):
            await Almanac().put(workflow="reprot")
        with pytest.raises(InvalidInput, match="name"):
            await Almanac().put("a/b")
        with pytest.raises(InvalidInput, match="it is 'x', but it is put as 'y'"):
            await Almanac().service.schedules.put("y", {**HOURLY, "name": "x"})

    run(main())


def test_the_scheduler_fires_what_its_partitions_have_and_nothing_else() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put()
        owned: set[int] = set()
        firing = almanac.service.firing
        scheduler = Scheduler(almanac.stores, firing, lambda: owned, read_seconds=0.01)
        almanac.now = T0 + HOUR
        task = asyncio.create_task(scheduler.run())
        await let_others_run()
        assert await almanac.rows() == []
        owned.add(0)
        scheduler.look_again()
        await until(almanac.rows)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await almanac.outcomes() == ["started"]

    run(main())


def test_the_scheduler_survives_a_store_that_is_away_and_goes_on() -> None:
    async def main() -> None:
        almanac = Almanac()
        await almanac.put()
        almanac.now = T0 + HOUR
        store = almanac.stores.cold.schedules
        write = store.write
        calls = 0

        async def away(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise StoreUnavailable("away")
            return await write(*arguments)

        scheduler = Scheduler(almanac.stores, almanac.service.firing, lambda: {0})
        with patch.object(store, "write", away):
            task = asyncio.create_task(scheduler.run())
            await until(almanac.rows)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert await almanac.outcomes() == ["started"]

    run(main())
