"""Searching executions: one page, the newest first, read from indexes that end in `n`.

A search runs in lanes. A lane is a part of an index in which everything stands in the order of `n`,
so its page is found without sorting and without reading what isn't asked for: one state, one state
of one workflow, one label. The pages of the lanes together have the page that is wanted. Other
filters are looked at row by row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.engine.states import ExecutionState
from penstock.stores.matching import lowered
from penstock.stores.partial import record_of
from penstock.stores.records import ExecutionRow, Search
from penstock.stores.sqlite.reader import HAS_CHANGES, NUMBER_MAX

PENDING, RUNNING = str(ExecutionState.PENDING), str(ExecutionState.RUNNING)
SELECT_ROW = """
    SELECT n, id, workflow, version, state, created_at, ended_at, labels, retry_of, CASE WHEN ended_at IS NULL
      THEN (SELECT change FROM changes WHERE changes.n = executions.n ORDER BY changes.id LIMIT 1)
      ELSE (SELECT change FROM changes WHERE changes.n = executions.n ORDER BY changes.id DESC LIMIT 1) END
    FROM executions WHERE n = ?
"""
LABELLED = "EXISTS (SELECT 1 FROM labels WHERE key = ? AND value = ? AND labels.n = executions.n)"
HAS_TEXT = "(instr(lower(id), ?) OR instr(lower(workflow), ?))"

Condition = tuple[str, tuple[Any, ...]]
IndexRange = tuple[str, list[Condition]]
"""Rows that one index gives in order: from where, and which."""


def find(
    connection: sqlite3.Connection, search: Search, between: Iterable[tuple[str, int]]
) -> list[ExecutionRow]:
    """Executions that a search finds; `between` is what its times say about `n`."""
    common = [*((text, (value,)) for text, value in between), *_common(search)]
    numbers: list[int] = []
    for source, conditions in _index_ranges(search):
        wanted = [*conditions, *common]
        where = " AND ".join(text for text, _ in wanted) or "1"
        values = [value for _, some in wanted for value in some]
        statement = f"SELECT n FROM {source} WHERE {where} ORDER BY n DESC LIMIT ?"  # noqa: S608 -- our own words
        numbers += [n for (n,) in connection.execute(statement, (*values, search.limit))]
    numbers.sort(reverse=True)
    return [_row(connection.execute(SELECT_ROW, (n,)).fetchone()) for n in numbers[: search.limit]]


def _common(search: Search) -> Iterable[Condition]:
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
    states = _states(search.states)
    if search.workflow is None:
        return [("executions INDEXED BY by_state", [state]) for state in states] or [
            ("executions", [])
        ]
    of_workflow = ("workflow = ?", (search.workflow,))
    index_ranges: list[IndexRange] = []
    for state in states or [("state = ?", (str(each),)) for each in ExecutionState]:
        if state[1] == (RUNNING,):
            index_ranges.append(("executions INDEXED BY by_state", [state, of_workflow]))
        else:
            index_ranges.append(
                (
                    "executions INDEXED BY by_workflow",
                    [of_workflow, state, ("state <> 'RUNNING'", ())],
                )
            )
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
    states = _states(search.states)
    if states:
        text = " OR ".join(text for text, _ in states)
        conditions.append((f"({text})", tuple(value for _, some in states for value in some)))
    return source, conditions


def _states(wanted: tuple[str, ...]) -> list[Condition]:
    """Conditions for execution states: a row is RUNNING once it should run.

    Without changes it is shown as PENDING.
    """
    conditions: list[Condition] = [
        ("state = ?", (state,)) for state in dict.fromkeys(wanted) if state != RUNNING
    ]
    if RUNNING in wanted or PENDING in wanted:
        text = "state = ?"
        if PENDING not in wanted:
            text += f" AND {HAS_CHANGES}"
        elif RUNNING not in wanted:
            text += f" AND NOT {HAS_CHANGES}"
        conditions.append((text, (RUNNING,)))
    return conditions


def _row(values: tuple[Any, ...]) -> ExecutionRow:
    n, name, workflow, version, state, created_at, ended_at, labels, retry_of, change = values
    row = ExecutionRow(
        n, name, workflow, version, state, created_at, finished_at=ended_at, retry_of=retry_of
    )
    if labels is not None:
        row.labels = msgspec.json.decode(labels)
    if change is None and state == RUNNING:
        row.state = PENDING
    record = record_of(change) if change is not None else None
    if record is not None:
        row.started_at, row.error, row.error_node_id = (
            record.started_at,
            record.error,
            record.error_node_id,
        )
    return row
