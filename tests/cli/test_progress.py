"""What a row says about a node that is tried again."""

from __future__ import annotations

import pytest

from penstock.cli.progress import Progress, Row, rows_of_plan
from penstock.definition.plan import compile_document

NOW = 1_000.0


@pytest.mark.parametrize(
    ("due_at", "note"),
    [
        (NOW + 90, "again in 1 min 30 s: no answer"),
        (NOW + 0.5, "again in 500 ms: no answer"),
        (NOW - 0.1, "again now: no answer"),
        (None, "to be tried again: no answer"),
    ],
)
def test_only_a_time_that_is_known_is_told(due_at: float | None, note: str):
    row = Row("a", state="RETRYING", due_at=due_at, message="no answer")
    assert row.note(NOW) == note


def test_a_map_is_one_row_with_the_counts_of_its_items() -> None:
    each = {"id": "each", "for_each": "{{ input.list }}", "handler": "noop"}
    plan = compile_document({"name": "w", "nodes": [each]}).plan
    progress = Progress(plan.name, rows_of_plan(plan), "e", NOW)
    at = "2026-01-31T12:00:00.000Z"
    line = {"seq": 1, "at": at, "node_id": "each", "from": "PENDING", "to": "WAITING"}
    progress.apply({**line, "attempt": 0, "reason": "3 items"})
    items = {"total": 3, "open": 1, "completed": 1, "failed": 1, "skipped": 0, "cancelled": 0}
    row = progress.apply({"execution_id": "e", "node_id": "each", "items": items})
    assert row is progress.rows["each"]
    assert row.note(NOW) == "1 of 3 items, 1 failed"
    assert not row.is_about_to_end
    progress.apply({"execution_id": "e", "node_id": "each", "items": {**items, "completed": 2}})
    assert row.is_about_to_end
    assert list(progress.rows) == ["each"]
