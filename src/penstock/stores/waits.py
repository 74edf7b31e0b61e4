"""Open waits: nodes that wait for somebody, as a cold store lists them.

The hot store knows what each node waits for; this is the list over all executions, which follows
from it. A commit says which waits it opens and which it closes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from penstock.engine.commands import NodeRun
from penstock.engine.states import NODE_ENDS, NodeState

LISTED_KINDS = frozenset({"signal", "approval"})


class OpenWait(msgspec.Struct, array_like=True):
    execution_id: str
    node_id: str
    attempt: int
    kind: str
    """The handler: `signal` or `approval`."""
    config: bytes
    """Filled in, as JSON."""
    since: float
    due_at: float | None
    correlation: str | None


class WaitRow(NamedTuple):
    id: int
    """In the order in which the waits became known."""
    workflow: str
    version: int
    wait: OpenWait


class WaitSearch(msgspec.Struct, kw_only=True, frozen=True):
    kind: str | None = None
    correlation: str | None = None
    after: int = 0
    """Only rows with a greater id."""
    limit: int = 50


WaitChange = tuple[str, str, OpenWait | None]
"""Execution, node, and what it waits for; None: it waits no more."""


def changes_of(execution_id: str, runs: Iterable[NodeRun]) -> list[WaitChange]:
    """Which waits for somebody are opened and closed where these records were written."""
    changes: list[WaitChange] = []
    for run in runs:
        more = run.more
        if more is None or more.config is None or more.kind not in LISTED_KINDS:
            continue
        if run.state is NodeState.WAITING:
            wait = OpenWait(
                execution_id,
                run.node_id,
                run.attempt,
                more.kind,
                more.config,
                run.started_at or 0.0,
                run.due_at,
                more.key,
            )
            changes.append((execution_id, run.node_id, wait))
        elif run.state in NODE_ENDS:
            changes.append((execution_id, run.node_id, None))
    return changes


def newest(changes: Iterable[WaitChange]) -> list[WaitChange]:
    """The last change of each node."""
    last = {(execution_id, node_id): wait for execution_id, node_id, wait in changes}
    return [(*key, wait) for key, wait in last.items()]
