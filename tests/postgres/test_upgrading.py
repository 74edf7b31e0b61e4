"""A database of an earlier version is upgraded in place, with everything that is in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from penstock.engine.states import ExecutionState
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.migrating import migrate
from tests.contract.upgrading import UNBEGUN, judge_reading, judge_writing
from tests.postgres.opened import copy_of, database_of_schema, shown, upgrade, with_opened

RUNNING, PAUSED = ExecutionState.RUNNING, ExecutionState.PAUSED
VIEWS = ("penstock_executions", "penstock_nodes")
OF_SCHEMA_0003 = {
    "a new execution": """
        INSERT INTO executions
          (id, partition, workflow, version, state, created_at, intent, generation, revision)
        VALUES ('new', 0, 'report', 1, 'RUNNING', 1, '', 0, 0)
    """,
    "an archive": """
        UPDATE executions SET state = 'COMPLETED', ended_at = 2, generation = 1, revision = 9
        WHERE id = 'running'
    """,
    "a checkpoint": """
        UPDATE executions SET state = 'RUNNING', generation = 1, revision = 9 WHERE id = 'waiting'
    """,
    "a trigger": "UPDATE executions SET state = 'RUNNING' WHERE id = 'waiting'",
    "a trigger of one that should run": """
        UPDATE executions SET state = 'RUNNING' WHERE id = 'unbegun'
    """,
    "a control request": "UPDATE executions SET wish = 'cancel', state = 'RUNNING'",
    "a dead letter": "UPDATE letters SET closed = 'dropped'",
    "a purge": "DELETE FROM letters",
}


OF_SCHEMA_0004 = {
    "a claim": """
        UPDATE partitions SET term = term + 1, holder = 'orchestrator-1' WHERE number = 0
    """,
    "the renewal of a claim": "UPDATE partitions SET seen_at = 1 WHERE number = 0 AND term = 0",
    "copies, also none": """
        SELECT commit_number, term FROM partitions WHERE number = 0 FOR UPDATE
    """,
    "an archive": """
        INSERT INTO archives (n, generation, revision, changes) VALUES (5, 1, 9, '')
    """,
    "a rebuild": """
        SELECT id, changes FROM executions LEFT JOIN archives USING (n) WHERE phase = 'started'
    """,
    "a purge": "DELETE FROM archives",
}
"""What orchestrators and `penstock purge` of schema 0004 do, as far as it writes changes."""
SCHEMAS = ["0003", "0004"]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_executions_of_every_kind_are_read_as_they_were_and_go_on(schema: str) -> None:
    url = _database_with_rows(schema)
    migrate(url)

    async def judge(store: PostgresColdStore) -> None:
        assert set(await store.executions.started(0)) == UNBEGUN
        await judge_reading(store)  # type: ignore[arg-type]
        await judge_writing(store)  # type: ignore[arg-type]

    asyncio.run(with_opened(url, judge))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_views_answer_as_before_and_keep_their_grants(schema: str) -> None:
    url = _database_with_rows(schema)
    _execute(url, "GRANT SELECT ON penstock_executions, penstock_nodes TO PUBLIC")
    grants = (
        "SELECT relname, relacl::text FROM pg_class WHERE relname LIKE 'penstock_%s' ORDER BY 1"
    )
    columns = """
        SELECT table_name, column_name, data_type FROM information_schema.columns
        WHERE table_name LIKE 'penstock_%s' ORDER BY table_name, ordinal_position
    """
    statements = [f"SELECT * FROM {view} ORDER BY 1" for view in VIEWS]  # noqa: S608
    statements += [grants, columns]
    before = [_execute(url, statement) for statement in statements]
    migrate(url)
    assert [_execute(url, statement) for statement in statements] == before


def test_the_changes_of_earlier_versions_are_one_segment_until_the_next_copy() -> None:
    url = _database_with_rows("0004")
    archives = _execute(url, "SELECT n, generation, changes FROM archives ORDER BY n")
    assert archives
    migrate(url)
    segments = "SELECT n, generation, changes FROM segments ORDER BY n, first"
    assert _execute(url, segments) == archives

    async def judge(store: PostgresColdStore) -> None:
        await store.copies.put_copies(0, 1, [copy_of("running", RUNNING, 5)])
        tails = [copy_of("running", RUNNING, 7, first=5), copy_of("paused", PAUSED, 9, first=3)]
        written = await store.copies.put_copies(0, 2, tails)
        assert written.missing == ("paused",), "it isn't known how many changes are stored"
        assert await shown(store, "running") == ("RUNNING", 1, 7)
        await store.copies.put_copies(0, 3, [copy_of("paused", PAUSED, 9)])
        assert await shown(store, "paused") == ("PAUSED", 1, 9)

    asyncio.run(with_opened(url, judge))
    shapes = _execute(
        url,
        """
        SELECT id, first, until FROM segments JOIN executions USING (n)
        WHERE id IN ('running', 'paused', 'completed') ORDER BY id, first
        """,
    )
    assert shapes == [("completed", 0, 0), ("paused", 0, 9), ("running", 0, 5), ("running", 5, 7)]


@pytest.mark.parametrize("what", OF_SCHEMA_0004)
def test_an_orchestrator_of_schema_0004_has_no_partition_any_more(what: str) -> None:
    """It waits then, and archives nothing.

    It would take an archive that fails alone for one that can never be stored.
    """
    url = _database_with_rows("0004")
    migrate(url)
    with pytest.raises((errors.UndefinedColumn, errors.UndefinedTable)):
        _execute(url, OF_SCHEMA_0004[what])


@pytest.mark.parametrize("what", OF_SCHEMA_0003)
def test_a_process_of_schema_0003_changes_nothing_any_more(what: str) -> None:
    url = _database_with_rows("0003")
    migrate(url)
    refusals = (
        errors.NotNullViolation,
        errors.CheckViolation,
        errors.UndefinedColumn,
        errors.UndefinedTable,
    )
    with pytest.raises(refusals):
        _execute(url, OF_SCHEMA_0003[what])


def _database_with_rows(schema: str) -> str:
    url = database_of_schema("0003", partitions=1)
    _execute(url, Path(__file__).with_name("rows_of_schema_0003.sql").read_text("utf-8"))
    upgrade(url, schema)
    return url


def _execute(url: str, statements: str) -> list[tuple[Any, ...]] | None:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statements.encode())
        return cursor.fetchall() if cursor.description else None
