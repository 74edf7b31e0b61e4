"""Searching executions: one page, the newest first.

A search reads one or several index ranges, as in SQLite. An index range is a part of an index that
is in the order of `n` (one state, one state of one workflow, one label), so a page of it is read
without sorting. The pages of all ranges together contain the page of the search. Other filters are
applied row by row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.stores.matching import label_text, lowered
from penstock.stores.phases import PHASES, Phase
from penstock.stores.postgres.database import NUMBER_MAX, Row
from penstock.stores.postgres.texts import digest, unescaped
from penstock.stores.records import ExecutionRow, Search

Condition = tuple[str, tuple[Any, ...]]
IndexRange = tuple[str, list[Condition]]
"""Rows that one index has in order: the table, and conditions."""

SOON_LEFT = ((Phase.STARTED, ExecutionState.PENDING), (Phase.STARTED, ExecutionState.RUNNING))
"""Phases and states that executions soon leave: the index by_workflow doesn't have them."""
IN_BY_WORKFLOW: Condition = ("(phase <> 'started' OR state = 'PAUSED')", ())
"""The condition of the index by_workflow: with it, a state says the phase too."""
COLUMNS = """
    n, id, workflow, version, state, created_at, started_at, ended_at,
    labels, error, error_node, retry_of
"""
LABELLED = "EXISTS (SELECT 1 FROM labels WHERE label = %s AND labels.n = executions.n)"
HAS_TEXT = "(strpos(lower(id), %s) > 0 OR strpos(lower(workflow), %s) > 0)"

_error_decoder = msgspec.msgpack.Decoder(TaskError)


def label_digest(key: str, value: Any) -> bytes:
    return digest(key, label_text(value))


def statement_of(search: Search) -> tuple[str, list[Any]] | None:
    """The statement of a search, and its values. None if no execution can match it."""
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

    if not pages:
        return None
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
    if search.workflow is None and not search.states:
        return [("executions", [])]

    index_ranges: list[IndexRange] = []
    for phase, state in _phases_and_states(search.states):
        if search.workflow is None or (phase, state) in SOON_LEFT:
            source = "executions"
            conditions: list[Condition] = [("phase = %s AND state = %s", (str(phase), str(state)))]
            if search.workflow is not None:
                conditions.append(("workflow = %s", (search.workflow,)))
        else:
            source = "executions"
            values = (search.workflow, str(state))
            conditions = [("workflow = %s AND state = %s", values), IN_BY_WORKFLOW]
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
    if search.states:
        marks = ", ".join(["%s"] * len(search.states))
        conditions.append((f"state IN ({marks})", tuple(map(str, search.states))))
    return source, conditions
