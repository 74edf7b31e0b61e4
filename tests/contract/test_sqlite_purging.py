"""Old executions leave the file, and nothing that is still needed goes with them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine
from penstock.config import Settings
from penstock.errors import SchemaMismatch, StoreError, StoreLocked
from penstock.stores.records import DeadLetterSearch, Search
from penstock.stores.sqlite.purging import Purged, purge

LARGE = "x" * 2000
FLOW = {"name": "big", "nodes": [{"id": "a", "handler": "echo", "config": {"text": LARGE}}]}
HALF = {
    "name": "half",
    "on_failure": "continue",
    "nodes": [
        {"id": "a", "handler": "echo", "config": {"text": LARGE}},
        {"id": "b", "handler": "fail", "dependencies": ["a"], "retry": {"max_attempts": 1}},
    ],
}


def on_engine(path: Path, work: Callable[[Engine], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        settings = Settings.load({"inline_max_bytes": 1000}, environ={}, directory=path.parent)
        async with Engine(f"sqlite:///{path}", settings=settings) as engine:
            return await work(engine)

    return asyncio.run(main())


def rows_in(path: Path) -> dict[str, int]:
    tables = ("executions", "labels", "idempotency", "timers")
    with closing(sqlite3.connect(path)) as connection:
        counts = {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]  # noqa: S608
            for name in tables
        }
        counts["changes"] = connection.execute(
            "SELECT count(*) FROM changes WHERE n > 0"
        ).fetchone()[0]
        return counts


def blobs_in(path: Path) -> list[Path]:
    return [file for file in path.with_name(path.name + ".blobs").glob("*/*") if file.is_file()]


async def finished(engine: Engine, document: Any = FLOW, **options: Any) -> str:
    execution = await engine.start(document, **options)
    await execution.result()
    return execution.id


def later() -> float:
    return time.time() + 60


def test_old_executions_go_with_all_that_is_theirs(tmp_path):
    path = tmp_path / "work.db"
    on_engine(path, lambda engine: finished(engine, labels={"a": 1}, idempotency_key="k"))
    assert blobs_in(path)
    assert purge(path, later()) == Purged(1, 1, 2000 + len('{"text":""}'))
    assert rows_in(path) == {
        "executions": 0,
        "labels": 0,
        "idempotency": 0,
        "timers": 0,
        "changes": 0,
    }
    assert blobs_in(path) == []


def test_younger_and_unfinished_ones_stay(tmp_path):
    path = tmp_path / "work.db"

    async def work(engine: Engine) -> None:
        await finished(engine)
        await engine.start(
            {"nodes": [{"id": "a", "handler": "sleep", "config": {"seconds": 1000}}]}
        )

    on_engine(path, work)
    before = rows_in(path)
    assert purge(path, time.time() - 3600).executions == 0
    assert rows_in(path) == before
    assert purge(path, later()).executions == 1
    assert rows_in(path)["executions"] == 1


async def retried(engine: Engine, execution_id: str) -> str:
    retry_id, _ = await engine.service.retries.retry(execution_id)
    await engine.result(retry_id)
    return retry_id


def make_old(path: Path, *execution_ids: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "UPDATE executions SET ended_at = 1 WHERE id = ?",
            [(execution_id,) for execution_id in execution_ids],
        )
    for blob in blobs_in(path):
        os.utime(blob, (1, 1))


def test_a_retry_keeps_what_it_took_over(tmp_path):
    path = tmp_path / "work.db"

    async def work(engine: Engine) -> list[str]:
        first = await finished(engine, HALF)
        second = await retried(engine, first)
        return [first, second, await retried(engine, second)]

    first, second, third = on_engine(path, work)
    make_old(path, first, second)
    assert purge(path, 1000.0, dry_run=True).executions == 1
    assert purge(path, 1000.0) == Purged(1, 0, 0)  # not the second: the third is a retry of it

    async def look(engine: Engine) -> None:
        assert (await engine.status(third)).outputs["a"] == {"text": LARGE}
        assert {row.execution_id for row in await engine.service.executions.search(Search())} == {
            second,
            third,
        }
        dead_letters = await engine.stores.cold.dead_letters.dead_letters(
            DeadLetterSearch(closed=True)
        )
        assert {row.dead_letter.execution_id for row in dead_letters} == {second, third}

    on_engine(path, look)


def test_positions_in_the_feed_and_numbers_of_dead_letters_go_on(tmp_path):
    path = tmp_path / "work.db"

    async def work(engine: Engine) -> tuple[Any, int]:
        await finished(engine, HALF)
        dead_letters = await engine.stores.cold.dead_letters.dead_letters(
            DeadLetterSearch(closed=True)
        )
        return await engine.stores.cold.executions.commits_end(), dead_letters[0].id

    end, dead_letter = on_engine(path, work)
    purge(path, later())
    purge(path, later())

    async def look(engine: Engine) -> None:
        assert await engine.stores.cold.executions.commits_end() == end
        assert await engine.stores.cold.executions.read_commits((0,)) == []

    on_engine(path, look)
    after, next_dead_letter = on_engine(path, work)
    assert after > end
    assert next_dead_letter > dead_letter
    purge(path, later())
    assert rows_in(path)["changes"] == 0


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path):
    path = tmp_path / "work.db"
    on_engine(path, finished)
    before, blobs = rows_in(path), blobs_in(path)
    said = purge(path, later(), dry_run=True)
    assert (rows_in(path), blobs_in(path)) == (before, blobs)
    assert purge(path, later()) == said


def test_a_store_that_is_in_use_is_left_alone(tmp_path):
    path = tmp_path / "work.db"

    async def work(_: Engine) -> None:
        with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
            purge(path, later())

    on_engine(path, work)


def test_what_is_no_store_of_ours_is_left_alone(tmp_path):
    with pytest.raises(StoreError, match="no store"):
        purge(tmp_path / "missing.db", 1.0)
    (tmp_path / "text.db").write_text("a text " * 1000)
    with pytest.raises(StoreError, match="can't be purged"):
        purge(tmp_path / "text.db", 1.0)
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection, connection:
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
        connection.execute("INSERT INTO meta VALUES ('schema', '99')")
    before = (tmp_path / "new.db").read_bytes()
    with pytest.raises(SchemaMismatch, match="schema 99"):
        purge(tmp_path / "new.db", 1.0)
    assert (tmp_path / "new.db").read_bytes() == before, "the other program's file was changed"
