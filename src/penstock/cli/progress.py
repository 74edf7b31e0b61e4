"""An execution as it is watched: one row per node, kept up to date by its events.

Knows nothing of screens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from penstock.cli.safe_text import duration, one_line
from penstock.definition.plan import Plan
from penstock.engine.commands import NodeRun
from penstock.engine.reasons import Reason, reason_text
from penstock.engine.states import NODE_ENDS, NodeState

ACTIVE = (NodeState.RUNNING, NodeState.RETRYING, NodeState.WAITING)
FAULTY = (NodeState.RETRYING, NodeState.FAILED)
ENDED = (NodeState.COMPLETED, NodeState.SKIPPED, NodeState.CANCELLED)


@dataclass(slots=True)
class Row:
    name: str
    handler: str = ""
    condition: str = ""
    attempts_max: int = 0
    state: str = NodeState.PENDING
    attempt: int = 0
    started_at: float | None = None
    """When its first attempt started: a node that is tried again hasn't begun anew."""
    changed_at: float | None = None
    due_at: float | None = None
    reason: str | None = None
    message: str = ""

    def seconds(self, now: float) -> float | None:
        """How long it has run, or ran; None if it never did."""
        if self.started_at is None:
            return None
        return (
            (self.changed_at or now) - self.started_at
            if self.state in NODE_ENDS
            else now - self.started_at
        )

    def note(self, now: float) -> str:
        if self.state == NodeState.RETRYING:
            again = (
                f"again in {duration(self.due_at - now)}"
                if self.due_at and self.due_at > now
                else "again now"
            )
            return f"{again}: {one_line(self.message or self.reason or '')}"
        if self.state == NodeState.FAILED:
            return one_line(self.message or reason_text(self.reason))
        if self.reason == Reason.CANCELLED:
            return ""  # the state says it
        if self.reason == Reason.CONDITION_FALSE and self.condition:
            return f"{reason_text(self.reason)}: {one_line(self.condition)}"
        return one_line(reason_text(self.reason))


class Progress:
    def __init__(self, plan: Plan, execution_id: str, created_at: float) -> None:
        self.workflow, self.execution_id = plan.name, execution_id
        self.state = "PENDING"
        self.started_at: float = created_at
        self.finished_at: float | None = None
        self.rows = {
            node.node_id: Row(
                node.node_id,
                node.handler,
                node.condition.source if node.condition else "",
                node.retry.max_attempts,
            )
            for node in plan.nodes
        }
        self.by_state: dict[str, dict[str, Row]] = {state: {} for state in NodeState}
        """Each in the order in which the nodes got there."""
        self.by_state[NodeState.PENDING] = dict(self.rows)
        self._failures: dict[tuple[str, int], tuple[str, float | None]] = {}

    @property
    def done(self) -> int:
        return sum(len(self.by_state[state]) for state in NODE_ENDS)

    def count(self, state: str) -> int:
        return len(self.by_state[state])

    def seconds(self, now: float) -> float:
        return max(0.0, (self.finished_at or now) - self.started_at)

    def apply(self, event: Mapping[str, Any]) -> Row | None:
        """One line of the history; answers the node's row, or None if it is about the execution."""
        at = datetime.fromisoformat(event["at"]).timestamp()
        if event["node_id"] is None:
            self._move_execution(event["to"], at)
            return None
        row = self.rows.get(event["node_id"])
        if row is None:  # a node that the execution gained while it runs
            row = self.rows[event["node_id"]] = Row(event["node_id"])
        self._move(row, event["to"])
        row.attempt, row.reason, row.changed_at = event["attempt"], event["reason"], at
        if row.state == NodeState.RETRYING and row.attempts_max:
            row.attempts_max = _attempts_max(row)
        self._explain(row)
        if row.state == NodeState.RUNNING:
            row.due_at, row.message = None, ""
            row.started_at = at if row.started_at is None else row.started_at
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
        """Whether `learn` has something to say about this row."""
        return row.state in FAULTY and (row.name, row.attempt) not in self._failures

    def learn(self, runs: Mapping[str, NodeRun]) -> None:
        """What events don't carry: the messages of failures, and when the next attempt is due."""
        for run in runs.values():
            for failure in run.failures:
                due_at = run.due_at if failure.attempt == run.attempt else None
                self._failures.setdefault(
                    (run.node_id, failure.attempt), (failure.error.message, due_at)
                )
            if run.failures and (row := self.rows.get(run.node_id)):
                self._explain(row)

    def _explain(self, row: Row) -> None:
        if row.state in FAULTY:
            row.message, row.due_at = self._failures.get(
                (row.name, row.attempt), (row.message, None)
            )


def choose_rows(progress: Progress, room: int) -> list[Row]:
    """All in their own order where there is room; else what failed, what runs, and what ended last."""
    if len(progress.rows) <= room:
        return list(progress.rows.values())
    chosen = _newest(progress, (NodeState.FAILED,), max(1, room // 3))
    chosen += [row for state in ACTIVE for row in progress.by_state[state].values()][
        : room - len(chosen)
    ]
    chosen += _newest(progress, ENDED, room - len(chosen))
    return chosen + list(islice(progress.by_state[NodeState.QUEUED].values(), room - len(chosen)))


def _newest(progress: Progress, states: Iterable[NodeState], limit: int) -> list[Row]:
    rows = [
        row
        for state in states
        for row in islice(reversed(progress.by_state[state].values()), limit)
    ]
    return sorted(rows, key=lambda row: row.changed_at or 0.0, reverse=True)[:limit]


def _attempts_max(row: Row) -> int:
    """With those that didn't count: an interrupted one, and the last one if it was lost with its worker."""
    if row.reason == "interrupted":
        return row.attempts_max + 1
    if row.reason == "lost":
        return max(row.attempts_max, row.attempt + 1)
    return row.attempts_max
