"""Searching executions: one page, the newest first, read from indexes that end in `n`.

A search reads one or several index ranges. An index range is a part of an index that is in the
order of `n`, such as one state, one state of one workflow, or one label. So a page of it is read
without sorting, and without rows that don't match. The pages of all ranges together contain the
page of the search. Other filters are applied row by row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from penstock.engine.states import ExecutionState
from penstock.stores.matching import lowered
from penstock.stores.partial import record_of
from penstock.stores.records import ExecutionRow, Search
from penstock.stores.sqlite.reader import HAS_CHANGES, NUMBER_MAX

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)
SELECT_ROW = """
    SELECT n, id, workflow, version, state, created_at, ended_at, labels, retry_of,
      CASE WHEN ended_at IS NULL
      THEN (
        SELECT change FROM changes WHERE changes.n = executions.n
        ORDER BY changes.id LIMIT 1
      )
      ELSE (
        SELECT change FROM changes WHERE changes.n = executions.n
        ORDER BY changes.id DESC LIMIT 1
      ) END
    FROM executions WHERE n = ?
"""
LABELLED = "EXISTS (SELECT 1 FROM labels WHERE key = ? AND value = ? AND labels.n = executions.n)"
HAS_TEXT = "(instr(lower(id), ?) OR instr(lower(workflow), ?))"

Condition = tuple[str, tuple[Any, ...]]
IndexRange = tuple[str, list[Condition]]
"""Rows that one index has in order: the table with its index, and conditions."""


def find(
    connection: sqlite3.Connection, search: Search, between: Iterable[tuple[str, int]]
) -> list[ExecutionRow]:
    """Executions that a search finds; `between` are conditions on `n` that its times imply."""
    common: list[Condition] = [(text, (value,)) for text, value in between]
    common += _row_conditions(search)

    numbers: list[int] = []
    for source, range_conditions in _index_ranges(search):
        conditions = [*range_conditions, *common]
        where = " AND ".join(text for text, _ in conditions) or "1"
        values = chain.from_iterable(condition_values for _, condition_values in conditions)
        statement = f"SELECT n FROM {source} WHERE {where} ORDER BY n DESC LIMIT ?"  # noqa: S608
        numbers += [n for (n,) in connection.execute(statement, (*values, search.limit))]

    numbers.sort(reverse=True)
    rows: list[ExecutionRow] = []
    for n in numbers[: search.limit]:
        columns = connection.execute(SELECT_ROW, (n,)).fetchone()
        rows.append(_decode_row(columns))
    return rows


def _row_conditions(search: Search) -> Iterable[Condition]:
    """Conditions that are applied row by row."""
    if search.before is not None:
        yield "n < ?", (min(search.before, NUMBER_MAX),)
    if search.version is not None:
        yield "version = ?", (search.version,)
    if search.since is not None:
        yield "created_at >= ?", (search.since,)
    if search.until is not None:
        yield "created_at < ?", (search.until,)
    if search.text is not None:
        yield HAS_TEXT, (lowered(search.text), lowered(search.text))


def _index_ranges(search: Search) -> list[IndexRange]:
    if search.retry_of is not None or search.labels:
        return [_small_range(search)]
    states = _state_conditions(search.states)
    if search.workflow is None:
        if not states:
            return [("executions", [])]
        return [("executions INDEXED BY by_state", [state]) for state in states]

    if not states:
        states = [("state = ?", (str(state),)) for state in ExecutionState]
    of_workflow = ("workflow = ?", (search.workflow,))
    index_ranges: list[IndexRange] = []
    for state in states:
        if state[1] == (RUNNING,):
            index_ranges.append(("executions INDEXED BY by_state", [state, of_workflow]))
        else:
            # the index has no RUNNING executions: the condition says that it can be used
            conditions: list[Condition] = [of_workflow, state, ("state <> 'RUNNING'", ())]
            index_ranges.append(("executions INDEXED BY by_workflow", conditions))
    return index_ranges


def _small_range(search: Search) -> IndexRange:
    """The index range of an origin or a label: few executions have the same."""
    conditions: list[Condition] = []
    labels = list(search.labels.items())
    if search.retry_of is not None:
        source = "executions INDEXED BY by_origin"
        conditions.append(("retry_of = ?", (search.retry_of,)))
    else:
        source = "labels CROSS JOIN executions USING (n)"
        conditions.append(("key = ? AND value = ?", labels.pop()))
    conditions += [(LABELLED, label) for label in labels]
    if search.workflow is not None:
        conditions.append(("workflow = ?", (search.workflow,)))
    states = _state_conditions(search.states)
    if states:
        text = " OR ".join(text for text, _ in states)
        values = tuple(chain.from_iterable(state_values for _, state_values in states))
        conditions.append((f"({text})", values))
    return source, conditions


def _state_conditions(states: tuple[str, ...]) -> list[Condition]:
    """Conditions for execution states.

    A row is RUNNING once the execution should run. Without changes it counts as PENDING.
    """
    conditions: list[Condition] = [
        ("state = ?", (state,)) for state in dict.fromkeys(states) if state != RUNNING
    ]
    if RUNNING in states or PENDING in states:
        text = "state = ?"
        if PENDING not in states:
            text += f" AND {HAS_CHANGES}"
        elif RUNNING not in states:
            text += f" AND NOT {HAS_CHANGES}"
        conditions.append((text, (RUNNING,)))
    return conditions


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
    if change is None and state == RUNNING:
        row.state = PENDING
    record = record_of(change) if change is not None else None
    if record is not None:
        row.started_at = record.started_at
        row.error = record.error
        row.error_node_id = record.error_node_id
    return row
