"""The resolved config of a node, as it was given or would be given now.

Its config with every reference filled in by the engine's own rules.

A node sees what was recorded when its last attempt was handed out, and no output that came later: a
`??` that stood in for an output then stands in for it here. Secrets stay the references that were
written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from penstock.definition.plan import Plan, PlanNode
from penstock.definition.template import Missing, opened
from penstock.engine.commands import NodeRun
from penstock.engine.events import Blob
from penstock.engine.starting import Outputs, resolve
from penstock.engine.state import Execution
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.orchestrator.view import fetch_outputs
from penstock.stores.base import BlobStore, Stored

CONFIG_BYTES_MAX = 256 * 1024
SOURCE_BYTES_MAX = 6 * 1024 * 1024
"""Bytes of outputs and input that are looked into for a config, on a loop that others wait for."""
NEVER_GIVEN = frozenset({NodeState.SKIPPED, NodeState.CANCELLED, NodeState.FAILED})


class Resolved(NamedTuple):
    """A resolved config, or why there is none."""

    config: dict[str, Any] | None
    unresolved: str | None = None
    """Why there is no config."""


async def resolved_config(stored: Stored, plan: Plan, node: PlanNode, blobs: BlobStore) -> Resolved:
    run = stored.runs.get(node.node_id)
    why_not = _never_given(run) if run else _waits(stored, node.config.references)
    if why_not is not None:
        return Resolved(None, why_not)
    seen = _seen(stored, node.node_id, node.config.references) if run else node.config.references
    known = {node_id: stored.outputs[node_id] for node_id in seen if node_id in stored.outputs}
    source = sum(value.size if isinstance(value, Blob) else len(value) for value in known.values())
    source += len(stored.record.input) if node.config.uses_input else 0
    if source > SOURCE_BYTES_MAX:
        return Resolved(
            None, f"its references look into too much to be shown ({-(-source // 1024)} KiB)"
        )
    runs = [stored.runs[node_id] for node_id in seen if node_id in stored.runs]
    outputs = {**await fetch_outputs(known, blobs)}
    execution = Execution(plan, stored.record, runs, {**outputs})
    # decoded only as far as a reference looks into them
    execution.values.update(
        (node_id, opened(msgspec.Raw(text))) for node_id, text in outputs.items()
    )
    try:
        config, _ = resolve(execution, node, Outputs(execution))
    except Missing as error:
        return Resolved(None, str(error))
    text = msgspec.json.encode(config)
    if len(text) > CONFIG_BYTES_MAX:
        return Resolved(None, f"too large to show ({-(-len(text) // 1024)} KiB)")
    return Resolved(msgspec.json.decode(text))


def _never_given(run: NodeRun) -> str | None:
    if run.attempt or run.state not in NEVER_GIVEN or run.reason == "config":
        return None
    return (
        f"it never started: it is {run.state} ({run.reason})"
        if run.reason
        else f"it never started: it is {run.state}"
    )


def _waits(stored: Stored, references: Collection[str]) -> str | None:
    """A fallback doesn't count yet: the output may still come."""
    for node_id in sorted(references):
        run = stored.runs.get(node_id)
        if run is None or run.state not in NODE_ENDS:
            return f"it waits for the output of {node_id!r}, which is {run.state if run else NodeState.PENDING}"
    return None


def _seen(stored: Stored, node_id: str, references: Collection[str]) -> set[str]:
    """The referenced nodes that had ended when this one was decided on for the last time.

    That is, when it was queued, or evaluated in place.
    """
    own = [line for line in stored.history if line.node_id == node_id]
    queued = [line.seq for line in own if line.after == NodeState.QUEUED]
    decided = queued[-1] if queued else own[-1].seq if own else stored.last_seq
    later = {
        line.node_id for line in stored.history if line.seq > decided and line.after in NODE_ENDS
    }
    return set(references) - later
