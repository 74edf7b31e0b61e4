"""The progress of a watched execution: one row per node, updated by its live events.

It knows nothing about screens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from penstock.cli.ending import FailedNode
from penstock.cli.safe_text import duration, one_line
from penstock.definition.model import LOOP_HANDLER
from penstock.definition.plan import Plan
from penstock.engine.reasons import Reason, reason_text
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.views.executions import HistoryItem, LiveItems
from penstock.views.graphs import Graph
from penstock.views.nodes import ItemCounts
from penstock.views.times import seconds_of

ACTIVE = (NodeState.RUNNING, NodeState.RETRYING, NodeState.WAITING)
FAULTY = (NodeState.RETRYING, NodeState.FAILED)
ENDED = (NodeState.COMPLETED, NodeState.SKIPPED, NodeState.CANCELLED)


@dataclass(slots=True)
class Row:
    name: str
    handler: str = ""
    condition: str = ""
    attempts_max: int = 0
    optional: bool = False
    state: str = NodeState.PENDING
    attempt: int = 0
    started_at: float | None = None
    """When its first attempt started; retries don't change it."""
    changed_at: float | None = None
    due_at: float | None = None
    reason: str | None = None
    message: str = ""
    items: ItemCounts | None = None
    """Of a map or a loop: how its items stand."""

    @property
    def is_about_to_end(self) -> bool:
        """Whether it is a map of which every item has ended."""
        items = self.items
        if items is None or self.state != NodeState.WAITING or self.handler == LOOP_HANDLER:
            return False
        ended = items.completed + items.failed + items.skipped + items.cancelled
        return 0 < items.total == ended

    @property
    def failed_harmlessly(self) -> bool:
        """Whether the node failed, and is optional: nothing else fails because of it."""
        return self.optional and self.state == NodeState.FAILED

    def seconds(self, now: float) -> float | None:
        """How long it has run, or ran; None if it never did."""
        if self.started_at is None:
            return None
        if self.state in NODE_ENDS:
            return (self.changed_at or now) - self.started_at
        return now - self.started_at

    def note(self, now: float) -> str:
        if self.state == NodeState.RETRYING:
            return f"{self._when(now)}: {one_line(self.message or self.reason or '')}"
        if self.state == NodeState.FAILED:
            prefix = "optional: " if self.optional else ""
            return prefix + one_line(self.message or reason_text(self.reason))
        if self.reason == Reason.CANCELLED:
            return ""  # the state says it
        if self.reason == Reason.CONDITION_FALSE and self.condition:
            return f"{reason_text(self.reason)}: {one_line(self.condition)}"
        if self.items is not None:
            is_loop = self.handler == LOOP_HANDLER
            return items_note(self.items, "rounds" if is_loop else "items")
        return one_line(reason_text(self.reason))

    def _when(self, now: float) -> str:
        if self.due_at is None:
            return "to be tried again"
        if self.due_at > now:
            return f"again in {duration(self.due_at - now)}"
        return "again now"


def rows_of_plan(plan: Plan) -> list[Row]:
    rows: list[Row] = []
    for node in plan.nodes:
        condition = node.condition.source if node.condition else ""
        attempts_max = node.retry.max_attempts
        rows.append(Row(node.node_id, node.handler, condition, attempts_max, node.optional))
    return rows


def rows_of_graph(graph: Graph) -> list[Row]:
    """What a graph says of the nodes; how many attempts they may have isn't part of it."""
    return [
        Row(node.id, node.handler, node.condition or "", optional=node.optional)
        for node in graph.nodes
    ]


class Progress:
    def __init__(
        self, workflow: str, rows: Iterable[Row], execution_id: str, created_at: float
    ) -> None:
        self.workflow = workflow
        self.execution_id = execution_id
        self.state = "PENDING"
        self.started_at: float = created_at
        self.finished_at: float | None = None
        self.rows: dict[str, Row] = {row.name: row for row in rows}
        self.by_state: dict[str, dict[str, Row]] = {state: {} for state in NodeState}
        """The nodes of each state, in the order in which they entered it."""
        self.by_state[NodeState.PENDING] = dict(self.rows)
        self._failures: dict[tuple[str, int], tuple[str, float | None]] = {}

    @property
    def done(self) -> int:
        return sum(len(self.by_state[state]) for state in NODE_ENDS)

    def count(self, state: str) -> int:
        return len(self.by_state[state])

    @property
    def has_failures(self) -> bool:
        """Whether a node has failed that isn't optional."""
        failed = self.by_state[NodeState.FAILED].values()
        return any(not row.optional for row in failed)

    def seconds(self, now: float) -> float:
        return max(0.0, (self.finished_at or now) - self.started_at)

    def apply(self, event: Mapping[str, Any]) -> Row | None:
        """Apply one event; returns the node's row, or None for a line of the execution."""
        if "items" in event:
            return self._count_items(event)
        line = msgspec.convert(event, HistoryItem)
        at = seconds_of(line.at)
        if line.node_id is None:
            self._move_execution(line.after, at)
            return None

        row = self.rows.get(line.node_id)
        if row is None:
            # The execution gained this node while it runs.
            row = Row(line.node_id)
            self.rows[line.node_id] = row
        self._move(row, line.after)
        row.attempt = line.attempt
        row.reason = line.reason
        row.changed_at = at

        if row.state == NodeState.RETRYING and row.attempts_max:
            row.attempts_max = _attempts_max(row)
        self._explain(row)
        if row.state == NodeState.RUNNING:
            row.due_at = None
            row.message = ""
        has_begun = row.state in (NodeState.RUNNING, NodeState.WAITING)
        if has_begun and row.started_at is None:
            row.started_at = at
        return row

    def _count_items(self, event: Mapping[str, Any]) -> Row:
        counted = msgspec.convert(event, LiveItems)
        row = self.rows.setdefault(counted.node_id, Row(counted.node_id))
        row.items = counted.items
        return row

    def _move(self, row: Row, state: str) -> None:
        self.by_state[row.state].pop(row.name, None)
        row.state = state
        self.by_state[state][row.name] = row

    def _move_execution(self, state: str, at: float) -> None:
        if self.state == "PENDING":
            self.started_at = at
        self.state = state
        if state in ("COMPLETED", "FAILED", "CANCELLED"):
            self.finished_at = at

    def lacks(self, row: Row) -> bool:
        """Whether `learn` could add the message of this row's failure."""
        return row.state in FAULTY and (row.name, row.attempt) not in self._failures

    def learn(self, node_id: str, node: FailedNode) -> None:
        """Add what events lack: messages of failures, and when the next attempt is due."""
        for failure in node.failures:
            due_at = node.due_at if failure.attempt == node.attempt else None
            message = failure.error.message if failure.error else ""
            self._failures.setdefault((node_id, failure.attempt), (message, due_at))

        row = self.rows.get(node_id)
        if node.failures and row:
            self._explain(row)

    def _explain(self, row: Row) -> None:
        if row.state in FAULTY:
            unexplained = (row.message, None)
            failure = self._failures.get((row.name, row.attempt), unexplained)
            row.message, row.due_at = failure


def items_note(items: ItemCounts, noun: str = "items") -> str:
    """`9,987 of 10,000 items, 13 failed`."""
    note = f"{items.completed + items.skipped:,} of {items.total:,} {noun}"
    if items.failed:
        note += f", {items.failed:,} failed"
    return note


def choose_rows(progress: Progress, room: int) -> list[Row]:
    """All rows in their own order if there is room for them.

    Otherwise those that failed, then active ones, those that ended last, and queued ones.
    """
    if len(progress.rows) <= room:
        return list(progress.rows.values())

    chosen = _newest(progress, (NodeState.FAILED,), max(1, room // 3))
    active: list[Row] = []
    for state in ACTIVE:
        active += progress.by_state[state].values()
    chosen += active[: room - len(chosen)]
    chosen += _newest(progress, ENDED, room - len(chosen))
    queued = progress.by_state[NodeState.QUEUED].values()
    return chosen + list(islice(queued, room - len(chosen)))


def _newest(progress: Progress, states: Iterable[NodeState], limit: int) -> list[Row]:
    rows: list[Row] = []
    for state in states:
        rows += islice(reversed(progress.by_state[state].values()), limit)
    return sorted(rows, key=lambda row: row.changed_at or 0.0, reverse=True)[:limit]


def _attempts_max(row: Row) -> int:
    """The attempts a node may have, with those that don't count: interrupted and lost ones."""
    if row.reason == "interrupted":
        return row.attempts_max + 1
    if row.reason == "lost":
        return max(row.attempts_max, row.attempt + 1)
    return row.attempts_max
