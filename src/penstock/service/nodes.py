"""Nodes of an execution: the definition, the resolved config, the outcome and all attempts."""

from __future__ import annotations

import json
from typing import Any

from msgspec import structs

from penstock.definition.addresses import body_at, node_at
from penstock.definition.plan import Plan, PlanNode
from penstock.engine.commands import ExecutionRecord
from penstock.engine.states import NodeState
from penstock.errors import NotFound
from penstock.service.executions import Executions, no_node
from penstock.service.resolving import resolved_config
from penstock.stores.base import Stored, Stores
from penstock.stores.blobs import fetch_outputs
from penstock.views.attempts import attempts_of
from penstock.views.nodes import (
    NodeDetail,
    item_counts,
    node_detail_view,
    node_view,
)
from penstock.views.nodes import (
    item_states as states_of_items,
)
from penstock.views.values import undecoded


class Nodes:
    """Views of single nodes of executions."""

    def __init__(self, stores: Stores, executions: Executions) -> None:
        self._stores = stores
        self._executions = executions

    async def view(
        self, execution_id: str, node_id: str, *, item_states: bool = False
    ) -> NodeDetail:
        """Everything about a node; with `item_states`, those and not the output."""
        stored = await self._executions.stored(execution_id)
        record = stored.record
        plan = await self._executions.plan(record)
        node, parents = find_node(plan, node_id)
        run = stored.runs.get(node_id)
        lines = [line for line in stored.history if line.node_id == node_id]

        waits = await self._executions.waiting.of_nodes(record, stored.runs, plan)
        resolved = await resolved_config(stored, plan, node, self._stores.blobs)
        output = None if item_states else await self._output(stored, node_id)
        written = await self._written(record, node_id)

        detail = node_detail_view(
            node,
            node_view(run, output, waits.get(node_id)),
            dependencies=parents,
            labels=written.get("labels"),
            metadata=written.get("metadata"),
            config={**node.config.value, **record.overrides.get(node_id, {})},
            resolved_config=resolved.config,
            unresolved=resolved.unresolved,
            attempts=attempts_of(run, lines),
            retry_at=run.due_at if run and run.state is NodeState.RETRYING else None,
            errors_dropped=run.failures_dropped if run else 0,
        )
        if node.region is not None and run is not None:
            is_loop = node.region.repeat is not None
            detail.items = item_counts(run, stored.runs, is_loop=is_loop)
            if item_states:
                detail.item_states = states_of_items(run, stored.runs, is_loop=is_loop)
        return detail

    async def _output(self, stored: Stored, node_id: str) -> Any:
        if node_id not in stored.outputs:
            return None
        outputs = await fetch_outputs({node_id: stored.outputs[node_id]}, self._stores.blobs)
        return undecoded(outputs[node_id])

    async def _written(self, record: ExecutionRecord, node_id: str) -> dict[str, Any]:
        """A node in the document: its labels and metadata have no effect and aren't in the plan."""
        stored = await self._stores.cold.definitions.get_workflow(record.workflow, record.version)
        document = json.loads(stored.document) if stored else {}
        return _node_in_document(document, node_id)


def _node_in_document(document: dict[str, Any], node_id: str) -> dict[str, Any]:
    nodes = (document.get("dag") or document).get("nodes") or []
    nodes_by_name: list[tuple[Any, dict[str, Any]]]
    if isinstance(nodes, dict):
        nodes_by_name = list(nodes.items())
    else:
        nodes_by_name = [(node.get("id"), node) for node in nodes]

    for name, node in nodes_by_name:
        if node.get("id", name) == node_id:
            return node
    return {}


def find_node(plan: Plan, node_id: str) -> tuple[PlanNode, list[str]]:
    """The node and the ids of its parents, also of a node inside of an item."""
    number = plan.numbers.get(node_id)
    if number is not None:
        node = plan.nodes[number]
        return node, [plan.nodes[parent].node_id for parent in node.dependencies]

    planned = node_at(plan, node_id)
    if planned is None:
        raise NotFound(no_node(node_id, plan))
    node = structs.replace(planned, node_id=node_id)
    body = body_at(plan, node_id)
    if body is None:  # the item itself
        return node, []
    prefix = node_id.removesuffix(planned.node_id)
    return node, [f"{prefix}{body.nodes[parent].node_id}" for parent in node.dependencies]
