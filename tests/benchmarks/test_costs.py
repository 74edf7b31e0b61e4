"""CPU time is charged to the part that uses it, and every part is found where it is looked for."""

from __future__ import annotations

import asyncio
import time

import pytest

from benchmarks.costs import parts, report
from benchmarks.costs.clock import Clock
from benchmarks.costs.plan import plan


def work(milliseconds: float) -> None:
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        sum(range(100))


class Machine:
    def outer(self) -> str:
        work(2)
        self.inner()
        return "done"

    def inner(self) -> None:
        work(20)

    async def waits(self) -> str:
        work(2)
        await asyncio.sleep(0)
        self.inner()
        return "waited"

    async def fails(self) -> None:
        await asyncio.sleep(0)
        raise ValueError("as it should")


def watched(*names: str) -> tuple[Clock, Machine]:
    clock = Clock()
    kind = type("Watched", (Machine,), {name: getattr(Machine, name) for name in names})
    for name in names:
        clock.wrap(kind, name, name)
    return clock, kind()


def test_a_part_inside_another_one_is_not_charged_twice() -> None:
    clock, machine = watched("outer", "inner")
    assert machine.outer() == "done"
    assert clock.nanoseconds["inner"] > 4 * clock.nanoseconds["outer"] > 0


def test_each_step_of_a_coroutine_is_charged_and_nothing_between_them() -> None:
    clock, machine = watched("waits", "inner")
    assert asyncio.run(machine.waits()) == "waited"
    assert clock.entries["waits"] == 2  # a step before the wait and one after it
    assert clock.nanoseconds["inner"] > 4 * clock.nanoseconds["waits"] > 0


def test_what_goes_wrong_inside_a_part_is_raised_and_the_part_is_left() -> None:
    clock, machine = watched("fails", "inner")
    with pytest.raises(ValueError, match="as it should"):
        asyncio.run(machine.fails())
    machine.inner()
    assert clock.nanoseconds["inner"] > 4 * clock.nanoseconds["fails"]


def test_a_cancelled_coroutine_is_cancelled_inside_its_part_too() -> None:
    clock, machine = watched("waits")

    async def cancelled() -> None:
        task = asyncio.ensure_future(machine.waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert clock.entries["waits"] == 2


def test_every_entry_point_of_a_part_is_there_to_be_watched() -> None:
    for owner, name, part in parts.entries():
        assert callable(getattr(owner, name)), f"{owner.__name__}.{name}"
        assert part in report.PARTS
    assert {part for _, _, part in parts.entries()} == set(report.PARTS) - {"rest"}


def test_a_table_adds_up_by_process_and_by_part() -> None:
    micros = {
        ("orchestrator", "commit"): 10.0,
        ("Redis", "commit"): 5.0,
        ("orchestrator", "decide"): 7.5,
    }
    text = report.table(report.Costs("scaled", "in batches", 4, micros, {"to Redis": 400.0}))
    assert "| commit | 10.0 | 5.0 | 15.0 |" in text
    assert "| decide | 7.5 |  | 7.5 |" in text
    assert "| **sum** | 17.5 | 5.0 | 22.5 |" in text


def test_a_million_tasks_a_second_need_a_core_for_each_microsecond_and_some_room() -> None:
    sizes = dict.fromkeys(
        ("to Redis", "from Redis", "append-only file", "PostgreSQL's log (WAL)"), 1000.0
    )
    costs = report.Costs(
        "scaled",
        "in batches",
        4,
        {("Redis", "commit"): 30.0},
        {**sizes, "kept in PostgreSQL": 500.0},
    )
    text = plan(costs)
    assert "| Redis shards, of one core each | 30 | 50 |" in text
    assert "| to Redis | 1,000 | 1.00 GB/s |" in text
    assert "| kept in PostgreSQL | 500 | 0.50 GB/s, 43 TB a day |" in text
