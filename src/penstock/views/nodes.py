"""A node of an execution: as one of all of them, and alone with everything about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from penstock.definition.plan import PlanNode, RegionPlan
from penstock.engine.commands import NodeRun
from penstock.engine.events import TaskError
from penstock.engine.loops import pause_seconds
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.views.attempts import NodeAttempt
from penstock.views.errors import Error, error_view
from penstock.views.times import time_text

STATE_LETTERS = {
    NodeState.PENDING: "P",
    NodeState.QUEUED: "Q",
    NodeState.RUNNING: "R",
    NodeState.RETRYING: "T",
    NodeState.WAITING: "W",
    NodeState.COMPLETED: "C",
    NodeState.FAILED: "F",
    NodeState.SKIPPED: "S",
    NodeState.CANCELLED: "X",
}
AT_WORK = (NodeState.RETRYING, NodeState.RUNNING, NodeState.QUEUED, NodeState.WAITING)
"""States of the nodes inside of an item that is under way; the first of them is the item's."""


class ItemCounts(msgspec.Struct, kw_only=True):
    """The items of a map, or the rounds of a loop so far."""

    total: int
    open: int
    completed: int
    failed: int
    skipped: int
    cancelled: int


class Node(msgspec.Struct, kw_only=True):
    state: str
    attempt: int
    output: Any = None
    error: Error | None = None
    reason: Annotated[
        str | None,
        Meta(
            description="Why it is so. Of a QUEUED node: `no_worker` (no live worker serves its"
            " queue) or `no_handler` (none of those that do has its handler)."
        ),
    ] = None
    reason_text: Annotated[
        str | None, Meta(description="The same in words, where it says what to do.")
    ] = None
    worker_id: str | None = None
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    optional: Annotated[
        bool | UnsetType, Meta(description="Its failure fails nothing else. Left out if false.")
    ] = UNSET
    items: Annotated[
        ItemCounts | UnsetType, Meta(description="Of a map or a loop that has begun.")
    ] = UNSET
    child: Annotated[
        str | UnsetType,
        Meta(description="The execution that it has started, in its last attempt."),
    ] = UNSET


class ListedNode(Node, kw_only=True):
    """A node in a list: of an execution, or inside of the items of a map."""

    node_id: str


class ItemLine(msgspec.Struct, kw_only=True):
    """An item that has ended, in a stream of them."""

    seq: Annotated[int, Meta(description="Give it as `after` to go on behind this line.")]
    index: int
    key: Annotated[str | None, Meta(description="The identity of the item.")]
    state: str
    output: Any = None
    error: Error | None = None


class Retry(msgspec.Struct, kw_only=True):
    max_attempts: int
    initial_delay_seconds: float
    multiplier: float
    max_delay_seconds: float
    jitter_seconds: float
    on: Annotated[list[str], Meta(description="Which errors are retried; empty: all.")] = []
    not_on: list[str] = []


class NodeDetail(Node, kw_only=True):
    node_id: str
    dependencies: list[str]
    handler: str
    condition: str | None
    trigger_rule: str
    queue: str
    timeout_seconds: float
    retry: Retry
    labels: Annotated[Any, Meta(description="As they are written, and `metadata` too.")]
    metadata: Any
    config: Annotated[dict[str, Any], Meta(description="As it is written.")]
    resolved_config: Annotated[
        dict[str, Any] | None,
        Meta(description="With every reference but those to secrets filled in."),
    ]
    unresolved: Annotated[str | None, Meta(description="Why there is no `resolved_config`.")]
    attempts: list[NodeAttempt]
    retry_at: Annotated[
        str | None, Meta(description="When the next attempt of a RETRYING node is due.")
    ] = None
    errors_dropped: Annotated[
        int,
        Meta(
            description="How many failed attempts have no `error` any more:"
            " the first 5 and the last 15 keep it."
        ),
    ] = 0
    item_states: Annotated[
        str | UnsetType,
        Meta(
            description="With `item_states=true`, of a map or a loop: a letter for each item or"
            " round that has begun, in their order. P pending, Q queued, R running, T retrying,"
            " W waiting, C completed, F failed, S skipped, X cancelled."
        ),
    ] = UNSET


def node_view(run: NodeRun | None, output: Any, wait: tuple[str, str] | None = None) -> Node:
    """A node among others. `wait` says why nobody takes its task: as a reason and as text."""
    run = run or NodeRun("", NodeState.PENDING)
    reason, reason_text = wait or (run.reason, None)
    return Node(
        state=str(run.state),
        attempt=run.attempt,
        output=output,
        error=error_view(last_error(run)),
        reason=reason,
        reason_text=reason_text,
        worker_id=run.worker_id,
        queued_at=time_text(run.queued_at),
        started_at=time_text(run.started_at),
        finished_at=time_text(run.finished_at),
        child=UNSET if run.more is None or run.more.child is None else run.more.child,
    )


def item_counts(
    run: NodeRun | None, runs: Mapping[str, NodeRun], *, is_loop: bool
) -> ItemCounts | UnsetType:
    """The items of a map by their states; nothing if it hasn't begun."""
    if run is None or run.more is None:
        return UNSET
    states = Counter[str]()
    first = 1 if is_loop else 0
    for index in range(first, run.more.opened + first):
        item = runs.get(f"{run.node_id}[{index}]")
        states[str(item.state) if item else "PENDING"] += 1
    ended = sum(states[state] for state in NODE_ENDS)
    return ItemCounts(
        total=run.more.size,
        open=run.more.opened - ended if run.state is NodeState.WAITING else 0,
        completed=states[NodeState.COMPLETED],
        failed=states[NodeState.FAILED],
        skipped=states[NodeState.SKIPPED],
        cancelled=states[NodeState.CANCELLED],
    )


def item_states(run: NodeRun, runs: Mapping[str, NodeRun], *, is_loop: bool) -> str:
    """A letter for each item of a map, or round of a loop, that has begun.

    An item without a record is under way: its state is that of its node that comes first in
    `AT_WORK`.
    """
    opened = run.more.opened if run.more else 0
    first = 1 if is_loop else 0
    start = f"{run.node_id}["
    at_work: dict[int, NodeState] = {}
    for address, inner_run in runs.items():
        if inner_run.state not in AT_WORK or not address.startswith(start):
            continue
        digits, _, _ = address[len(start) :].partition("]")
        if not digits.isdecimal():
            continue  # of another node, with brackets in its id
        index = int(digits)
        earlier = at_work.get(index, NodeState.WAITING)
        at_work[index] = min(inner_run.state, earlier, key=AT_WORK.index)

    letters: list[str] = []
    for index in range(first, opened + first):
        item = runs.get(f"{start}{index}]")
        state = item.state if item else at_work.get(index, NodeState.PENDING)
        letters.append(STATE_LETTERS[state])
    return "".join(letters)


def due_at(run: NodeRun, runs: Mapping[str, NodeRun], region: RegionPlan | None) -> float | None:
    """When a node goes on by itself: at the end of its wait, or of the pause before a round."""
    if run.state is NodeState.RETRYING:
        return run.due_at
    if run.state is not NodeState.WAITING:
        return None
    if region is None:
        return run.due_at
    opened = run.more.opened if run.more else 0
    last_round = runs.get(f"{run.node_id}[{opened}]")
    repeat = region.repeat
    if repeat is None or last_round is None or last_round.finished_at is None:
        return None
    return last_round.finished_at + pause_seconds(repeat, opened)


def last_error(run: NodeRun) -> TaskError | None:
    """The last error of a node that has failed or waits for its next attempt.

    A node that has gone on after an error has none any more.
    """
    if run.failures and run.state in (NodeState.FAILED, NodeState.RETRYING):
        return run.failures[-1].error
    return None


def node_detail_view(  # noqa: PLR0913 -- what there is to show
    node: PlanNode,
    outcome: Node,
    *,
    dependencies: list[str],
    labels: Any,
    metadata: Any,
    config: dict[str, Any],
    resolved_config: dict[str, Any] | None,
    unresolved: str | None,
    attempts: list[NodeAttempt],
    retry_at: float | None,
    errors_dropped: int,
) -> NodeDetail:
    """A node alone: its outcome, and the rules of its definition with its handler's defaults."""
    outcome.optional = node.optional
    return NodeDetail(
        **structs.asdict(outcome),
        node_id=node.node_id,
        dependencies=dependencies,
        handler=node.handler,
        condition=node.condition.source if node.condition else None,
        trigger_rule=node.rule,
        queue=node.queue,
        timeout_seconds=node.timeout_seconds,
        retry=msgspec.convert(node.retry, Retry, from_attributes=True),
        labels=labels,
        metadata=metadata,
        config=config,
        resolved_config=resolved_config,
        unresolved=unresolved,
        attempts=attempts,
        retry_at=time_text(retry_at),
        errors_dropped=errors_dropped,
    )
