"""Where a node's references look: recorded outputs, the input, and inside of items the item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.definition.template import Missing
from penstock.engine.events import Blob
from penstock.engine.items import OpenItem, Region
from penstock.engine.outcomes import end_of, outcome_of
from penstock.engine.states import NodeState

if TYPE_CHECKING:
    from penstock.engine.state import Execution

NO_ALIASES: Mapping[str, str] = {}


class Outputs:
    """Where the references of a node of the plan look: recorded outputs only."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def address(self, name: str) -> str | None:
        """The address of the node that a name means; None if it means an item or its index."""
        return name

    def keys(self, _names: Iterable[str]) -> dict[str, str]:
        """For names that mean something else elsewhere: a key that is the value's own."""
        return {}

    def output(self, node_id: str) -> Any:
        execution = self._execution
        if node_id not in execution.values:
            execution.values[node_id] = msgspec.json.decode(self.raw(node_id))
        return execution.values[node_id]

    def raw(self, node_id: str) -> bytes:
        return self._recorded(node_id, node_id)

    def _recorded(self, name: str, address: str) -> bytes:
        execution = self._execution
        value = execution.outputs.get(address)
        if isinstance(value, Blob):
            return execution.loaded[address]
        if value is None:
            run = execution.runs.get(address)
            state = run.state if run else NodeState.PENDING
            raise Missing(
                f"{name!r} has no output: it is {state}; a ?? fallback would stand in for it"
            )
        return value

    def aliases(self, node_id: str) -> Mapping[str, str]:
        return self._execution.node(self._execution.number_of(node_id)).aliases

    @property
    def input(self) -> Any:
        execution = self._execution
        if "" not in execution.values:
            execution.values[""] = msgspec.json.decode(execution.record.input)
        return execution.values[""]

    def outcome(self, name: str) -> Mapping[str, Any]:
        """How the node that a name means has ended."""
        return outcome_of(self._execution, self.address(name) or name)

    @property
    def ending(self) -> Mapping[str, Any]:
        return end_of(self._execution)

    @property
    def execution(self) -> Mapping[str, Any]:
        record = self._execution.record
        return {"id": record.execution_id, "workflow": record.workflow, "version": record.version}


class ItemOutputs(Outputs):
    """Where the references of a node inside of an item look.

    First at the item and at the nodes of its body, then at what is around it.
    """

    def __init__(self, execution: Execution, item: OpenItem) -> None:
        super().__init__(execution)
        self._item = item

    def _owner(self, name: str) -> OpenItem | None:
        """The innermost item around the node that knows the name; None: the execution itself."""
        item: OpenItem | None = self._item
        while item is not None:
            plan = item.region.plan
            if name in (plan.item_name, plan.index_name) or name in plan.body.numbers:
                return item
            item = item.region.outer
        return None

    def address(self, name: str) -> str | None:
        owner = self._owner(name)
        if owner is None:
            return name
        return owner.address_of(name) if name in owner.region.plan.body.numbers else None

    def keys(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self._key(name) for name in names}

    def _key(self, name: str) -> str:
        owner = self._owner(name)
        return name if owner is None else f"{owner.address}\0{name}"

    def output(self, node_id: str) -> Any:
        values = self._execution.values
        key = self._key(node_id)
        if key not in values:
            values[key] = msgspec.json.decode(self.raw(node_id))
        return values[key]

    def raw(self, node_id: str) -> bytes:
        owner = self._owner(node_id)
        if owner is None:
            return super().raw(node_id)
        region = owner.region
        if node_id in region.plan.body.numbers:
            return self._recorded(node_id, owner.address_of(node_id))
        if node_id == region.plan.index_name:
            return b"%d" % (owner.index + region.first_index)
        return item_value(owner)

    def aliases(self, node_id: str) -> Mapping[str, str]:
        owner = self._owner(node_id)
        if owner is None:
            return super().aliases(node_id)
        body = owner.region.plan.body
        number = body.numbers.get(node_id)
        return NO_ALIASES if number is None else body.nodes[number].aliases


class Undecoded:
    """A scope whose values are JSON text still: large ones are only opened where somebody looks."""

    def __init__(self, scope: Outputs, recorded_input: bytes) -> None:
        self._scope = scope
        self._input = recorded_input

    def output(self, node_id: str) -> Any:
        return msgspec.Raw(self._scope.raw(node_id))

    def aliases(self, node_id: str) -> Mapping[str, str]:
        return self._scope.aliases(node_id)

    @property
    def input(self) -> Any:
        return msgspec.Raw(self._input)

    def outcome(self, name: str) -> Mapping[str, Any]:
        return self._scope.outcome(name)

    @property
    def ending(self) -> Mapping[str, Any]:
        return self._scope.ending

    @property
    def execution(self) -> Mapping[str, Any]:
        return self._scope.execution


def scope_of(execution: Execution, number: int) -> Outputs:
    """Where the references of a node look."""
    if number < execution.static_count:
        return Outputs(execution)
    return ItemOutputs(execution, execution.items[number])


def scope_around(execution: Execution, region: Region) -> Outputs:
    """Where the references of a map or a loop itself look."""
    return scope_of(execution, region.number)


def item_value(item: OpenItem) -> bytes:
    """An item of a map as JSON; of a loop, what the last round carried on. Raises `Missing`."""
    region = item.region
    values = region.values or []  # looked up before any node of the item starts
    if region.plan.each is not None:
        return bytes(values[item.index])
    if not values:
        raise Missing(
            "there is no previous round in the first one;"
            ' set "initial" in repeat, or give a default: {{ previous ?? null }}'
        )
    return bytes(values[0])
