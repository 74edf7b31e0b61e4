"""An engine on a SQLite file deletes old executions by itself.

It does so while it runs, and holds nothing up.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine
from penstock.config import Settings
from penstock.contract.facts import Owner, ended, new_intent, started
from penstock.contract.schedules import new_schedule, slot
from penstock.errors import StoreUnavailable
from penstock.runtime.retention import (
    SLOT_DAYS,
    run_audit_retention,
    run_hook_retention,
    run_slot_retention,
)
from penstock.stores.hooks import Delivery, HookRow
from penstock.stores.memory import MemoryStores
from penstock.stores.records import AuditLine, AuditSearch
from penstock.stores.schedules import SlotSearch, SlotWrite
from penstock.stores.sqlite import SqliteStores, forgetting
from tests.waiting import let_others_run, until

LARGE = {"name": "big", "nodes": [{"id": "a", "handler": "echo", "config": {"text": "x" * 2000}}]}
DAY = 86400.0


def settings(folder: Path, **options: Any) -> Settings:
    return Settings.load({"inline_max_bytes": 1000, **options}, environ={}, directory=folder)


def blobs_in(folder: Path) -> list[Path]:
    return [file for file in (folder / "work.db.blobs").glob("*/*") if file.is_file()]


def make_old(folder: Path) -> None:
    """Everything that is in the file ended in 1970."""
    with closing(sqlite3.connect(folder / "work.db")) as connection, connection:
        # there is only one execution
        connection.execute("UPDATE executions SET ended_at = 2, created_at = 1, n = 20000")
        connection.execute("UPDATE changes SET n = 20000")
    for blob in blobs_in(folder):
        os.utime(blob, (1, 1))


@pytest.mark.parametrize("days", [7.0, 0.0])
def test_an_engine_forgets_what_ended_long_ago_unless_told_not_to(
    days: float, tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path / 'work.db'}"

    often = settings(tmp_path, retention_days=days, retention_check_seconds=0.05)

    async def main() -> None:
        async with Engine(address, settings=settings(tmp_path, retention_days=0)) as engine:
            old = (await (await engine.start(LARGE, idempotency_key="k")).result()).execution_id
        make_old(tmp_path)
        (old_blob,) = blobs_in(tmp_path)
        async with Engine(address, settings=often) as engine:
            other = {**LARGE, "nodes": [{**LARGE["nodes"][0], "config": {"text": "y" * 2000}}]}  # type: ignore[dict-item]
            young = (await (await engine.start(other)).result()).execution_id
            if days:
                await until(lambda: not old_blob.exists())
                assert await engine.stores.cold.executions.execution(old) is None
            else:
                assert await engine.stores.cold.executions.execution(old) is not None
            assert (await engine.status(young)).completed
            assert old_blob not in blobs_in(tmp_path) or not days

    asyncio.run(main())


def test_an_execution_with_many_changes_is_forgotten_in_small_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "CHANGES_PER_STEP", 10)
    sizes: list[int] = []
    delete_rows = forgetting._delete_rows

    def counted(connection: sqlite3.Connection, table: str, column: str, ids: list[int]) -> None:
        sizes.append(len(ids))
        delete_rows(connection, table, column, ids)

    monkeypatch.setattr(forgetting, "_delete_rows", counted)

    async def main() -> None:
        stores = SqliteStores(tmp_path / "work.db")
        await stores.cold.executions.record_intents([new_intent("old"), new_intent("young")])
        owner = await Owner.of(stores)
        for _ in range(100):
            await owner.commit(started("old"))
        await owner.commit(started("young"), ended("old"))
        assert await stores.forget(1e12) == 1
        assert max(sizes) <= 10
        assert sum(sizes) == 101
        assert await stores.cold.executions.started(0) == ["young"]
        await stores.close()

    asyncio.run(main())
    with closing(sqlite3.connect(tmp_path / "work.db")) as connection:
        assert connection.execute("SELECT count(*) FROM forgotten").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM changes WHERE n > 0").fetchone() == (1,)


def test_what_a_killed_process_had_half_forgotten_is_forgotten_by_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        stores = SqliteStores(tmp_path / "work.db")
        await stores.cold.executions.record_intents([new_intent("old")])
        owner = await Owner.of(stores)
        await owner.commit(started("old"))
        await owner.commit(ended("old"))
        numbers = await stores.cold.retention._find_old(1e12, -1)
        await stores._writer.submit(lambda connection: forgetting.forget(connection, 1e12, numbers))
        await stores.close()
        stores = SqliteStores(tmp_path / "work.db")
        assert await stores.cold.executions.read_commits((0,)) == []
        await stores.forget(1e12)
        await stores.close()

    asyncio.run(main())
    with closing(sqlite3.connect(tmp_path / "work.db")) as connection:
        assert connection.execute("SELECT count(*) FROM changes WHERE n > 0").fetchone() == (0,)


def test_a_large_value_that_is_put_again_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    async def main() -> None:
        stores = SqliteStores(tmp_path / "work.db")
        blob, other = await stores.blobs.put(b"again"), await stores.blobs.put(b"never again")
        for file in blobs_in(tmp_path):
            os.utime(file, (1, 1))
        assert await stores.blobs.keys_before(1000.0) == {blob.key, other.key}
        await stores.blobs.put(b"again")
        await stores.forget(1000.0)
        assert [file.name for file in blobs_in(tmp_path)] == [blob.key]
        await stores.close()

    asyncio.run(main())


def test_old_audit_lines_go_by_a_retention_of_their_own() -> None:
    async def scenario() -> None:
        stores = MemoryStores(time.time)
        year = 365 * DAY
        times = [0.0] * 2500 + [year - 1, year + 1]
        await stores.cold.audit_log.write_audit(
            [AuditLine(at, "", "", "act", "o", "", 200) for at in times]
        )
        deleting = asyncio.create_task(
            run_audit_retention(stores.cold.audit_log, 365.0, lambda: 2 * year, each_seconds=DAY)
        )
        await until(lambda: _times(stores, [year + 1]), "all that is older than a year is gone")
        deleting.cancel()
        await run_audit_retention(stores.cold.audit_log, 0.0, lambda: 9 * year, each_seconds=DAY)
        assert await _times(stores, [year + 1]), "0 keeps everything"

    asyncio.run(scenario())


def test_rows_of_slots_are_deleted_after_their_time_by_who_owns_the_first_partition() -> None:
    async def scenario() -> None:
        stores = MemoryStores(lambda: (SLOT_DAYS + 1.5) * DAY)
        schedule = new_schedule()
        await stores.cold.schedules.write(schedule)
        rows = [slot(number) for number in range(3)]
        for days, row in enumerate(rows):
            row.recorded_at = days * DAY
        await stores.cold.schedules.write(schedule, [SlotWrite(row) for row in rows])
        search = SlotSearch(schedule_id=schedule.id)
        owns: list[bool] = []
        deleting = asyncio.create_task(
            run_slot_retention(stores, lambda: bool(owns), each_seconds=0.0)
        )
        await let_others_run()
        assert len(await stores.cold.schedules.slots(search)) == 3
        owns.append(True)

        async def is_young() -> bool:
            return await stores.cold.schedules.slots(search) == [rows[2]]

        await until(is_young)
        await stores.close()
        deleting.cancel()
        await asyncio.gather(deleting, return_exceptions=True)

    asyncio.run(scenario())


async def _times(stores: MemoryStores, expected: list[float]) -> bool:
    return [
        line.at for line in await stores.cold.audit_log.audit(AuditSearch(limit=5000))
    ] == expected


def test_requests_to_hooks_are_deleted_after_a_day_also_if_the_store_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        hooks = MemoryStores(time.time).cold.hooks
        await hooks.put(HookRow("a", b"{}", 0.0, 0.0))
        for at in (0.0, DAY):
            delivery = Delivery(hook_id="a", at=at, status=202, outcome="started", request=b"r")
            await hooks.record(delivery)
        forget = hooks.forget
        tries: list[float] = []

        async def forget_at_the_second_try(now: float) -> int:
            tries.append(now)
            if len(tries) == 1:
                raise StoreUnavailable("away")
            return await forget(now)

        monkeypatch.setattr(hooks, "forget", forget_at_the_second_try)
        deleting = asyncio.create_task(
            run_hook_retention(hooks, lambda: 1.5 * DAY, each_seconds=0.001)
        )

        async def first_is_gone() -> bool:
            # shown as of the time when both were young
            shown = await hooks.deliveries("a", 0.0)
            return [delivery.request for delivery in shown] == [b"r", None]

        await until(first_is_gone)
        deleting.cancel()

    asyncio.run(scenario())
