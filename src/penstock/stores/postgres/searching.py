"""Searching executions in PostgreSQL: one statement, which reads a page of each index range."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.engine.events import TaskError
from penstock.stores.matching import label_text
from penstock.stores.postgres.database import Row
from penstock.stores.postgres.texts import digest, unescaped
from penstock.stores.records import ExecutionRow, Search
from penstock.stores.sql.conditions import conjunction
from penstock.stores.sql.searching import SearchDialect, index_ranges, row_conditions

COLUMNS = """
    n, id, workflow, version, state, created_at, started_at, ended_at,
    labels, error, error_node, retry_of
"""

_error_decoder = msgspec.msgpack.Decoder(TaskError)


def label_digest(key: str, value: Any) -> bytes:
    return digest(key, label_text(value))


DIALECT = SearchDialect(
    by_state="executions",
    by_workflow="executions",
    by_origin="executions",
    by_label="labels JOIN executions USING (n)",
    has_label="label = ?",
    label_values=lambda key, value: (label_digest(key, value),),
    has_text="(strpos(lower(id), ?) > 0 OR strpos(lower(workflow), ?) > 0)",
)


def statement_of(search: Search) -> tuple[str, list[Any]] | None:
    """The statement of a search, and its values. None if no execution can match it."""
    common = list(row_conditions(search, DIALECT))
    pages: list[str] = []
    all_values: list[Any] = []
    for source, range_conditions in index_ranges(search, DIALECT):
        where, values = conjunction([*range_conditions, *common], "%s")
        page = f"SELECT {COLUMNS} FROM {source} WHERE {where} ORDER BY n DESC LIMIT %s"  # noqa: S608
        pages.append(f"({page})")
        all_values += [*values, search.limit]

    if not pages:
        return None
    union = " UNION ALL ".join(pages)
    statement = f"SELECT * FROM ({union}) AS matching ORDER BY n DESC LIMIT %s"  # noqa: S608
    return statement, [*all_values, search.limit]


def row_of(row: Row) -> ExecutionRow:
    (
        n,
        execution_id,
        workflow,
        version,
        state,
        created_at,
        started_at,
        ended_at,
        labels,
        error,
        error_node_id,
        retry_of,
    ) = row
    return ExecutionRow(
        n,
        execution_id,
        workflow,
        version,
        state,
        created_at,
        started_at,
        ended_at,
        {} if labels is None else msgspec.json.decode(labels),
        None if error is None else _error_decoder.decode(error),
        None if error_node_id is None else unescaped(error_node_id),
        retry_of,
    )
