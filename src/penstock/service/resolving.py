"""The resolved config of a node, as it was given or would be given now.

It is the node's config with every reference filled in by the engine's own rules.

A node sees what was recorded when its last attempt was dispatched, and no output that came later.
If a fallback (`??`) replaced an output then, it does so here too. Secrets stay references.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from penstock.definition.addresses import steps_to
from penstock.definition.plan import Plan, PlanNode
from penstock.definition.template import Missing, opened
from penstock.engine.commands import NodeRun
from penstock.engine.events import Blob, Value
from penstock.engine.items import OpenItem, Region
from penstock.engine.loops import look_up_previous
from penstock.engine.outputs import ItemOutputs, Outputs
from penstock.engine.regions import list_of
from penstock.engine.starting import computes_cheaply, resolve
from penstock.engine.state import Execution
from penstock.engine.states import NODE_ENDS, NodeState
from penstock.stores.base import BlobStore, Stored
from penstock.stores.blobs import fetch_outputs

CONFIG_BYTES_MAX = 256 * 1024
SOURCE_BYTES_MAX = 6 * 1024 * 1024
"""Bytes of outputs and input that are read for a config: the event loop waits meanwhile."""
NEVER_GIVEN = frozenset({NodeState.SKIPPED, NodeState.CANCELLED, NodeState.FAILED})


class Resolved(NamedTuple):
    """A resolved config, or why there is none."""

    config: dict[str, Any] | None
    unresolved: str | None = None
    """Why there is no config."""


async def resolved_config(stored: Stored, plan: Plan, node: PlanNode, blobs: BlobStore) -> Resolved:
    item = item_at(stored, plan, node.node_id)
    run = stored.runs.get(node.node_id)
    names = _Names(plan, stored, item, node.config.references | node.config.outcomes)
    references = names.addresses
    visible: Collection[str]
    """The referenced nodes whose output the node was given, or would be given now."""
    if run:
        why_not = _why_never_given(run)
        visible = _ended_before(stored, node.node_id, references)
    else:
        why_not = _why_waiting(stored, node.config.references)
        visible = references
    if why_not is not None:
        return Resolved(None, why_not)

    visible = {*visible, *names.around}
    values = {node_id: stored.outputs[node_id] for node_id in visible if node_id in stored.outputs}
    source_bytes = sum(_size(value) for value in values.values())
    if node.config.uses_input:
        source_bytes += len(stored.record.input)
    if source_bytes > SOURCE_BYTES_MAX:
        return Resolved(
            None, f"its references look into too much to be shown ({_kibibytes(source_bytes)} KiB)"
        )

    runs = [stored.runs[node_id] for node_id in visible if node_id in stored.runs]
    outputs = await fetch_outputs(values, blobs)
    execution = Execution(plan, stored.record, runs, {**outputs})
    # decoded only as far as a reference looks into them
    if item is None:
        for node_id, text in outputs.items():
            execution.values[node_id] = opened(msgspec.Raw(text))
    try:
        scope = _scope(execution, item)
        if not computes_cheaply(execution, node, scope):
            return Resolved(None, "it computes more than can be shown")
        config, _ = resolve(execution, node, scope)
    except Missing as error:
        return Resolved(None, str(error))

    encoded = msgspec.json.encode(config)
    if len(encoded) > CONFIG_BYTES_MAX:
        return Resolved(None, f"too large to show ({_kibibytes(len(encoded))} KiB)")
    return Resolved(msgspec.json.decode(encoded))


def item_at(stored: Stored, plan: Plan, address: str) -> OpenItem | None:
    """The item that an address is inside of, as it was when it was open."""
    item: OpenItem | None = None
    for step in steps_to(plan, address):
        run = stored.runs.get(step.address)
        if run is None:
            return None
        region = Region(0, run, step.region, 0, item)
        for index in range(region.opened):
            ended = stored.runs.get(region.item_address(index))
            if ended is not None and ended.state in NODE_ENDS:
                region.close(index, ended.state)
        item = OpenItem(region, step.item_index - region.first_index)
    return item


class _Names:
    """What a config refers to, by addresses."""

    def __init__(
        self, plan: Plan, stored: Stored, item: OpenItem | None, references: Collection[str]
    ) -> None:
        self.addresses: Collection[str] = references
        self.around: set[str] = set()
        """What the lists around the node refer to."""
        if item is None:
            return
        execution = Execution(plan, stored.record)
        scope = ItemOutputs(execution, item)
        addresses = [scope.address(name) for name in references]
        self.addresses = [address for address in addresses if address is not None]
        inner: OpenItem | None = item
        while inner is not None:
            region = inner.region
            scope_outside = _outside(execution, region)
            for name in region.plan.needs:
                address = scope_outside.address(name)
                if address is not None:
                    self.around.add(address)
            if region.plan.repeat is not None:
                self.around.update(region.item_address(index) for index in range(inner.index))
            inner = region.outer


def _outside(execution: Execution, region: Region) -> Outputs:
    """Where the references of a map or a loop itself look."""
    return Outputs(execution) if region.outer is None else ItemOutputs(execution, region.outer)


def _scope(execution: Execution, item: OpenItem | None) -> Outputs:
    """Where the node's references look: the lists around it are looked up again.

    Raises `Missing`.
    """
    if item is None:
        return Outputs(execution)
    around: list[OpenItem] = []
    inner: OpenItem | None = item
    while inner is not None:
        around.append(inner)
        inner = inner.region.outer
    for outer in reversed(around):
        region = outer.region
        scope = _outside(execution, region)
        if region.plan.source is not None:
            region.values = list_of(execution, region.plan.source, scope)
        else:
            region.values = look_up_previous(execution, region, outer.index, scope)
    return ItemOutputs(execution, item)


def _size(value: Value) -> int:
    return value.size if isinstance(value, Blob) else len(value)


def _kibibytes(size: int) -> int:
    """Kibibytes of so many bytes, rounded up."""
    return -(-size // 1024)


def _why_never_given(run: NodeRun) -> str | None:
    if run.attempt or run.state not in NEVER_GIVEN or run.reason == "config":
        return None
    why = f"it never started: it is {run.state}"
    return f"{why} ({run.reason})" if run.reason else why


def _why_waiting(stored: Stored, references: Collection[str]) -> str | None:
    """Why a config can't be resolved yet: the output that it waits for.

    A fallback doesn't count yet, as the output may still come.
    """
    for node_id in sorted(references):
        run = stored.runs.get(node_id)
        state = run.state if run else NodeState.PENDING
        if state not in NODE_ENDS:
            return f"it waits for the output of {node_id!r}, which is {state}"
    return None


def _ended_before(stored: Stored, node_id: str, references: Collection[str]) -> set[str]:
    """The referenced nodes that had ended when this one was decided on for the last time.

    That is, when it was queued, or evaluated in place.
    """
    decided_seq = _last_decision(stored, node_id)
    ended_later = {
        line.node_id
        for line in stored.history
        if line.seq > decided_seq and line.after in NODE_ENDS
    }
    return set(references) - ended_later


def _last_decision(stored: Stored, node_id: str) -> int:
    lines = [line for line in stored.history if line.node_id == node_id]
    for line in reversed(lines):
        if line.after == NodeState.QUEUED:
            return line.seq
    return lines[-1].seq if lines else stored.last_seq
