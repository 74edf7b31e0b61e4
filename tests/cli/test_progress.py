"""What a row says about a node that is tried again."""

from __future__ import annotations

import pytest

from penstock.cli.progress import Row

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
