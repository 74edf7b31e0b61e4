"""Slots of schedules as rows, and the search for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.stores.schedules import SlotRow, SlotSearch

COLUMNS = "slot, at, outcome, reason, execution_id, recorded_at"


def search_statement(search: SlotSearch, mark: str) -> tuple[str, tuple[Any, ...]]:
    """The statement of a search, and its values. `mark` stands for a value in this dialect."""
    conditions = [f"schedule_id = {mark}"]
    values: list[Any] = [search.schedule_id]
    if search.outcome is not None:
        conditions.append(f"outcome = {mark}")
        values.append(search.outcome)
    if search.before is not None:
        conditions.append(f"(at, slot) < ({mark}, {mark})")
        values += search.before
    order = "at, slot" if search.oldest_first else "at DESC, slot DESC"
    statement = f"""
        SELECT {COLUMNS} FROM slots WHERE {" AND ".join(conditions)} ORDER BY {order} LIMIT {mark}
    """  # noqa: S608 -- our own words
    return statement, (*values, search.limit)


def decode_slot(row: tuple[Any, ...], unescape: Callable[[str], str]) -> SlotRow:
    """The slot of a row that has `COLUMNS`."""
    slot, at, outcome, reason, execution_id, recorded_at = row
    return SlotRow(
        slot=slot,
        at=at,
        outcome=outcome,
        reason=None if reason is None else unescape(reason),
        execution_id=execution_id,
        recorded_at=recorded_at,
    )
