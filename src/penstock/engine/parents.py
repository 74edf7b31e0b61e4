"""What the end of an execution means for its parent: `ChildEnded`, with the child's output."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.definition.plan import Plan
from penstock.engine.commands import Commands, ExecutionRecord
from penstock.engine.events import ChildEnded, Value
from penstock.engine.states import ExecutionState


def tell_parent(commands: Commands, event: ChildEnded | None) -> None:
    """Send the end of an execution to its parent, if somebody waits for it there."""
    if event is not None:
        commands.sends.append(event)


def end_of(
    record: ExecutionRecord, outputs: Mapping[str, Value] | None = None, plan: Plan | None = None
) -> ChildEnded | None:
    """The end of an execution as its parent is told; None if nobody waits for it.

    One that has completed has its outputs and its plan.
    """
    parent = record.parent
    if parent is None or not parent.is_awaited:
        return None
    event = ChildEnded(
        parent.execution_id,
        parent.node_id,
        parent.attempt,
        record.execution_id,
        str(record.state),
        error=record.error,
    )
    if record.state is not ExecutionState.COMPLETED or plan is None or outputs is None:
        return event
    node_ids = result_nodes(record, plan)
    if plan.single_result or node_ids is not plan.result_nodes:
        event.output = outputs.get(node_ids[0])
        return event
    parts = {node_id: outputs[node_id] for node_id in node_ids if node_id in outputs}
    event.output = joined(parts)
    if event.output is None:
        event.parts = parts
    return event


def joined(parts: Mapping[str, Value]) -> bytes | None:
    """The outputs of several nodes as one; None if one of them is elsewhere."""
    raw: dict[str, msgspec.Raw] = {}
    for node_id, value in parts.items():
        if not isinstance(value, bytes):
            return None
        raw[node_id] = msgspec.Raw(value)
    return msgspec.json.encode(raw)


def result_nodes(record: ExecutionRecord, plan: Plan) -> tuple[str, ...]:
    """The nodes whose outputs form the execution's output."""
    ending = record.ending
    if ending is not None and ending.node_id is not None:
        return (ending.node_id,)
    return plan.result_nodes
