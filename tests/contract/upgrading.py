"""Stores that an earlier version has made, and what has to be in them after an upgrade."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from penstock.errors import Conflict
from penstock.stores.cold import ColdStore
from penstock.stores.records import DeadLetterSearch, Search

STATES: Mapping[str, set[str]] = {
    "PENDING": {"waiting", "unbegun", "triggered", "cancelled-unbegun", "retry"},
    "RUNNING": {"running", "pausing", "cancelling"},
    "PAUSED": {"paused", "resuming"},
    "COMPLETED": {"completed"},
    "FAILED": {"failed"},
    "CANCELLED": {"cancelled"},
}
UNBEGUN = STATES["PENDING"] - {"waiting"}
BEGUN = STATES["RUNNING"] | STATES["PAUSED"]
EVERYTHING = set[str]().union(*STATES.values())


def make_file_of_schema_4(path: Path) -> None:
    script = Path(__file__).with_name("store_of_schema_4.sql").read_text("utf-8")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def make_file_of_schema_3(path: Path) -> None:
    make_file_of_schema_4(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO handlers (name) VALUES ('old')")
        connection.execute("ALTER TABLE handlers DROP COLUMN defaults")
        connection.execute("UPDATE meta SET value = '3' WHERE key = 'schema'")


async def judge_reading(cold: ColdStore) -> None:
    """Raises `AssertionError` unless everything that was stored is read as it was."""
    for workflow in (None, "report"):
        assert await _found(cold, Search(workflow=workflow)) == EVERYTHING
        for state, execution_ids in STATES.items():
            found = await _found(cold, Search(workflow=workflow, states=(state,)))
            assert found == execution_ids, state
    assert await _found(cold, Search(labels={"team": "a"})) == {"waiting", "unbegun", "completed"}
    assert await _found(cold, Search(retry_of="failed", states=("PENDING",))) == {"retry"}
    assert await _found(cold, Search(states=("UNKNOWN",))) == set()

    assert await cold.counts.count_active(100) == {"PENDING": 5, "RUNNING": 3, "PAUSED": 2}
    assert await cold.counts.count_active(2) == {"PENDING": 2, "RUNNING": 2, "PAUSED": 2}
    assert await cold.counts.count_unfinished() == {"report": 9}
    assert await cold.executions.control_requests(0) == {
        "cancelled-unbegun": "cancel",
        "pausing": "pause",
        "resuming": "resume",
        "cancelling": "cancel",
    }
    await _judge_intents(cold)

    dead_letters = await cold.dead_letters.dead_letters(DeadLetterSearch(closed=True))
    assert [(row.dead_letter.node_id, row.closed, row.retried_as) for row in dead_letters] == [
        ("b", None, None),
        ("a", "retried", "retry"),
    ]
    assert await cold.counts.count_dead_letters(10) == 1
    assert await cold.executions.history("completed")


async def _judge_intents(cold: ColdStore) -> None:
    intents = await cold.executions.intents(EVERYTHING)
    assert intents.keys() == EVERYTHING
    assert {name for name, intent in intents.items() if intent.waits} == {"waiting"}
    assert intents["triggered"].record.input == b"[1]"
    assert intents["triggered"].record.overrides == {"a": {"x": 1}}
    assert [reused.output for reused in intents["retry"].reused] == [b"[1]"]
    key_use = await cold.executions.key_use("k1", "key")
    assert key_use is not None
    assert key_use.execution_id == "running"


async def judge_writing(cold: ColdStore) -> None:
    """Raises `AssertionError` unless executions of every kind go on as they would have."""
    for execution_id in EVERYTHING - {"waiting"}:
        with pytest.raises(Conflict):
            await cold.executions.trigger(execution_id, None, {})
    for execution_id in ("completed", "failed", "cancelled"):
        with pytest.raises(Conflict):
            await cold.executions.request_control(execution_id, "cancel")
    with pytest.raises(Conflict, match="paused already"):
        await cold.executions.request_control("paused", "pause")
    with pytest.raises(Conflict, match="hasn't been triggered"):
        await cold.executions.request_control("waiting", "pause")

    await cold.executions.request_control("paused", "resume")
    await cold.executions.trigger("waiting", b"[2]", {})
    intent = await cold.executions.intent("waiting")
    assert intent is not None
    assert (intent.waits, intent.record.input) == (False, b"[2]")
    assert await _found(cold, Search(states=("PENDING",))) == STATES["PENDING"]
    assert await cold.counts.count_unfinished() == {"report": 10}
    assert (await cold.executions.control_requests(0))["paused"] == "resume"


async def _found(cold: ColdStore, search: Search) -> set[str]:
    return {row.execution_id for row in await cold.executions.search(search)}
