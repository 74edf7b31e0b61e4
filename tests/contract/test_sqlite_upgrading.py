"""A file that an earlier version has made is upgraded in place, with everything that is in it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.contract.facts import Owner, ended, started
from penstock.stores.records import Search
from penstock.stores.sqlite import SCHEMA_VERSION, SqliteStores
from penstock.stores.sqlite.purging import purge
from tests.contract.upgrading import (
    BEGUN,
    EVERYTHING,
    UNBEGUN,
    judge_reading,
    judge_writing,
    make_file_of_schema_3,
    make_file_of_schema_4,
)

MAKERS = [make_file_of_schema_3, make_file_of_schema_4]
VIEWS = ("penstock_executions", "penstock_nodes")


@pytest.mark.parametrize("make", MAKERS)
def test_executions_of_every_kind_are_read_as_they_were_and_go_on(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "store.db"
    make(path)

    async def main() -> None:
        for judge in (judge_reading, judge_reading, judge_writing):
            stores = SqliteStores(path)
            try:
                assert set(await stores.cold.executions.started(0)) == UNBEGUN | BEGUN
                assert set(await stores.hot.active(0)) == BEGUN
                assert await stores.hot.next_due(0) == 2000.0
                await judge(stores.cold)
            finally:
                await stores.close()

    asyncio.run(main())


@pytest.mark.parametrize("make", MAKERS)
def test_what_begins_and_ends_after_the_upgrade_is_shown_so(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "store.db"
    make(path)

    async def main() -> None:
        stores = SqliteStores(path)
        try:
            owner = await Owner.of(stores)
            assert (await stores.hot.load(EVERYTHING)).keys() == EVERYTHING - UNBEGUN - {"waiting"}
            await owner.commit(started("unbegun"), ended("running"), ended("triggered"))
            for state, execution_id in {
                "RUNNING": "unbegun",
                "COMPLETED": "running",
                "PENDING": "retry",
            }.items():
                rows = await stores.cold.executions.search(Search(states=(state,)))
                assert execution_id in {row.execution_id for row in rows}
            assert set(await stores.hot.active(0)) == BEGUN - {"running"} | {"unbegun"}
        finally:
            await stores.close()

    asyncio.run(main())


@pytest.mark.parametrize("make", MAKERS)
def test_the_views_answer_as_before_and_tables_and_indexes_are_those_of_a_new_file(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make(old)
    before = {view: _rows(old, f"SELECT * FROM {view} ORDER BY 1") for view in VIEWS}  # noqa: S608
    for path in (old, new):
        asyncio.run(SqliteStores(path).close())

    after = {view: _rows(old, f"SELECT * FROM {view} ORDER BY 1") for view in VIEWS}  # noqa: S608
    assert after == before
    columns = """
        SELECT tables.name, columns.name, columns.type, columns.pk
        FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
        WHERE tables.type = 'table' ORDER BY 1, 2
    """
    assert _rows(old, columns) == _rows(new, columns)
    for kind in ("index", "view"):
        definitions = f"SELECT name, sql FROM sqlite_schema WHERE type = '{kind}' ORDER BY 1"  # noqa: S608
        assert _rows(old, definitions) == _rows(new, definitions)
    assert _rows(old, "PRAGMA integrity_check") == [("ok",)]
    assert _rows(old, "SELECT value FROM meta WHERE key = 'schema'") == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize("make", MAKERS)
def test_a_purge_upgrades_the_file_and_deletes_what_is_old(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "store.db"
    make(path)
    # "failed" stays as long as its retry, and what should run is never old
    assert purge(path, 2000.0, dry_run=True).executions == 3
    assert purge(path, 2000.0).executions == 3
    left = {name for (name,) in _rows(path, "SELECT id FROM executions")}
    assert left == EVERYTHING - {"waiting", "completed", "cancelled"}


def _rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
