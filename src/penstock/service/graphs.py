"""Graphs, as nodes and edges to draw.

Of a version, and of an execution with how far each node has come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.definition.plan import Plan, PlanNode
from penstock.engine.commands import NodeRun
from penstock.engine.state import Execution
from penstock.engine.states import NodeState
from penstock.orchestrator.view import last_error, time_text
from penstock.stores.base import Stored

MESSAGE_CHARACTERS_MAX = 300
"""Characters of an error's message: thousands of nodes may have failed."""


def workflow_graph(plan: Plan) -> dict[str, Any]:
    depths = levels(plan.nodes, plan.order)
    nodes = [
        {
            "id": node.node_id,
            "handler": node.handler,
            "level": depth,
            "condition": node.condition.source if node.condition else None,
            "trigger_rule": node.rule,
            "optional": node.optional,
        }
        for node, depth in zip(plan.nodes, depths, strict=True)
    ]
    return {"name": plan.name, "version": plan.version, "nodes": nodes, "edges": edges(plan.nodes)}


def execution_graph(
    stored: Stored, plan: Plan, waits: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """The graph of an execution.

    `seq` is of the last change that it shows: events after that one carry on from here.

    `waits`: by node, why nobody takes its task, as a word and as a text.
    """
    record = stored.record
    nodes, order = plan.nodes, plan.order
    if record.added:
        grown = Execution(plan, record)
        nodes, order = grown.nodes, list(grown.in_order())
    shown = [
        _node_view(
            node, stored.runs.get(node.node_id) or NodeRun(node.node_id, NodeState.PENDING), depth
        )
        for node, depth in zip(nodes, levels(nodes, order), strict=True)
    ]
    for view in shown:
        if view["id"] in waits:
            view["reason"], _ = waits[view["id"]]
    return {
        "execution_id": record.execution_id,
        "state": str(record.state),
        "seq": stored.last_seq,
        "nodes": shown,
        "edges": edges(nodes),
    }


def _node_view(node: PlanNode, run: NodeRun, depth: int) -> dict[str, Any]:
    error = last_error(run)
    return {
        "id": node.node_id,
        "handler": node.handler,
        "state": str(run.state),
        "reason": run.reason,
        "level": depth,
        "attempt": run.attempt,
        "queued_at": time_text(run.queued_at),
        "started_at": time_text(run.started_at),
        "finished_at": time_text(run.finished_at),
        "error": shortened(error.message) if error else None,
        "optional": node.optional,
    }


def levels(nodes: Sequence[PlanNode], order: Sequence[int]) -> list[int]:
    """The level of each node, how far it is from the beginning.

    One more than the farthest of its parents.
    """
    depth = [0] * len(nodes)
    for number in order:
        depth[number] = max((depth[parent] + 1 for parent in nodes[number].dependencies), default=0)
    return depth


def edges(nodes: Sequence[PlanNode]) -> list[dict[str, str]]:
    return [
        {"from": nodes[parent].node_id, "to": node.node_id}
        for node in nodes
        for parent in node.dependencies
    ]


def shortened(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS_MAX else text[: MESSAGE_CHARACTERS_MAX - 1] + "…"
