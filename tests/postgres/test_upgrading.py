"""A database of an earlier version is upgraded in place, with everything that is in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.migrating import migrate
from tests.contract.upgrading import UNBEGUN, judge_reading, judge_writing
from tests.postgres.opened import database_of_schema, with_opened

VIEWS = ("penstock_executions", "penstock_nodes")
OF_THE_VERSION_BEFORE = {
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


def test_executions_of_every_kind_are_read_as_they_were_and_go_on() -> None:
    url = _database_of_schema_0003()
    migrate(url)

    async def judge(store: PostgresColdStore) -> None:
        assert set(await store.executions.started(0)) == UNBEGUN
        await judge_reading(store)  # type: ignore[arg-type]
        await judge_writing(store)  # type: ignore[arg-type]

    asyncio.run(with_opened(url, judge))


def test_the_views_answer_as_before_and_keep_their_grants() -> None:
    url = _database_of_schema_0003()
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


@pytest.mark.parametrize("what", OF_THE_VERSION_BEFORE)
def test_a_process_of_the_version_before_changes_nothing_any_more(what: str) -> None:
    url = _database_of_schema_0003()
    migrate(url)
    refusals = (
        errors.NotNullViolation,
        errors.CheckViolation,
        errors.UndefinedColumn,
        errors.UndefinedTable,
    )
    with pytest.raises(refusals):
        _execute(url, OF_THE_VERSION_BEFORE[what])


def _database_of_schema_0003() -> str:
    url = database_of_schema("0003", partitions=1)
    _execute(url, Path(__file__).with_name("rows_of_schema_0003.sql").read_text("utf-8"))
    return url


def _execute(url: str, statements: str) -> list[tuple[Any, ...]] | None:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(statements.encode())
        return cursor.fetchall() if cursor.description else None
