"""Graphs as nodes and edges to draw: of a version, and of an execution with its nodes' states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.definition.plan import Body, Plan, PlanNode
from penstock.engine.commands import NodeRun
from penstock.engine.states import NodeState
from penstock.stores.base import Stored
from penstock.views.nodes import ItemCounts, due_at, item_counts, last_error
from penstock.views.times import time_text

MESSAGE_CHARACTERS_MAX = 300
"""Characters of an error message in a graph: thousands of nodes may have failed."""


class GraphEdge(msgspec.Struct):
    parent: str = msgspec.field(name="from")
    child: str = msgspec.field(name="to")


class GraphNode(msgspec.Struct, kw_only=True):
    id: str
    handler: str
    state: str
    reason: str | None = None
    level: int
    attempt: int
    queued_at: str | None
    started_at: str | None
    finished_at: str | None
    error: Annotated[
        str | None, Meta(description="The message of its last error, at most 300 characters.")
    ]
    condition: str | None = None
    optional: bool
    items: Annotated[
        ItemCounts | UnsetType, Meta(description="Of a map or a loop that has begun.")
    ] = UNSET
    until: Annotated[
        str | None,
        Meta(
            description="When it goes on by itself: the end of a wait, of the time for a signal or"
            " a decision, the next attempt, the next round of a loop."
        ),
    ] = None


class Graph(msgspec.Struct, kw_only=True):
    execution_id: str
    state: str
    seq: Annotated[
        int,
        Meta(description="Of the last change in it: events after this one carry on from here."),
    ]
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class WorkflowGraphNode(msgspec.Struct, kw_only=True):
    id: str
    handler: str
    level: int
    condition: str | None
    trigger_rule: str
    optional: bool


class WorkflowGraph(msgspec.Struct, kw_only=True):
    name: str
    version: int
    nodes: list[WorkflowGraphNode]
    edges: list[GraphEdge]


def workflow_graph(plan: Plan) -> WorkflowGraph:
    depths = levels(plan.nodes, plan.order)
    nodes = [
        WorkflowGraphNode(
            id=node.node_id,
            handler=node.handler,
            level=depth,
            condition=node.condition.source if node.condition else None,
            trigger_rule=node.rule,
            optional=node.optional,
        )
        for node, depth in zip(plan.nodes, depths, strict=True)
    ]
    node_ids = [node.node_id for node in plan.nodes]
    return WorkflowGraph(
        name=plan.name,
        version=plan.version,
        nodes=nodes,
        edges=edges(plan.nodes, node_ids),
    )


def execution_graph(
    stored: Stored,
    body: Plan | Body,
    waits: Mapping[str, tuple[str, str]],
    addresses: Sequence[str] | None = None,
) -> Graph:
    """The graph of an execution, or of what is inside of an item.

    `body` has the nodes: of the plan, or of a map's body with the `addresses` of one item's nodes.

    `seq` is the number of the last history line that it includes; a client follows the events
    after it.

    `waits` says by node why no worker takes its task, as a reason and as a text.
    """
    record = stored.record
    nodes = body.nodes
    order = body.order
    node_ids = [node.node_id for node in nodes] if addresses is None else addresses
    node_views: list[GraphNode] = []
    for node, node_id, depth in zip(nodes, node_ids, levels(nodes, order), strict=True):
        run = stored.runs.get(node_id) or NodeRun(node_id, NodeState.PENDING)
        view = _node_view(node, run, depth)
        view.until = time_text(due_at(run, stored.runs, node.region))
        if node_id in waits:
            view.reason, _ = waits[node_id]
        if node.region is not None:
            view.items = item_counts(run, stored.runs, is_loop=node.region.repeat is not None)
        node_views.append(view)

    return Graph(
        execution_id=record.execution_id,
        state=str(record.state),
        seq=stored.last_seq,
        nodes=node_views,
        edges=edges(nodes, node_ids),
    )


def _node_view(node: PlanNode, run: NodeRun, depth: int) -> GraphNode:
    error = last_error(run)
    return GraphNode(
        id=run.node_id,
        handler=node.handler,
        state=str(run.state),
        reason=run.reason,
        level=depth,
        attempt=run.attempt,
        queued_at=time_text(run.queued_at),
        started_at=time_text(run.started_at),
        finished_at=time_text(run.finished_at),
        error=shortened(error.message) if error else None,
        condition=node.condition.source if node.condition else None,
        optional=node.optional,
    )


def levels(nodes: Sequence[PlanNode], order: Sequence[int]) -> list[int]:
    """The level of each node: 0 for a root, else one more than the highest level of its parents."""
    depths = [0] * len(nodes)
    for number in order:
        parents = nodes[number].dependencies
        depths[number] = max((depths[parent] + 1 for parent in parents), default=0)
    return depths


def edges(nodes: Sequence[PlanNode], node_ids: Sequence[str]) -> list[GraphEdge]:
    return [
        GraphEdge(node_ids[parent], node_id)
        for node, node_id in zip(nodes, node_ids, strict=True)
        for parent in node.dependencies
    ]


def shortened(text: str) -> str:
    if len(text) <= MESSAGE_CHARACTERS_MAX:
        return text
    return text[: MESSAGE_CHARACTERS_MAX - 1] + "…"
