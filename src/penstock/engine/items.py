"""Regions and open items: what is known in memory of a map or a loop that is under way.

A region is derived, never listed. Its node's record says how many items there are (`more.size`) and
how many were opened; an item's address is `each[3]`, its nodes' are `each[3].parse`. A node's
number is `base + index * stride + local number`; the last one of an item stands for itself.
Only open items have objects: counters, and their nodes by number and by address. Of an item that
has ended one byte remains.
"""

from __future__ import annotations

from collections import deque
from heapq import heappush
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from penstock.definition.plan import RegionPlan
from penstock.engine.commands import More, NodeRun
from penstock.engine.events import TaskError
from penstock.engine.identities import Identities
from penstock.engine.readiness import Tally
from penstock.engine.readiness import is_cleanup as cleans_up
from penstock.engine.states import NodeState

if TYPE_CHECKING:
    from penstock.engine.state import Execution

REGION_BITS = 32
"""The nodes of all items of one region have numbers of so many bits behind its own number."""
NOT_ENDED = 0
COMPLETED = 1
FAILED = 2
SKIPPED = 3
CANCELLED = 4
CODES = {
    NodeState.COMPLETED: COMPLETED,
    NodeState.FAILED: FAILED,
    NodeState.SKIPPED: SKIPPED,
    NodeState.CANCELLED: CANCELLED,
}


class Region:
    """A map or a loop that is under way.

    Of a loop the items are its rounds; the item with index 2 is the third round.
    """

    __slots__ = (
        "address",
        "assembled",
        "base",
        "decided",
        "ended",
        "failed",
        "first_index",
        "identities",
        "is_optional",
        "list_bytes",
        "more",
        "number",
        "open",
        "outer",
        "plan",
        "round_is_due",
        "run",
        "stopping",
        "stride",
        "values",
        "without_deadline",
    )

    def __init__(
        self, number: int, run: NodeRun, plan: RegionPlan, base: int, outer: OpenItem | None
    ) -> None:
        self.number = number
        self.address = run.node_id
        self.run = run
        self.more = run.more or More()
        run.more = self.more
        self.plan = plan
        self.base = base
        self.outer = outer
        """The item that it is in."""
        self.first_index = 0 if plan.each else 1
        """What the first item has in its address: rounds are counted from 1."""
        self.stride = len(plan.body.nodes) + 1
        self.ended = bytearray(self.size if plan.each else 0)
        """How each item has ended."""
        self.failed = 0
        """How many items have failed."""
        self.open: dict[int, OpenItem] = {}
        self.values: list[msgspec.Raw] | None = None
        """The list; None until it is looked up: by a new owner, or after it was let go of."""
        self.list_bytes = 0
        """What the list takes in memory."""
        self.assembled: list[bytes] = []
        """Outputs of its items as far as they have been put into its own output."""
        self.identities: Identities | None = None
        """Made when the first one is needed."""
        self.stopping = False
        """Nothing is opened any more, and open items have been stopped."""
        self.is_optional = plan.is_single and plan.body.nodes[0].optional
        """A failure of an item's one node isn't the item's."""
        self.without_deadline: list[OpenItem] = []
        """Items that an earlier owner has opened, with nothing begun."""
        self.decided: tuple[int, bool] | None = None
        """Of a loop: after how many rounds its condition was looked at, and whether it held."""
        self.round_is_due = False
        """The next round of a loop begins as soon as one may be opened."""

    @property
    def size(self) -> int:
        return self.more.size

    @property
    def opened(self) -> int:
        return self.more.opened

    @property
    def has_room(self) -> bool:
        """Whether an item may be opened now, as far as other items are concerned."""
        each = self.plan.each
        more = self.more
        if more.opened >= more.size or self.stopping or each is None:
            return False
        return len(self.open) < each.max_parallel

    @property
    def is_done(self) -> bool:
        if self.open:
            return False
        return self.stopping or self.opened == self.size

    @property
    def has_failed(self) -> bool:
        """Whether so many items have failed that the map fails."""
        each = self.plan.each
        if each is None or not self.failed:
            return False
        return each.on_item_failure in ("fail_fast", "continue") or self.has_too_many_failures

    @property
    def has_too_many_failures(self) -> bool:
        """Whether no more items are to be opened, because of those that failed."""
        each = self.plan.each
        if each is None or not self.failed:
            return False
        if each.max_failures is not None:
            return self.failed > each.max_failures
        if each.max_failures_percent is not None:
            return self.failed * 100 > each.max_failures_percent * self.size
        return each.on_item_failure == "fail_fast"

    def item_address(self, index: int) -> str:
        return f"{self.address}[{index + self.first_index}]"

    def close(self, index: int, state: NodeState, *, is_optional: bool = False) -> None:
        """Note how an item has ended; `is_optional`: its failure doesn't count."""
        code = CODES[state]
        if code == FAILED and is_optional:
            code = COMPLETED
        self.failed += code == FAILED
        while len(self.ended) <= index:
            self.ended.append(NOT_ENDED)
        self.ended[index] = code


class OpenItem:
    """An item that is under way: it settles and fails like an execution of its own."""

    __slots__ = (
        "address",
        "base",
        "error",
        "error_node_id",
        "failing",
        "index",
        "opened_at",
        "own_number",
        "region",
        "tally",
        "timed_out",
        "unfinished",
    )

    def __init__(self, region: Region, index: int) -> None:
        self.region = region
        self.index = index
        self.address = region.item_address(index)
        self.base = region.base + index * region.stride
        self.own_number = self.base + region.stride - 1
        """The number of the item itself."""
        self.tally = Tally(region.plan.body)
        self.unfinished = len(region.plan.body.nodes)
        self.failing = False
        """Only nodes for clean-up still start."""
        self.timed_out = False
        self.opened_at: float | None = None
        """Known if the item has a time limit: every node of it records the moment."""
        self.error: TaskError | None = None
        self.error_node_id: str | None = None

    def address_of(self, node_id: str) -> str:
        """The address of a node of the body."""
        if self.region.plan.is_single:
            return self.address
        return f"{self.address}.{node_id}"

    def fail(self, run: NodeRun) -> None:
        """A node of it has failed for good."""
        self.error = run.failures[-1].error
        self.error_node_id = run.node_id


def begin_region(execution: Execution, number: int, run: NodeRun, plan: RegionPlan) -> Region:
    """The region of a map or a loop that is WAITING."""
    outer = execution.item_of(number)
    region = Region(number, run, plan, (number + 1) << REGION_BITS, outer)
    if execution.filling.maxlen is not None:
        execution.filling = deque()
        execution.ended_items = deque()
        execution.ended_regions = deque()
    execution.regions[number] = region
    return region


def open_item(execution: Execution, region: Region, index: int) -> OpenItem:
    """An item with its nodes; none of them is considered yet."""
    item = OpenItem(region, index)
    region.open[index] = item
    base = item.base
    for local, compiled in enumerate(region.plan.body.nodes):
        number = base + local
        node = structs.replace(compiled, node_id=item.address_of(compiled.node_id))
        if compiled.dependencies:
            node.dependencies = tuple([base + parent for parent in compiled.dependencies])
        execution.items[number] = item
        execution.item_nodes[number] = node
        execution.item_numbers[node.node_id] = number
    execution.items[item.own_number] = item
    return item


def close_item(execution: Execution, item: OpenItem) -> None:
    """Forget the nodes of an item that has ended."""
    del item.region.open[item.index]
    del execution.items[item.own_number]
    for number in range(item.base, item.own_number):
        node = execution.item_nodes.pop(number)
        del execution.items[number]
        del execution.item_numbers[node.node_id]
        execution.readied.discard(number)
        execution.preparing.discard(number)
        execution.prepared.pop(node.node_id, None)
        execution.unprepared.pop(node.node_id, None)


def first_failure(execution: Execution, item: OpenItem) -> NodeRun | None:
    """The node whose failure is the item's: by the records, so that every owner names the same."""
    failed: list[NodeRun] = []
    for number in range(item.base, item.own_number):
        node = execution.item_nodes[number]
        run = execution.runs.get(node.node_id)
        if run is not None and run.state is NodeState.FAILED and not node.optional:
            failed.append(run)
    return min(failed, key=lambda run: (run.finished_at or 0.0, run.node_id), default=None)


def is_cleanup(execution: Execution, number: int) -> bool:
    """Whether a node still starts when its execution or item is failing fast."""
    return cleans_up(execution.node(number))


def is_stopped_from_outside(execution: Execution, region: Region) -> bool:
    """Whether the execution or the item around a region is failing fast."""
    outer = region.outer
    is_failing = execution.record.failing if outer is None else outer.failing
    return is_failing and not is_cleanup(execution, region.number)


def must_stop(execution: Execution, region: Region) -> bool:
    """Whether nothing may be opened any more, as the records have it."""
    if is_stopped_from_outside(execution, region) or region.more.timed_out:
        return True
    # one node may have failed in a commit before the one that was to stop the others
    return region.has_too_many_failures and not region.plan.is_single


def arm_item(execution: Execution, item: OpenItem, opened_at: float) -> None:
    """Set the deadline of an item, counted from its opening."""
    each = item.region.plan.each
    if each is None or each.item_timeout_seconds is None:
        return
    item.opened_at = opened_at
    due_at = opened_at + each.item_timeout_seconds
    heappush(execution.deadlines, (due_at, item.own_number, 0, "item"))
