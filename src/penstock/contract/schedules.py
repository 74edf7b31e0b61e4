"""Schedules: one write is one step, and of two who write one is refused."""

import asyncio
from itertools import count

from penstock.contract.facts import new_intent
from penstock.schedules.model import Catchup, Definition, Outcome
from penstock.schedules.times import Rule
from penstock.stores.base import Stores, partition_of
from penstock.stores.schedules import (
    Schedule,
    SlotRow,
    SlotSearch,
    SlotWrite,
    partition_key,
)

DEFINITION = Definition(
    workflow="report@stable",
    when=(Rule(cron="30 2 * * 1-5", timezone="Europe/Berlin"), Rule(every_seconds=90.5)),
    input={"day": "{{ slot.local_date }}", "🦀": "é\x00"},
    overlap="queue_all",
    catchup=Catchup("all", 60.0, 7),
    jitter_seconds=2.5,
    from_at=1000.0,
    labels={"team": "ops"},
    priority=3,
)


def new_schedule(name: str = "nightly", id_: str = "schedule-1") -> Schedule:
    return Schedule(
        id=id_,
        name=name,
        definition=DEFINITION,
        created_at=1000.0,
        updated_at=1000.5,
        next_slot="2026-01-01T02:30:00[Europe/Berlin]",
    )


def slot(
    number: int,
    outcome: Outcome = "skipped",
    execution_id: str | None = None,
    reason: str | None = None,
) -> SlotRow:
    return SlotRow(
        slot=f"slot {number:03}",
        at=1000.0 + number,
        outcome=outcome,
        reason=reason,
        execution_id=execution_id,
        recorded_at=2000.0 + number,
    )


def starting(number: int, execution_id: str) -> SlotWrite:
    intent = new_intent(execution_id, labels={"slot": str(number)})
    return SlotWrite(slot(number, "started", execution_id), intent)


async def _slots(stores: Stores, schedule: Schedule, limit: int = 50) -> list[SlotRow]:
    return await stores.cold.schedules.slots(SlotSearch(schedule_id=schedule.id, limit=limit))


async def test_a_schedule_comes_back_as_it_was(stores: Stores) -> None:
    schedule = new_schedule()
    assert await stores.cold.schedules.get("nightly") is None
    assert await stores.cold.schedules.write(schedule) == []
    assert schedule.revision == 1
    assert await stores.cold.schedules.get("nightly") == schedule

    schedule.paused, schedule.paused_reason = True, "by hand \x00"
    schedule.running = ["e1"]
    assert await stores.cold.schedules.write(schedule) == []
    assert await stores.cold.schedules.get("nightly") == schedule
    assert schedule.revision == 2


async def test_a_name_is_given_once(stores: Stores) -> None:
    await stores.cold.schedules.write(new_schedule())
    other = new_schedule(id_="schedule-2")
    assert await stores.cold.schedules.write(other) is None
    assert other.revision == 0
    stored = await stores.cold.schedules.get("nightly")
    assert stored is not None
    assert stored.id == "schedule-1"


async def test_schedules_are_listed_by_name(stores: Stores) -> None:
    for number, name in enumerate(("c", "a", "b")):
        await stores.cold.schedules.write(new_schedule(name, f"id-{number}"))
    schedules = stores.cold.schedules
    assert [one.name for one in await schedules.page()] == ["a", "b", "c"]
    assert [one.name for one in await schedules.page(limit=2)] == ["a", "b"]
    assert [one.name for one in await schedules.page(after="a", limit=1)] == ["b"]


async def test_each_schedule_belongs_to_one_partition(stores: Stores) -> None:
    for number in range(20):
        await stores.cold.schedules.write(new_schedule(f"n{number}", f"id-{number}"))
    partitions = stores.hot.partitions
    ids: list[str] = []
    for partition in range(partitions):
        for one in await stores.cold.schedules.of_partition(partition):
            assert partition_of(partition_key(one.id), partitions) == partition
            ids.append(one.id)
    assert sorted(ids) == sorted(f"id-{number}" for number in range(20))


async def test_a_slot_is_written_together_with_its_execution(stores: Stores) -> None:
    schedule = new_schedule()
    await stores.cold.schedules.write(schedule)
    schedule.next_slot = "slot 002"
    slots = [SlotWrite(slot(0, reason="the last one ran\x00")), starting(1, "execution-1")]
    assert await stores.cold.schedules.write(schedule, slots) == ["slot 000", "slot 001"]

    intent = await stores.cold.executions.intent("execution-1")
    assert intent is not None
    assert intent.record.labels == {"slot": "1"}
    assert await _slots(stores, schedule) == [slots[1].row, slots[0].row]
    stored = await stores.cold.schedules.get("nightly")
    assert stored is not None
    assert stored.next_slot == "slot 002"
    partition = partition_of("execution-1", stores.hot.partitions)
    assert await stores.cold.executions.started(partition) == ["execution-1"]


async def test_who_has_read_an_older_revision_writes_nothing(stores: Stores) -> None:
    schedule = new_schedule()
    await stores.cold.schedules.write(schedule)
    zombie = await stores.cold.schedules.get("nightly")
    assert zombie is not None
    await stores.cold.schedules.write(schedule, [starting(1, "execution-1")])

    zombie.next_slot = "slot 009"
    assert await stores.cold.schedules.write(zombie, [starting(2, "execution-2")]) is None
    assert await stores.cold.executions.intent("execution-2") is None
    assert [row.slot for row in await _slots(stores, schedule)] == ["slot 001"]
    assert await stores.cold.schedules.get("nightly") == schedule


async def test_of_many_who_write_at_once_one_starts_the_slot(stores: Stores) -> None:
    await stores.cold.schedules.write(new_schedule())
    read = [await stores.cold.schedules.get("nightly") for _ in range(8)]
    owners = [one for one in read if one is not None]
    numbers = count(1)
    written = await asyncio.gather(
        *(
            stores.cold.schedules.write(owner, [starting(1, f"execution-{next(numbers)}")])
            for owner in owners
        )
    )
    assert sorted(str(one) for one in written) == ["None"] * 7 + ["['slot 001']"]
    (row,) = await _slots(stores, owners[0])
    recorded = await stores.cold.executions.intents([f"execution-{n}" for n in range(1, 9)])
    assert list(recorded) == [row.execution_id]


async def test_a_slot_that_has_a_row_is_not_started_again(stores: Stores) -> None:
    schedule = new_schedule()
    await stores.cold.schedules.write(schedule)
    await stores.cold.schedules.write(schedule, [starting(1, "execution-1")])
    slots = [starting(1, "execution-9"), starting(2, "execution-2")]
    assert await stores.cold.schedules.write(schedule, slots) == ["slot 002"]

    assert await stores.cold.executions.intent("execution-9") is None
    rows = await _slots(stores, schedule)
    assert [row.execution_id for row in rows] == ["execution-2", "execution-1"]


async def test_a_queued_slot_starts_later(stores: Stores) -> None:
    schedule = new_schedule()
    await stores.cold.schedules.write(schedule)
    queued = [SlotWrite(slot(number, "queued")) for number in (1, 2)]
    await stores.cold.schedules.write(schedule, queued)
    search = SlotSearch(schedule_id=schedule.id, outcome="queued", oldest_first=True)
    assert [row.slot for row in await stores.cold.schedules.slots(search)] == [
        "slot 001",
        "slot 002",
    ]

    started = [starting(1, "execution-1")]
    assert await stores.cold.schedules.write(schedule, started) == ["slot 001"]
    assert [row.slot for row in await stores.cold.schedules.slots(search)] == ["slot 002"]


async def test_slots_are_read_page_by_page(stores: Stores) -> None:
    schedule = new_schedule()
    other = new_schedule("other", "schedule-2")
    for one in (schedule, other):
        await stores.cold.schedules.write(one)
        await stores.cold.schedules.write(one, [SlotWrite(slot(number)) for number in range(5)])

    first = await _slots(stores, schedule, limit=2)
    assert [row.slot for row in first] == ["slot 004", "slot 003"]
    search = SlotSearch(schedule_id=schedule.id, before=(first[1].at, first[1].slot))
    rest = await stores.cold.schedules.slots(search)
    assert [row.slot for row in rest] == ["slot 002", "slot 001", "slot 000"]


async def test_a_deleted_schedule_leaves_only_its_executions(stores: Stores) -> None:
    schedule = new_schedule()
    await stores.cold.schedules.write(schedule)
    await stores.cold.schedules.write(schedule, [starting(1, "execution-1")])
    assert await stores.cold.schedules.delete("nightly")
    assert not await stores.cold.schedules.delete("nightly")

    assert await stores.cold.schedules.get("nightly") is None
    assert await _slots(stores, schedule) == []
    assert await stores.cold.executions.intent("execution-1") is not None
    assert await stores.cold.schedules.write(schedule, [starting(2, "execution-2")]) is None


async def test_old_rows_of_slots_are_deleted_a_few_at_a_time(stores: Stores) -> None:
    schedule = new_schedule()
    await stores.cold.schedules.write(schedule)
    await stores.cold.schedules.write(schedule, [SlotWrite(slot(number)) for number in range(5)])
    assert await stores.cold.schedules.forget_slots(2003.0, limit=2) == 2
    assert await stores.cold.schedules.forget_slots(2003.0, limit=2) == 1
    assert await stores.cold.schedules.forget_slots(2003.0) == 0
    assert [row.slot for row in await _slots(stores, schedule)] == ["slot 004", "slot 003"]
