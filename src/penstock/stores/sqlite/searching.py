"""Searching executions in the file: a page of numbers from each index range, then their rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.stores.partial import record_of
from penstock.stores.records import ExecutionRow, Search
from penstock.stores.sql.conditions import Condition, conjunction
from penstock.stores.sql.searching import SearchDialect, index_ranges, row_conditions
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)

DIALECT = SearchDialect(
    by_state="executions INDEXED BY by_state",
    by_workflow="executions INDEXED BY by_workflow",
    by_origin="executions INDEXED BY by_origin",
    by_label="labels CROSS JOIN executions USING (n)",
    has_label="key = ? AND value = ?",
    label_values=lambda key, value: (key, value),
    has_text="(instr(lower(id), ?) OR instr(lower(workflow), ?))",
)


def find(
    connection: sqlite3.Connection, search: Search, between: Iterable[tuple[str, int]]
) -> list[ExecutionRow]:
    """Executions that a search finds; `between` are conditions on `n` that its times imply."""
    common: list[Condition] = [(text, (value,)) for text, value in between]
    common += row_conditions(search, DIALECT)

    numbers: list[int] = []
    for source, range_conditions in index_ranges(search, DIALECT):
        where, values = conjunction([*range_conditions, *common], "?")
        statement = f"SELECT n FROM {source} WHERE {where} ORDER BY n DESC LIMIT ?"  # noqa: S608
        numbers += [n for (n,) in connection.execute(statement, (*values, search.limit))]

    numbers.sort(reverse=True)
    rows: list[ExecutionRow] = []
    for n in numbers[: search.limit]:
        columns = connection.execute(SQL.select_row, (n,)).fetchone()
        rows.append(_decode_row(columns))
    return rows


def _decode_row(columns: tuple[Any, ...]) -> ExecutionRow:
    (
        n,
        execution_id,
        workflow,
        version,
        state,
        created_at,
        ended_at,
        labels,
        retry_of,
        change,
    ) = columns
    row = ExecutionRow(
        n,
        execution_id,
        workflow,
        version,
        state,
        created_at,
        finished_at=ended_at,
        retry_of=retry_of,
    )
    if labels is not None:
        row.labels = msgspec.json.decode(labels)
    record = record_of(change) if change is not None else None
    if record is not None:
        row.started_at = record.started_at
        row.error = record.error
        row.error_node_id = record.error_node_id
    return row
