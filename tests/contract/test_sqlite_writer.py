"""The single writer of SQLite.

Commits are shared, and on disk before they are answered; a failure affects only its own commit.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.contract.facts import Owner, begin, new_intent, queued, task
from penstock.errors import StoreError, StoreUnavailable
from penstock.stores.sqlite import SqliteStores, writer
from penstock.stores.sqlite.hot import RECENT_COMMITS
from tests.waiting import until


def on_file(test: Callable[[SqliteStores], Awaitable[None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        asyncio.run(_with_file(test, tmp_path))

    run.__name__, run.__doc__ = str(getattr(test, "__name__", "")), test.__doc__
    return run


async def _with_file(test: Callable[[SqliteStores], Awaitable[None]], folder: Path) -> None:
    stores = SqliteStores(folder / "store.db")
    try:
        await test(stores)
    finally:
        await stores.close()


@on_file
async def test_writes_that_arrive_together_share_a_commit(stores: SqliteStores) -> None:
    before = stores._writer.commits
    names = [f"e{number}" for number in range(200)]
    await asyncio.gather(
        *(stores.cold.executions.record_intents([new_intent(name)]) for name in names)
    )
    assert 0 < stores._writer.commits - before < len(names) / 2
    assert len(await stores.cold.executions.started(0)) == len(names)


@on_file
async def test_what_waits_for_the_writer_becomes_one_commit(stores: SqliteStores) -> None:
    async with _busy_writer(stores):
        before = stores._writer.commits
        creating = asyncio.gather(
            *(
                stores.cold.executions.record_intents([new_intent(f"e{number}")])
                for number in range(50)
            )
        )
        await until(lambda: stores._writer._jobs.qsize() == 50)
    await creating
    assert stores._writer.commits - before == 2  # the busy one, and one for all of these


@on_file
async def test_executions_that_only_wait_do_not_send_another_ones_commits_to_the_thread(
    stores: SqliteStores,
) -> None:
    owner = await begin(stores, *(f"e{number}" for number in range(RECENT_COMMITS * 2)))
    synced: list[bool] = []

    def refuse(_job: writer.Job, *, one_statement: bool = False) -> bool:
        synced.append(one_statement)
        return False

    stores._writer.now = refuse  # type: ignore[method-assign, assignment]
    for attempt in range(RECENT_COMMITS):
        await owner.commit(queued(task("e1", attempt=attempt + 1)))
    assert synced[-1:] == [True]  # the caller would have written the last one itself
    synced.clear()
    for number in range(RECENT_COMMITS):
        await owner.commit(queued(task(f"e{number}", attempt=50)))
    assert len(synced) < RECENT_COMMITS / 2  # many go on: they had better share transactions


@on_file
async def test_the_log_is_written_ahead_and_synced_at_every_commit(stores: SqliteStores) -> None:
    assert (
        await stores._writer.submit(lambda connection: _pragma(connection, "journal_mode")) == "wal"
    )
    assert await stores._writer.submit(lambda connection: _pragma(connection, "synchronous")) == 2


@on_file
async def test_a_commit_that_the_file_refuses_leaves_nothing_and_can_be_made_later(
    stores: SqliteStores,
) -> None:
    owner = await begin(stores, "e1", "e2")
    before = await stores.hot.load(["e1", "e2"])
    trigger = (
        "CREATE TRIGGER refuse BEFORE INSERT ON changes WHEN new.id & 0xFFFFFF > 0 "
        "BEGIN SELECT RAISE(ABORT, 'not today'); END"
    )
    await stores._writer.submit(lambda connection: connection.execute(trigger).fetchall())
    with pytest.raises(StoreError, match="not today"):
        await owner.commit(queued(task("e1")), queued(task("e2")))
    assert await stores.hot.load(["e1", "e2"]) == before
    assert stores.queue.depth() == 0
    await stores._writer.submit(
        lambda connection: connection.execute("DROP TRIGGER refuse").fetchall()
    )
    following = await Owner.of(stores)
    assert await stores.hot.load(["e1", "e2"]) == before
    await following.commit(queued(task("e1")), queued(task("e2")))
    assert len(await stores.queue.fetch("worker-1", {"echo"}, 10)) == 2


@on_file
async def test_a_full_disk_is_said_so_and_nothing_is_lost_when_there_is_room_again(
    stores: SqliteStores,
) -> None:
    owner = await begin(stores, "e1")
    before = await stores.hot.load(["e1"])
    pages = await stores._writer.submit(lambda connection: _pragma(connection, "page_count"))
    await stores._writer.submit(lambda connection: _pragma(connection, f"max_page_count={pages}"))
    large = task("e1", config=b"x" * 100)
    changes = queued(large)
    changes.outputs = {"fetch": b'"' + b"x" * 10_000_000 + b'"'}
    with pytest.raises(StoreUnavailable, match="full"):
        await owner.commit(changes)
    with pytest.raises(StoreUnavailable, match="full"):
        await stores.cold.definitions.put_workflow("report", "hash", b"x" * 10_000_000, 1.0)
    assert await stores.hot.load(["e1"]) == before
    await stores._writer.submit(lambda connection: _pragma(connection, f"max_page_count={2**30}"))
    await (await Owner.of(stores)).commit(changes)
    assert (await stores.hot.load(["e1"]))["e1"].outputs == changes.outputs
    assert (
        await stores.cold.definitions.put_workflow("report", "hash", b"x" * 10_000_000, 1.0)
    ).version == 1


@on_file
async def test_one_bad_job_does_not_fail_the_others_of_its_commit(stores: SqliteStores) -> None:
    async with _busy_writer(stores):
        bad = stores._writer.submit(
            lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)")
        )
        good = [
            asyncio.ensure_future(stores.cold.executions.record_intents([new_intent(f"e{number}")]))
            for number in range(10)
        ]
        await until(lambda: stores._writer._jobs.qsize() == 11)
    with pytest.raises(StoreError, match="nowhere"):
        await bad
    assert [answer for (answer,) in await asyncio.gather(*good)] == [
        f"e{number}" for number in range(10)
    ]
    assert len(await stores.cold.executions.started(0)) == 10


@on_file
async def test_a_job_that_raises_anything_is_answered_and_the_writer_goes_on(
    stores: SqliteStores,
) -> None:
    def broken(_: sqlite3.Connection) -> None:
        raise RuntimeError("a bug")

    with pytest.raises((StoreError, RuntimeError), match="a bug"):
        async with asyncio.timeout(5):
            await stores._writer.submit(broken)
    async with asyncio.timeout(5):
        assert await stores.cold.executions.record_intents([new_intent("e1")]) == ["e1"]


@on_file
async def test_a_job_of_which_half_failed_leaves_nothing(stores: SqliteStores) -> None:
    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO handlers (name) VALUES ('half')")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(StoreError):
        await stores._writer.submit(half)
    assert await stores.cold.definitions.known_handlers() == {}


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    async def write(stores: SqliteStores) -> None:
        log = stores.path.with_name(stores.path.name + "-wal")
        for number in range(60):
            await stores.cold.definitions.put_workflow(
                "report", f"hash-{number}", b"x" * 500_000, 1.0
            )
        assert log.stat().st_size < 2 * writer.LOG_PAGES * 4120
        assert stores.path.stat().st_size > 10_000_000

    asyncio.run(_with_file(write, tmp_path))


class _busy_writer:  # noqa: N801 -- reads as what it does
    """Inside, jobs only pile up."""

    def __init__(self, stores: SqliteStores) -> None:
        self._writer = stores._writer
        self._free = threading.Event()
        self._busy = threading.Event()

    async def __aenter__(self) -> None:
        self._job = self._writer.submit(self._wait)
        await asyncio.to_thread(self._busy.wait)

    async def __aexit__(self, *_: object) -> None:
        self._free.set()
        await self._job

    def _wait(self, _: sqlite3.Connection) -> None:
        self._busy.set()
        assert self._free.wait(20)


def _pragma(connection: sqlite3.Connection, text: str) -> Any:
    return connection.execute(f"PRAGMA {text}").fetchone()[0]
