"""A node of an execution: how it was written, what it was given, what came of it, and every attempt."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from penstock.definition.plan import Plan, PlanNode
from penstock.engine.commands import ExecutionRecord
from penstock.engine.state import Execution
from penstock.errors import NotFound
from penstock.orchestrator.view import fetch_outputs, node_view, undecoded
from penstock.service.attempts import attempts_of
from penstock.service.executions import Executions, no_node
from penstock.service.resolving import resolved_config
from penstock.stores.base import Stored, Stores


class Nodes:
    """Views of single nodes of executions."""

    def __init__(self, stores: Stores, executions: Executions) -> None:
        self._stores, self._executions = stores, executions

    async def view(self, execution_id: str, node_id: str) -> dict[str, Any]:
        stored = await self._executions.stored(execution_id)
        plan = await self._executions.plan(stored.record)
        node, parents = find_node(plan, stored.record, node_id)
        run = stored.runs.get(node_id)
        waits = await self._executions.waiting.of_nodes(stored.record, stored.runs, plan)
        resolved = await resolved_config(stored, plan, node, self._stores.blobs)
        lines = [line for line in stored.history if line.node_id == node_id]
        return {
            "node_id": node_id,
            **node_view(run, await self._output(stored, node_id), waits.get(node_id)),
            "dependencies": parents,
            **_rules(node),
            **await self._notes(stored.record, node_id),
            "config": {**node.config.value, **stored.record.overrides.get(node_id, {})},
            "resolved_config": resolved.config,
            "unresolved": resolved.unresolved,
            "attempts": attempts_of(run, lines),
            "errors_dropped": run.failures_dropped if run else 0,
        }

    async def _output(self, stored: Stored, node_id: str) -> Any:
        if node_id not in stored.outputs:
            return None
        outputs = await fetch_outputs({node_id: stored.outputs[node_id]}, self._stores.blobs)
        return undecoded(outputs[node_id])

    async def _notes(self, record: ExecutionRecord, node_id: str) -> dict[str, Any]:
        """The notes of a node.

        What the document says about it that has no effect, and so isn't in the plan.
        """
        stored = await self._stores.cold.get_workflow(record.workflow, record.version)
        document = json.loads(stored.document) if stored else {}
        nodes = (document.get("dag") or document).get("nodes") or []
        pairs = (
            nodes.items() if isinstance(nodes, dict) else ((node.get("id"), node) for node in nodes)
        )
        written: dict[str, Any] = next(
            (node for name, node in pairs if node.get("id", name) == node_id), {}
        )
        return {"labels": written.get("labels"), "metadata": written.get("metadata")}


def find_node(plan: Plan, record: ExecutionRecord, node_id: str) -> tuple[PlanNode, list[str]]:
    """The node and the names of its parents, also of one that the execution gained while it ran."""
    nodes, numbers = plan.nodes, plan.numbers
    if record.added:
        grown = Execution(plan, record)
        nodes, numbers = grown.nodes, grown.numbers
    if node_id not in numbers:
        raise NotFound(no_node(node_id, plan))
    node = nodes[numbers[node_id]]
    return node, [nodes[parent].node_id for parent in node.dependencies]


def _rules(node: PlanNode) -> dict[str, Any]:
    """The rules of a node, which decide over it, with the defaults of its handler."""
    return {
        "handler": node.handler,
        "condition": node.condition.source if node.condition else None,
        "trigger_rule": node.rule,
        "optional": node.optional,
        "queue": node.queue,
        "timeout_seconds": node.timeout_seconds,
        "retry": msgspec.to_builtins(node.retry),
    }
