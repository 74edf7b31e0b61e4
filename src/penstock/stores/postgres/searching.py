"""Searching executions: one page, the newest first.

A search runs in lanes, as in SQLite: a lane is a part of an index in which everything stands in the
order of `n` (one state, one state of one workflow, one label), so its page is found without
sorting. The pages of the lanes together have the page that is wanted; other filters are looked at
row by row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.engine.events import TaskError
from penstock.engine.states import ExecutionState
from penstock.stores.matching import label_text, lowered
from penstock.stores.postgres.database import NUMBER_MAX, Row
from penstock.stores.postgres.texts import digest, unescaped
from penstock.stores.records import ExecutionRow, Search

PENDING, RUNNING = str(ExecutionState.PENDING), str(ExecutionState.RUNNING)
COLUMNS = "n, id, workflow, version, state, generation, created_at, started_at, ended_at, labels, error, error_node, retry_of"
LABELLED = "EXISTS (SELECT 1 FROM labels WHERE label = %s AND labels.n = executions.n)"
HAS_TEXT = "(strpos(lower(id), %s) > 0 OR strpos(lower(workflow), %s) > 0)"

Condition = tuple[str, tuple[Any, ...]]
IndexRange = tuple[str, list[Condition]]
"""Rows that one index gives in order: from where, and which."""

_error_decoder = msgspec.msgpack.Decoder(TaskError)


def label_digest(key: str, value: Any) -> bytes:
    return digest(key, label_text(value))


def statement_of(search: Search) -> tuple[str, list[Any]]:
    common = list(_common(search))
    parts: list[str] = []
    values: list[Any] = []
    for source, conditions in _index_ranges(search):
        wanted = [*conditions, *common]
        where = " AND ".join(text for text, _ in wanted) or "true"
        parts.append(f"(SELECT {COLUMNS} FROM {source} WHERE {where} ORDER BY n DESC LIMIT %s)")  # noqa: S608 -- our own words
        values += [value for _, some in wanted for value in some]
        values.append(search.limit)
    union = " UNION ALL ".join(parts)
    return f"SELECT * FROM ({union}) AS found ORDER BY n DESC LIMIT %s", [*values, search.limit]  # noqa: S608


def row_of(row: Row) -> ExecutionRow:
    (
        n,
        name,
        workflow,
        version,
        state,
        generation,
        created_at,
        started_at,
        ended_at,
        labels,
        error,
        node,
        origin,
    ) = row
    return ExecutionRow(
        n,
        name,
        workflow,
        version,
        PENDING if state == RUNNING and not generation else state,
        created_at,
        started_at,
        ended_at,
        {} if labels is None else msgspec.json.decode(labels),
        None if error is None else _error_decoder.decode(error),
        None if node is None else unescaped(node),
        origin,
    )


def _common(search: Search) -> Iterable[Condition]:
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
    states = _states(search.states)
    if search.workflow is None:
        return [("executions", [state]) for state in states] or [("executions", [])]
    of_workflow = ("workflow = %s", (search.workflow,))
    index_ranges: list[IndexRange] = []
    for state in states or [("state = %s", (str(each),)) for each in ExecutionState]:
        # spelled out, or the planner couldn't tell that by_workflow has all of it
        outside = [] if state[1] == (RUNNING,) else [("state <> 'RUNNING'", ())]
        index_ranges.append(("executions", [of_workflow, state, *outside]))
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
    states = _states(search.states)
    if states:
        text = " OR ".join(text for text, _ in states)
        conditions.append((f"({text})", tuple(value for _, some in states for value in some)))
    return source, conditions


def _states(wanted: tuple[str, ...]) -> list[Condition]:
    """Conditions for execution states: a row is RUNNING once it should run.

    Without a copy it is shown as PENDING.
    """
    conditions: list[Condition] = [
        ("state = %s", (state,)) for state in dict.fromkeys(wanted) if state != RUNNING
    ]
    if RUNNING in wanted or PENDING in wanted:
        text = "state = %s"
        if PENDING not in wanted:
            text += " AND generation > 0"
        elif RUNNING not in wanted:
            text += " AND generation = 0"
        conditions.append((text, (RUNNING,)))
    return conditions
