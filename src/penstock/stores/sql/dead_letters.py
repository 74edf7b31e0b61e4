"""Dead letters as rows, and the conditions of a search for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.stores import codec
from penstock.stores.records import DeadLetterRow, DeadLetterSearch
from penstock.stores.sql.conditions import Condition, clamped, given


def conditions(search: DeadLetterSearch, escape: Callable[[str], str]) -> Iterable[Condition]:
    """`escape` makes of a text what the database holds of it."""
    yield from given(
        {
            "workflow = ?": search.workflow,
            "handler = ?": None if search.handler is None else escape(search.handler),
            "category = ?": None if search.category is None else escape(search.category),
            "dead_letters.n = (SELECT n FROM executions WHERE id = ?)": search.execution_id,
            "dead_letters.id < ?": clamped(search.before),
        }
    )
    if not search.closed:
        yield "closed IS NULL", ()


def decode_row(dead_letter_id: int, dead_letter: bytes, *columns: Any) -> DeadLetterRow:
    return DeadLetterRow(dead_letter_id, codec.decode_dead_letter(dead_letter), *columns)
