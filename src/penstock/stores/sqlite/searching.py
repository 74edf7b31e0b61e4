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
from penstock.stores.phases import PHASES, Phase
from penstock.stores.records import ExecutionRow, Search
from penstock.stores.sqlite.reader import NUMBER_MAX

Condition = tuple[str, tuple[Any, ...]]
IndexRange = tuple[str, list[Condition]]
"""Rows that one index has in order: the table with its index, and conditions."""

SOON_LEFT = ((Phase.STARTED, ExecutionState.PENDING), (Phase.STARTED, ExecutionState.RUNNING))
"""Phases and states that executions soon leave: the index by_workflow doesn't have them."""
IN_BY_WORKFLOW: Condition = ("(phase <> 'started' OR state = 'PAUSED')", ())
"""The condition of the index by_workflow: with it, a state says the phase too."""
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
    if search.workflow is None and not search.states:
        return [("executions", [])]

    index_ranges: list[IndexRange] = []
    for phase, state in _phases_and_states(search.states):
        if search.workflow is None or (phase, state) in SOON_LEFT:
            source = "executions INDEXED BY by_state"
            conditions: list[Condition] = [("phase = ? AND state = ?", (str(phase), str(state)))]
            if search.workflow is not None:
                conditions.append(("workflow = ?", (search.workflow,)))
        else:
            source = "executions INDEXED BY by_workflow"
            values = (search.workflow, str(state))
            conditions = [("workflow = ? AND state = ?", values), IN_BY_WORKFLOW]
        index_ranges.append((source, conditions))
    return index_ranges


def _phases_and_states(states: tuple[str, ...]) -> Iterable[tuple[Phase, str]]:
    """Phases and states of executions that are in one of these states; without states, all."""
    for state in dict.fromkeys(states or ExecutionState):
        for phase in PHASES.get(state, ()):
            yield phase, state


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
    if search.states:
        marks = ", ".join("?" * len(search.states))
        conditions.append((f"state IN ({marks})", tuple(map(str, search.states))))
    return source, conditions


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
