"""Items of maps: their identities, the nodes inside of them, and their ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from msgspec import structs

from penstock.definition.addresses import INDEX, node_at
from penstock.definition.plan import Plan, PlanNode
from penstock.definition.template import Missing
from penstock.engine.commands import NodeRun, Transition
from penstock.engine.identities import DuplicateKey, identities_of
from penstock.engine.outputs import Outputs
from penstock.engine.regions import list_of
from penstock.engine.state import Execution
from penstock.engine.states import NODE_ENDS
from penstock.errors import NotFound
from penstock.service.executions import Executions, no_node
from penstock.service.live_events import LiveEvents
from penstock.stores.base import BlobStore, Stored, Stores
from penstock.stores.blobs import fetch_outputs
from penstock.views.errors import error_view
from penstock.views.nodes import ItemLine, ListedNode, item_counts, last_error, node_view
from penstock.views.values import undecoded

NO_LINES = 2**62
"""Behind all history lines of an execution."""


async def identities_in(stored: Stored, plan: Plan, blobs: BlobStore) -> dict[str, list[str]]:
    """By map, the identities of its items: of maps of the plan that have begun.

    Without maps whose list can't be made again.
    """
    identities: dict[str, list[str]] = {}
    for node in plan.nodes:
        run = stored.runs.get(node.node_id)
        is_map = node.region is not None and node.region.each is not None
        if is_map and run is not None and run.more is not None:
            of_map = await identities_of_map(stored, plan, node, blobs)
            if of_map is not None:
                identities[node.node_id] = of_map
    return identities


async def identities_of_map(
    stored: Stored, plan: Plan, node: PlanNode, blobs: BlobStore
) -> list[str] | None:
    """The identities of the items of a map of the plan; None if its list can't be made again."""
    region = node.region
    if region is None or region.source is None:
        return None
    needed = {name: stored.outputs[name] for name in region.needs if name in stored.outputs}
    outputs = await fetch_outputs(needed, blobs)
    runs = [stored.runs[name] for name in region.needs if name in stored.runs]
    execution = Execution(plan, stored.record, runs, {**outputs})
    try:
        values = list_of(execution, region.source, Outputs(execution))
        return identities_of(region, values)
    except (Missing, DuplicateKey):
        return None


class Items:
    """Nodes inside of items, in pages, and items in the order of their ends."""

    def __init__(self, stores: Stores, executions: Executions, live_events: LiveEvents) -> None:
        self._stores = stores
        self._executions = executions
        self._live_events = live_events

    async def nodes(
        self, execution_id: str, under: str | None, state: str | None, position: int, limit: int
    ) -> list[ListedNode]:
        """Nodes in the order of their addresses, from a position on.

        Without `under`, the nodes of the plan; else what is inside of that map, loop or item and
        has begun.
        """
        stored = await self._executions.stored(execution_id)
        plan = await self._executions.plan(stored.record)
        if under is None:
            addresses = [node.node_id for node in plan.nodes]
        else:
            self._check_address(plan, under)
            addresses = _inside(stored.runs, under)
        if state is not None:
            runs = stored.runs
            addresses = [node_id for node_id in addresses if _state(runs, node_id) == state]
        addresses = addresses[position : position + limit]
        values = {name: stored.outputs[name] for name in addresses if name in stored.outputs}
        outputs = await self._executions.outputs(values)
        waits = await self._executions.waiting.of_nodes(stored.record, stored.runs, plan)
        return [self._view(stored, plan, node_id, outputs, waits) for node_id in addresses]

    def _check_address(self, plan: Plan, address: str) -> None:
        if node_at(plan, address) is None:
            raise NotFound(no_node(address, plan))

    def _view(
        self,
        stored: Stored,
        plan: Plan,
        node_id: str,
        outputs: Mapping[str, bytes],
        waits: Mapping[str, tuple[str, str]],
    ) -> ListedNode:
        run = stored.runs.get(node_id)
        output = undecoded(outputs[node_id]) if node_id in outputs else None
        view = node_view(run, output, waits.get(node_id))
        node = node_at(plan, node_id)
        if node is not None and node.region is not None:
            is_loop = node.region.repeat is not None
            view.items = item_counts(run, stored.runs, is_loop=is_loop)
        return ListedNode(node_id=node_id, **structs.asdict(view))

    async def check(self, execution_id: str, node_id: str) -> None:
        """Raise `NotFound` if the execution has no such map or loop."""
        await self._plan_with(execution_id, node_id)

    async def _plan_with(self, execution_id: str, node_id: str) -> tuple[Plan, PlanNode]:
        """The execution's plan, and a map or a loop in it. Raises `NotFound`."""
        stored = await self._executions.since(execution_id, NO_LINES)
        plan = await self._executions.plan(stored.record)
        node = node_at(plan, node_id)
        if node is None or node.region is None:
            raise NotFound(f"{node_id!r} is no map or loop of execution {execution_id}")
        return plan, node

    async def ends(
        self, execution_id: str, node_id: str, after: int, *, follow: bool
    ) -> AsyncGenerator[list[ItemLine], None]:
        """The items of a map that have ended, in the order of their ends.

        With `follow` it goes on until the map has ended. The whole execution is read once; then
        only what is new.
        """
        plan, node = await self._plan_with(execution_id, node_id)
        keys: list[str] = []
        if not follow:
            stored = await self._executions.stored(execution_id)
            keys = await self._keys(stored, plan, node)
            yield await self._lines(stored, node_id, stored.history, after, keys)
            return
        newest: Stored | None = None
        async with aclosing(self._live_events.execution(execution_id)) as batches:
            async for lines in batches:
                if any(_is_end_of_item(line, node_id) and line.seq > after for line in lines):
                    if newest is None:
                        newest = await self._executions.stored(execution_id)
                        keys = await self._keys(newest, plan, node)
                    elif newest.last_seq < lines[-1].seq:
                        newest = await self._executions.since(execution_id, lines[0].seq - 1)
                    yield await self._lines(newest, node_id, lines, after, keys)
                is_over = any(line.node_id == node_id and line.after in NODE_ENDS for line in lines)
                if is_over:
                    return

    async def _keys(self, stored: Stored, plan: Plan, node: PlanNode) -> list[str]:
        """The identities of the items of a map that has begun; none of one inside of another."""
        if node.node_id not in plan.numbers:
            return []
        return await identities_of_map(stored, plan, node, self._stores.blobs) or []

    async def _lines(
        self,
        stored: Stored,
        node_id: str,
        lines: Sequence[Transition],
        after: int,
        keys: Sequence[str],
    ) -> list[ItemLine]:
        ended = [line for line in lines if _is_end_of_item(line, node_id) and line.seq > after]
        addresses = [line.node_id for line in ended]
        values = {name: stored.outputs[name] for name in addresses if name in stored.outputs}
        outputs = await self._executions.outputs(values)
        items: list[ItemLine] = []
        for line in ended:
            index = int(line.node_id[len(node_id) + 1 : -1])
            run = stored.runs.get(line.node_id)
            output = outputs.get(line.node_id)
            items.append(
                ItemLine(
                    seq=line.seq,
                    index=index,
                    key=keys[index] if index < len(keys) else None,
                    state=str(line.after),
                    output=None if output is None else undecoded(output),
                    error=error_view(last_error(run)) if run else None,
                )
            )
        return items


def _state(runs: Mapping[str, NodeRun], node_id: str) -> str:
    run = runs.get(node_id)
    return str(run.state) if run else "PENDING"


def _inside(runs: Mapping[str, NodeRun], under: str) -> list[str]:
    """The addresses inside of a map, a loop or an item, in the order of their indexes."""
    starts = (f"{under}[", f"{under}.")
    return sorted((node_id for node_id in runs if node_id.startswith(starts)), key=_natural)


def _natural(address: str) -> list[tuple[str, int]]:
    """So that `each[9]` comes before `each[10]`."""
    pieces = INDEX.split(address)
    return [
        (text, int(number)) for text, number in zip(pieces[::2], [*pieces[1::2], "-1"], strict=True)
    ]


def _is_end_of_item(line: Transition, node_id: str) -> bool:
    if line.after not in NODE_ENDS or not line.node_id.startswith(f"{node_id}["):
        return False
    index = line.node_id[len(node_id) + 1 : -1]
    return line.node_id.endswith("]") and index.isdecimal()
