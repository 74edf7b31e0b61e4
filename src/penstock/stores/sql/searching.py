"""Searching executions: one page, the newest first, read from indexes that end in `n`.

A search reads one or several index ranges. An index range is a part of an index that is in the
order of `n`, such as one state, one state of one workflow, or one label. So a page of it is read
without sorting, and without rows that don't match. The pages of all ranges together contain the
page of the search. Other filters are applied row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from penstock.engine.states import ExecutionState
from penstock.stores.matching import lowered
from penstock.stores.phases import PHASES, Phase
from penstock.stores.records import Search
from penstock.stores.sql.conditions import Condition, clamped, given

SOON_LEFT = ((Phase.STARTED, ExecutionState.PENDING), (Phase.STARTED, ExecutionState.RUNNING))
"""Phases and states that executions soon leave: the index by_workflow doesn't have them."""
IN_BY_WORKFLOW: Condition = ("(phase <> 'started' OR state = 'PAUSED')", ())
"""The condition of the index by_workflow: with it, a state says the phase too."""


class IndexRange(NamedTuple):
    """Rows that one index has in order."""

    source: str
    conditions: list[Condition]


class SearchDialect(NamedTuple):
    """How a database is asked to read an index range, and what its conditions are."""

    by_state: str
    """The table, with the index if the planner has to be told; and so the others."""
    by_workflow: str
    by_origin: str
    by_label: str
    has_label: str
    """The condition on a row of the table `labels`."""
    label_values: Callable[[str, Any], tuple[Any, ...]]
    """The values of that condition, for a label's key and value."""
    has_text: str
    """The condition that the id or the workflow contains a text, given twice."""


def index_ranges(search: Search, dialect: SearchDialect) -> list[IndexRange]:
    """Index ranges that contain every page of a search; none if nothing can match it."""
    if search.retry_of is not None or search.labels:
        return [_small_range(search, dialect)]
    if search.workflow is None and not search.states:
        return [IndexRange("executions", [])]

    ranges: list[IndexRange] = []
    for phase, state in _phases_and_states(search.states):
        if search.workflow is None or (phase, state) in SOON_LEFT:
            conditions: list[Condition] = [("phase = ? AND state = ?", (str(phase), str(state)))]
            if search.workflow is not None:
                conditions.append(("workflow = ?", (search.workflow,)))
            ranges.append(IndexRange(dialect.by_state, conditions))
        else:
            values = (search.workflow, str(state))
            conditions = [("workflow = ? AND state = ?", values), IN_BY_WORKFLOW]
            ranges.append(IndexRange(dialect.by_workflow, conditions))
    return ranges


def row_conditions(search: Search, dialect: SearchDialect) -> Iterable[Condition]:
    """Conditions that are applied row by row."""
    yield from given(
        {
            "n < ?": clamped(search.before),
            "version = ?": search.version,
            "created_at >= ?": search.since,
            "created_at < ?": search.until,
        }
    )
    if search.text is not None:
        yield dialect.has_text, (lowered(search.text), lowered(search.text))


def _phases_and_states(states: tuple[str, ...]) -> Iterable[tuple[Phase, str]]:
    """Phases and states of executions that are in one of these states; without states, all."""
    for state in dict.fromkeys(states or ExecutionState):
        for phase in PHASES.get(state, ()):
            yield phase, state


def _small_range(search: Search, dialect: SearchDialect) -> IndexRange:
    """The index range of an origin or a label: few executions have the same."""
    conditions: list[Condition] = []
    labels = [dialect.label_values(*label) for label in search.labels.items()]
    if search.retry_of is not None:
        source = dialect.by_origin
        conditions.append(("retry_of = ?", (search.retry_of,)))
    else:
        source = dialect.by_label
        conditions.append((dialect.has_label, labels.pop()))
    other_label = (
        f"EXISTS (SELECT 1 FROM labels WHERE {dialect.has_label} AND labels.n = executions.n)"  # noqa: S608
    )
    conditions += [(other_label, label) for label in labels]
    if search.workflow is not None:
        conditions.append(("workflow = ?", (search.workflow,)))
    if search.states:
        marks = ", ".join("?" * len(search.states))
        conditions.append((f"state IN ({marks})", tuple(map(str, search.states))))
    return IndexRange(source, conditions)
