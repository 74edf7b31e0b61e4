"""Searching executions: one page, the newest first.

A search reads one or several index ranges, as in SQLite. An index range is a part of an index that
is in the order of `n` (one state, one state of one workflow, one label), so a page of it is read
without sorting. The pages of all ranges together contain the page of the search. Other filters are
applied row by row.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.stores.matching import label_text, lowered
from penstock.stores.postgres.database import NUMBER_MAX, Row
from penstock.stores.postgres.texts import digest, unescaped
from penstock.stores.records import ExecutionRow, Search

PENDING = str(ExecutionState.PENDING)
RUNNING = str(ExecutionState.RUNNING)
COLUMNS = """
    n, id, workflow, version, state, generation, created_at, started_at, ended_at,
    labels, error, error_node, retry_of
"""
LABELLED = "EXISTS (SELECT 1 FROM labels WHERE label = %s AND labels.n = executions.n)"
HAS_TEXT = "(strpos(lower(id), %s) > 0 OR strpos(lower(workflow), %s) > 0)"

Condition = tuple[str, tuple[Any, ...]]
IndexRange = tuple[str, list[Condition]]
"""Rows that one index has in order: the table, and conditions."""

_error_decoder = msgspec.msgpack.Decoder(TaskError)


def label_digest(key: str, value: Any) -> bytes:
    return digest(key, label_text(value))


def statement_of(search: Search) -> tuple[str, list[Any]]:
    """The statement of a search, and its values."""
    common = list(_row_conditions(search))
    pages: list[str] = []
    values: list[Any] = []
    for source, range_conditions in _index_ranges(search):
        conditions = [*range_conditions, *common]
        where = " AND ".join(text for text, _ in conditions) or "true"
        page = f"SELECT {COLUMNS} FROM {source} WHERE {where} ORDER BY n DESC LIMIT %s"  # noqa: S608
        pages.append(f"({page})")
        for _, condition_values in conditions:
            values += condition_values
        values.append(search.limit)

    union = " UNION ALL ".join(pages)
    statement = f"SELECT * FROM ({union}) AS found ORDER BY n DESC LIMIT %s"  # noqa: S608
    values.append(search.limit)
    return statement, values


def row_of(row: Row) -> ExecutionRow:
    (
        n,
        execution_id,
        workflow,
        version,
        state,
        generation,
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
        PENDING if state == RUNNING and not generation else state,
        created_at,
        started_at,
        ended_at,
        {} if labels is None else msgspec.json.decode(labels),
        None if error is None else _error_decoder.decode(error),
        None if error_node_id is None else unescaped(error_node_id),
        retry_of,
    )


def _row_conditions(search: Search) -> Iterable[Condition]:
    """Conditions that are applied row by row."""
    if search.before is not None:
        yield "n < %s", (min(search.before, NUMBER_MAX),)
    if search.version is not None:
        yield "version = %s", (search.version,)
    if search.since is not None:
        yield "created_at >= %s", (search.since,)
    if search.until is not None:
        yield "created_at < %s", (search.until,)
    if search.text is not None:
        yield HAS_TEXT, (lowered(search.text), lowered(search.text))


def _index_ranges(search: Search) -> list[IndexRange]:
    if search.retry_of is not None or search.labels:
        return [_small_range(search)]
    states = _state_conditions(search.states)
    if search.workflow is None:
        if not states:
            return [("executions", [])]
        return [("executions", [state]) for state in states]

    if not states:
        states = [("state = %s", (str(state),)) for state in ExecutionState]
    of_workflow = ("workflow = %s", (search.workflow,))
    index_ranges: list[IndexRange] = []
    for state in states:
        conditions: list[Condition] = [of_workflow, state]
        if state[1] != (RUNNING,):
            # else the planner couldn't tell that the index by_workflow has all these rows
            conditions.append(("state <> 'RUNNING'", ()))
        index_ranges.append(("executions", conditions))
    return index_ranges


def _small_range(search: Search) -> IndexRange:
    """The index range of an origin or a label: few executions have the same."""
    conditions: list[Condition] = []
    labels = [(label_digest(*label),) for label in search.labels.items()]
    if search.retry_of is not None:
        source = "executions"
        conditions.append(("retry_of = %s", (search.retry_of,)))
    else:
        source = "labels JOIN executions USING (n)"
        conditions.append(("label = %s", labels.pop()))
    conditions += [(LABELLED, label) for label in labels]
    if search.workflow is not None:
        conditions.append(("workflow = %s", (search.workflow,)))
    states = _state_conditions(search.states)
    if states:
        text = " OR ".join(text for text, _ in states)
        values = tuple(chain.from_iterable(state_values for _, state_values in states))
        conditions.append((f"({text})", values))
    return source, conditions


def _state_conditions(states: tuple[str, ...]) -> list[Condition]:
    """Conditions for execution states.

    A row is RUNNING once the execution should run. Without a copy it counts as PENDING.
    """
    conditions: list[Condition] = [
        ("state = %s", (state,)) for state in dict.fromkeys(states) if state != RUNNING
    ]
    if RUNNING in states or PENDING in states:
        text = "state = %s"
        if PENDING not in states:
            text += " AND generation > 0"
        elif RUNNING not in states:
            text += " AND generation = 0"
        conditions.append((text, (RUNNING,)))
    return conditions
