"""What is read of the copies that move between a hot and a cold store."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.engine.commands import Ending, ExecutionRecord, Parent
from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.base import Intent
from penstock.stores.tiering import intent_from

COURSE: dict[str, Any] = {
    "state": ExecutionState.FAILED,
    "generation": 7,
    "started_at": 2.0,
    "finished_at": 3.0,
    "failing": True,
    "error": TaskError("http", "boom"),
    "error_node_id": "fetch",
    "added": [["more", "fetch", []]],
    "ending": Ending(ExecutionState.CANCELLED, "cancelled", 2.0),
    "paused_at": 2.5,
}
"""What happens to an execution after it was submitted."""
SUBMITTED: dict[str, Any] = {
    "first_execution_id": "first",
    "labels": {"team": "billing"},
    "overrides": {"fetch": {"url": "http://other"}},
    "priority": 3,
    "trace": "00-trace",
    "reused": 2,
    "retry_of": "before",
    "lenient_config": True,
    "started_by": "key_7",
    "parent": Parent("e0", "bill", 2, "root", 1),
    "pins": {"billing@stable": ("billing", 7)},
}
REQUIRED: dict[str, Any] = {
    "execution_id": "e1",
    "workflow": "report",
    "version": 2,
    "state": ExecutionState.PENDING,
    "input": b'{"x":1}',
    "created_at": 1.0,
}
KEY = ("scope", "key", "hash")


def test_the_intent_that_a_cold_store_has_lost_has_all_that_was_submitted() -> None:
    record = ExecutionRecord(**REQUIRED, **SUBMITTED, idempotency=KEY)
    for name, value in COURSE.items():
        setattr(record, name, value)
    changes = [codec.encode(codec.Change(codec.SCHEMA, record, [], {}, []))]

    intent = intent_from(changes)
    assert intent == Intent(
        ExecutionRecord(**REQUIRED, **SUBMITTED),
        key_scope="scope",
        idempotency_key="key",
        request_hash="hash",
        retry_of="before",
    )


def test_every_field_of_a_record_is_submitted_or_part_of_the_course() -> None:
    names = {field.name for field in msgspec.structs.fields(ExecutionRecord)}
    assert names == REQUIRED.keys() | COURSE.keys() | SUBMITTED.keys() | {"idempotency"}
