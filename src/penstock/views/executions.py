"""An execution: in a list, or whole with its nodes; its history, logs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, NodeRun, Transition
from penstock.engine.parents import result_nodes
from penstock.stores.records import ExecutionRow
from penstock.views.errors import Error, error_view
from penstock.views.nodes import ItemCounts, Node, item_counts, node_view
from penstock.views.times import time_text
from penstock.views.tokens import Tokens, tokens_of

NOTHING: Mapping[str, Any] = {}


class Execution(msgspec.Struct, kw_only=True):
    """The answer to a start that doesn't wait has only the fields that are required."""

    execution_id: str
    workflow: str
    version: int
    state: str
    input: Any = None
    output: Any = None
    error: Error | None = None
    labels: dict[str, Any]
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    nodes: Annotated[
        dict[str, Node] | UnsetType, Meta(description="Left out with `nodes=false`.")
    ] = UNSET
    tokens: Annotated[
        Tokens | UnsetType,
        Meta(description="Of language models; left out if no node reports any."),
    ] = UNSET
    ending: Annotated[
        Ending | UnsetType,
        Meta(
            description="There once a cancel, the timeout or a `terminate` node has ended it before"
            " its last node, and nodes for clean-up were left."
        ),
    ] = UNSET
    parent: Annotated[
        Parent | UnsetType, Meta(description="Left out if no other execution has started it.")
    ] = UNSET
    priority: int | UnsetType = UNSET
    retry_of: str | UnsetType | None = UNSET
    retried_as: Annotated[str | UnsetType | None, Meta(description="The newest retry of it.")] = (
        UNSET
    )


class Parent(msgspec.Struct, kw_only=True):
    """The node that has started an execution as its child."""

    execution_id: str
    node_id: str
    root_id: Annotated[str, Meta(description="The execution at the top of the tree.")]
    depth: Annotated[int, Meta(description="How many executions are above: 1 below the root.")]


class Ending(msgspec.Struct, kw_only=True):
    """Why an execution ends before its last node: its clean-up still runs, or has run."""

    state: Annotated[str, Meta(description="How it ends, unless the clean-up fails.")]
    reason: str
    at: str | None


class ListedExecution(msgspec.Struct, kw_only=True):
    execution_id: str
    workflow: str
    version: int
    state: str
    error: Error | None = None
    labels: dict[str, Any]
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    retry_of: str | None = None


class ValueMatch(ListedExecution, kw_only=True):
    """An execution with the text of a search in its input or in the output of one of its nodes."""

    node_id: Annotated[str | None, Meta(description="The node of the output; null for an input.")]
    excerpt: Annotated[str, Meta(description="The text and what stands around it.")]


class ValueMatches(msgspec.Struct, kw_only=True):
    """A page of the search in inputs and outputs."""

    items: list[ValueMatch]
    next_cursor: str | None
    searched: Annotated[int, Meta(description="How many executions were read for this page.")]
    searched_until: Annotated[
        str | None, Meta(description="When the oldest execution that was read was created.")
    ]


class Results(msgspec.Struct, kw_only=True):
    execution_id: str
    state: str
    completed: bool
    output: Any = None
    outputs: dict[str, Any]
    tokens: Annotated[
        Tokens | UnsetType,
        Meta(description="Of language models; left out if no node reports any."),
    ] = UNSET
    error: Error | None = None


class HistoryItem(msgspec.Struct):
    seq: int
    at: str
    node_id: str | None
    before: str = msgspec.field(name="from")
    after: str = msgspec.field(name="to")
    attempt: int
    reason: str | None = None


class LiveEvent(HistoryItem, kw_only=True):
    """A history line in a stream of events."""

    execution_id: str


class LiveItems(msgspec.Struct, kw_only=True):
    """The items of a map in a stream of events, in place of the lines of what is inside."""

    execution_id: str
    node_id: str
    items: ItemCounts


LineView = TypeVar("LineView", bound=HistoryItem)


class LogItem(msgspec.Struct, kw_only=True):
    attempt: int
    text: str
    live: Annotated[
        bool, Meta(description="The attempt runs, and this is what it has logged so far.")
    ]


class ExecutionLogItem(LogItem, kw_only=True):
    node_id: str


class LogItemPage(msgspec.Struct, kw_only=True):
    node_id: str
    items: list[LogItem]
    next_cursor: str | None = None


class Requested(msgspec.Struct, kw_only=True):
    execution_id: str
    requested: str


def execution_view(  # noqa: PLR0913 -- what there is to show
    record: ExecutionRecord,
    runs: Mapping[str, NodeRun],
    outputs: Mapping[str, bytes],
    plan: Plan,
    *,
    waits: Mapping[str, tuple[str, str]] = NOTHING,
    value_of: Callable[[bytes], Any] = msgspec.json.decode,
) -> Execution:
    """An execution with its nodes.

    `waits` says, by node, why nobody takes its task: as a reason and as text.
    """
    numbers = plan.numbers  # outputs inside of items are read by themselves
    values = {node_id: value_of(data) for node_id, data in outputs.items() if node_id in numbers}
    nodes: dict[str, Node] = {}
    for node in plan.nodes:
        node_id = node.node_id
        run = runs.get(node_id)
        view = node_view(run, values.get(node_id), waits.get(node_id))
        if node.optional:
            view.optional = True
        if node.region is not None:
            view.items = item_counts(run, runs, is_loop=node.region.repeat is not None)
        nodes[node_id] = view
    whole = bare_view(record, values, plan, value_of)
    whole.nodes = nodes
    whole.tokens = tokens_of(runs, outputs, plan) or UNSET
    return whole


def bare_view(
    record: ExecutionRecord,
    values: Mapping[str, Any],
    plan: Plan,
    value_of: Callable[[bytes], Any] = msgspec.json.decode,
) -> Execution:
    """An execution without its nodes. `values` needs the outputs of the plan's result nodes."""
    return Execution(
        execution_id=record.execution_id,
        workflow=record.workflow,
        version=record.version,
        state=str(record.state),
        input=value_of(record.input),
        output=_output(values, record, plan),
        error=error_view(record.error, record.error_node_id),
        labels=record.labels,
        created_at=time_text(record.created_at),
        started_at=time_text(record.started_at),
        finished_at=time_text(record.finished_at),
        ending=_ending_view(record),
        parent=_parent_view(record),
    )


def _parent_view(record: ExecutionRecord) -> Parent | UnsetType:
    parent = record.parent
    if parent is None:
        return UNSET
    return Parent(
        execution_id=parent.execution_id,
        node_id=parent.node_id,
        root_id=parent.root_id,
        depth=parent.depth,
    )


def _ending_view(record: ExecutionRecord) -> Ending | UnsetType:
    ending = record.ending
    if ending is None:
        return UNSET
    return Ending(state=str(ending.state), reason=ending.reason, at=time_text(ending.at))


def _output(values: Mapping[str, Any], record: ExecutionRecord, plan: Plan) -> Any:
    node_ids = result_nodes(record, plan)
    if plan.single_result or node_ids is not plan.result_nodes:
        return values.get(node_ids[0])
    return {node_id: values[node_id] for node_id in node_ids if node_id in values}


def listed_view(row: ExecutionRow) -> ListedExecution:
    return ListedExecution(
        execution_id=row.execution_id,
        workflow=row.workflow,
        version=row.version,
        state=row.state,
        error=error_view(row.error, row.error_node_id),
        labels=row.labels,
        created_at=time_text(row.created_at),
        started_at=time_text(row.started_at),
        finished_at=time_text(row.finished_at),
        retry_of=row.retry_of,
    )


def history_view(history: Iterable[Transition]) -> list[HistoryItem]:
    return [history_item(line) for line in history]


def history_item(line: Transition) -> HistoryItem:
    return _line_view(HistoryItem, line)


def live_event(line: Transition, execution_id: str) -> LiveEvent:
    return _line_view(LiveEvent, line, execution_id=execution_id)


def live_items(execution_id: str, node_id: str, items: ItemCounts) -> LiveItems:
    return LiveItems(execution_id=execution_id, node_id=node_id, items=items)


def _line_view(view: Callable[..., LineView], line: Transition, **more: str) -> LineView:
    return view(
        line.seq,
        time_text(line.at),
        line.node_id or None,
        str(line.before),
        str(line.after),
        line.attempt,
        line.reason,
        **more,
    )
