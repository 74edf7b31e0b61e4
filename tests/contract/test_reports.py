"""The SQL views over what has ended: promised to users in docs/history.md."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any, LiteralString

import psycopg

import penstock
from penstock.config import Settings
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun
from penstock.engine.states import ExecutionState, NodeState
from penstock.stores import reports
from tests.servers import database_url, redis_url
from tests.waiting import until

DOCUMENT = {
    "name": "report",
    "on_failure": "continue",
    "nodes": [
        {
            "id": "fetch",
            "handler": "fail",
            "config": {"times": 1},
            "retry": {"max_attempts": 2, "delay_seconds": 0},
        },
        {
            "id": "a.b",
            "handler": "fail",
            "config": {"message": "no luck"},
            "retry": {"max_attempts": 1},
        },
        {"id": "after", "handler": "noop", "depends_on": ["a.b"]},
    ],
}


def rows_of(path: Path, query: str) -> list[dict[str, Any]]:
    with sqlite3.connect(path) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(query)]
    connection.close()
    return rows


def test_the_views_of_a_sqlite_file_show_executions_and_nodes(tmp_path: Path) -> None:
    path = tmp_path / "work.db"

    async def scenario() -> str:
        async with penstock.Engine(f"sqlite:///{path}") as engine:
            started = await engine.start(DOCUMENT, input={"order": 17}, labels={"team": "x"})
            await started.result()
            return started.execution_id

    execution_id = asyncio.run(scenario())
    (execution,) = rows_of(path, "SELECT * FROM penstock_executions")
    assert (execution["execution_id"], execution["workflow"], execution["version"]) == (
        execution_id,
        "report",
        1,
    )
    assert (execution["state"], execution["error_node"], execution["error_message"]) == (
        "FAILED",
        "a.b",
        "no luck",
    )
    assert json.loads(execution["input"]) == {"order": 17}
    assert json.loads(execution["labels"]) == {"team": "x"}
    assert execution["created_at"] <= execution["started_at"] <= execution["finished_at"]
    nodes = {row["node_id"]: row for row in rows_of(path, "SELECT * FROM penstock_nodes")}
    assert {node: (row["state"], row["attempts"]) for node, row in nodes.items()} == {
        "fetch": ("COMPLETED", 2),
        "a.b": ("FAILED", 1),
        "after": ("SKIPPED", 0),
    }
    assert (nodes["a.b"]["error_category"], nodes["a.b"]["error_message"]) == ("handler", "no luck")
    assert nodes["fetch"]["seconds"] >= 0
    ran = rows_of(
        path,
        "SELECT execution_id FROM penstock_executions WHERE json_extract(input, '$.order') = 17",
    )
    assert ran == [{"execution_id": execution_id}]


def ended(nodes: int, **fields: Any) -> Commands:
    record = ExecutionRecord("e", "w", 1, ExecutionState.FAILED, fields.get("input", b"{}"), 1.0)
    runs = {f"n{i}": NodeRun(f"n{i}", NodeState.COMPLETED, 1) for i in range(nodes)}
    runs["bad"] = NodeRun("bad", NodeState.FAILED, 1)
    return Commands("e", record=record, finished=True, final_runs=runs)


def test_a_report_is_bounded() -> None:
    large = ended(reports.NODES_MAX, input=json.dumps("x" * reports.INPUT_BYTES_MAX).encode())
    report = json.loads(reports.report_of(large))
    assert list(report["nodes"]) == ["bad"]
    assert report["input"] is None


def test_a_report_has_no_character_that_postgresql_refuses() -> None:
    report = reports.report_of(ended(0, input=b'{"a":"\\u0000"}'))
    assert b"\\u0000" not in report
    assert json.loads(report)["input"] == {"a": "\ufffd"}


def test_the_views_of_postgresql_show_executions_and_nodes() -> None:
    database = database_url()

    async def scenario() -> str:
        settings = Settings(store=redis_url(), database=database)
        async with penstock.Engine(settings=settings) as engine:
            started = await engine.start(
                DOCUMENT, input={"order": 17, "nul": "\\u0000"}, labels={"team": "x"}
            )
            await started.result()
            await until(
                lambda: rows_in(database, "SELECT * FROM penstock_nodes"),
                "the execution is archived",
            )
            return started.execution_id

    execution_id = asyncio.run(scenario())
    (execution,) = rows_in(database, "SELECT * FROM penstock_executions")
    assert (execution["execution_id"], execution["workflow"], execution["version"]) == (
        execution_id,
        "report",
        1,
    )
    assert (execution["state"], execution["error_node"], execution["error_message"]) == (
        "FAILED",
        "a.b",
        "no luck",
    )
    assert (execution["input"]["order"], execution["labels"]) == (17, {"team": "x"})
    assert execution["created_at"] <= execution["started_at"] <= execution["finished_at"]
    nodes = {row["node_id"]: row for row in rows_in(database, "SELECT * FROM penstock_nodes")}
    assert {node: (row["state"], row["attempts"]) for node, row in nodes.items()} == {
        "fetch": ("COMPLETED", 2),
        "a.b": ("FAILED", 1),
        "after": ("SKIPPED", 0),
    }
    assert (nodes["a.b"]["error_category"], nodes["a.b"]["error_message"]) == ("handler", "no luck")
    assert rows_in(
        database, "SELECT 1 AS one FROM penstock_executions WHERE input ->> 'order' = '17'"
    ) == [{"one": 1}]


def rows_in(database: str, query: LiteralString) -> list[dict[str, Any]]:
    with psycopg.connect(database, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute(query).fetchall()
