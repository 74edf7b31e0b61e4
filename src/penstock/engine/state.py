"""One run of one version: its state in memory, and how it is loaded.

The fields that are stored are `record`, `runs` (a record per node that has left PENDING) and
`outputs`. Everything else (how many parents of each node are unsettled, which nodes are ready,
which deadlines lie ahead, which items of a map are open) is derived from these when an execution is
loaded, so it can't disagree with them. This module has the fields and no behaviour: `handling` says
where that is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from penstock.definition.plan import Plan, PlanNode, RegionPlan
from penstock.engine import deadlines
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun
from penstock.engine.events import Blob, SignalReceived, Value
from penstock.engine.items import (
    OpenItem,
    Region,
    arm_item,
    begin_region,
    first_failure,
    must_stop,
    open_item,
)
from penstock.engine.mailbox import Mailbox
from penstock.engine.preparing import Preparation, Prepared
from penstock.engine.readiness import Tally, outcome_of
from penstock.engine.reasons import Reason
from penstock.engine.states import NODE_ENDS, ExecutionState, NodeState
from penstock.engine.waiting import listen

if TYPE_CHECKING:
    from penstock.engine.children import Found, Lookup

PENDING = ExecutionState.PENDING  # looked up here, once: see `settling`
NO_WORK: deque[Any] = deque(maxlen=0)
"""Stands for the worklists of maps and loops in the many executions that have none."""
NO_COMMANDS = Commands("")
"""Stands where no event has been handled since the last commit."""

LISTENING_HANDLERS = frozenset({"signal", "approval"})
"""Of nodes that wait for signals."""
INLINE_BYTES_MAX = 256 * 1024
"""How much one event may have decoded and converted in the decision itself.

That is 20 ms of the loop for the dearest of JSON. What is left over is prepared elsewhere.
"""


class Execution:
    """The state of one execution in memory.

    A node's *number* is its index in the plan, or follows from the base of its item. Its id is its
    address. `node`, `number_of` and `item_of` know both kinds; no other module looks into `nodes`.
    """

    __slots__ = (
        "_mailbox",
        "blocked",
        "commands",
        "considered",
        "deadlines",
        "deadlines_paused",
        "ended_catchers",
        "ended_items",
        "ended_regions",
        "filling",
        "firing_until",
        "found",
        "inline_bytes",
        "item_nodes",
        "item_numbers",
        "items",
        "kept_items",
        "last_seq",
        "loaded",
        "lookups",
        "nodes",
        "now",
        "numbers",
        "outputs",
        "plan",
        "prepared",
        "preparing",
        "readied",
        "ready",
        "record",
        "regions",
        "returned",
        "reused",
        "runs",
        "static_count",
        "tally",
        "unfinished_nodes",
        "unhandled",
        "unprepared",
        "values",
        "wake_at",
        "wanted",
    )

    def __init__(  # noqa: PLR0913, PLR0915, PLR0917 -- the fields of an execution
        self,
        plan: Plan,
        record: ExecutionRecord,
        runs: Iterable[NodeRun] = (),
        outputs: dict[str, Value] | None = None,
        last_seq: int = 0,
        signals: Sequence[SignalReceived] = (),
    ) -> None:
        self.plan = plan
        self.record = record
        self.runs: dict[str, NodeRun] = {}
        """By id, the records of nodes that have left PENDING."""
        self.outputs: dict[str, Value] = outputs or {}
        self.last_seq = last_seq
        """`seq` of the last history line."""
        self._mailbox = Mailbox(signals) if signals else None

        self.nodes: list[PlanNode] = plan.nodes
        self.numbers: dict[str, int] = plan.numbers
        """By id, the number of each node."""
        self.static_count = len(plan.nodes)
        """Nodes of the plan: smaller numbers are theirs, larger ones are inside of items."""
        self.unfinished_nodes = len(plan.nodes)
        self.tally = Tally(plan)
        self.reused: list[tuple[int, Value]] = []
        """Numbers and outputs of nodes that an earlier execution has completed, last first."""

        self.kept_items: dict[str, dict[str, Value]] = {}
        """By map and identity, outputs of items that an earlier execution has completed."""

        self.considered: deque[int] = deque()
        """Nodes of which a parent has settled: they may start now, or be skipped."""
        self.ready: deque[int] = deque()
        """Nodes that start with this commit, or with one of the next."""
        self.readied: set[int] = set()
        """Nodes that have been in `ready`: each gets there once by its trigger rule."""
        self.blocked: list[int] = []
        """Ready nodes that need outputs which aren't in memory: see `wanted`."""
        self.wanted: dict[str, Blob] = {}
        """By node id, large outputs that have to be fetched before `blocked` nodes can start."""
        self.loaded: dict[str, bytes] = {}
        """By node id, large outputs that were fetched."""
        self.values: dict[str, Any] = {}
        """Decoded outputs by node id, and the input, while one event is handled."""

        self.unprepared: dict[str, Preparation] = {}
        """By node id, what has to be computed elsewhere before the node can start."""
        self.preparing: set[int] = set()
        """Nodes whose preparation was asked for and isn't here yet."""
        self.prepared: dict[str, Prepared] = {}
        """By node id, what was computed elsewhere."""
        self.lookups: dict[str, Lookup] = {}
        """By node id, what has to be looked up elsewhere before a child can begin."""
        self.found: dict[str, Found] = {}
        """By node id, what was looked up for a child."""
        self.inline_bytes = INLINE_BYTES_MAX
        """How much may still be decoded in the decision on this event."""

        self.deadlines: list[deadlines.Deadline] = []
        """A heap. Deadlines of attempts that are over stay in it, and have no effect."""
        self.deadlines_paused: list[deadlines.Deadline] = []
        """Deadlines that came while the execution was paused, and wait for its end."""
        self.wake_at: float | None = None
        """When the stored timer fires."""
        self.firing_until: float | None = None
        """Deadlines until then are due and have their effects, one after another."""

        self.ended_catchers: list[int] = []
        """Catchers that have ended while one event is handled: see `catching`."""
        self.unhandled: set[int] = set()
        """Failures that waited for a catcher, and were recorded as unhandled by this owner."""

        self.now = 0.0
        self.commands = NO_COMMANDS
        self.returned: set[tuple[str, int, str]] = set()
        """Node, attempt and worker of tasks that were handed back."""

        self.regions: dict[int, Region] = {}
        """By the number of their node, the maps and loops that are under way."""
        self.items: dict[int, OpenItem] = {}
        """By the number of each of their nodes, the open items."""
        self.item_nodes: dict[int, PlanNode] = {}
        """By number, the nodes of open items, with their addresses."""
        self.item_numbers: dict[str, int] = {}
        """By address, the numbers of nodes of open items."""
        self.filling: deque[Region] = NO_WORK
        """Regions that may open items."""
        self.ended_items: deque[OpenItem] = NO_WORK
        """Items whose last node has ended."""
        self.ended_regions: deque[Region] = NO_WORK
        """Regions of which no item is open, and none may be opened."""
        if record.state is not PENDING:
            _restore(self, runs)

    def node(self, number: int) -> PlanNode:
        return self.nodes[number] if number < self.static_count else self.item_nodes[number]

    def node_of(self, run: NodeRun) -> PlanNode:
        return self.node(self.number_of(run.node_id))

    def number_of(self, node_id: str) -> int:
        """The number of a node of the plan or of an open item."""
        number = self.numbers.get(node_id)
        return self.item_numbers[node_id] if number is None else number

    @property
    def mailbox(self) -> Mailbox:
        """Signals that were received, and who waits for one; most executions have none."""
        if self._mailbox is None:
            self._mailbox = Mailbox()
        return self._mailbox

    @property
    def has_mailbox(self) -> bool:
        return self._mailbox is not None

    def has_node(self, node_id: str) -> bool:
        """Whether there is a node of this address in the plan or in an open item."""
        return node_id in self.numbers or node_id in self.item_numbers

    def has_number(self, number: int) -> bool:
        """Whether there is such a node: those of items that have ended are gone."""
        return number < self.static_count or number in self.item_nodes

    def item_of(self, number: int) -> OpenItem | None:
        """The open item that a node is in."""
        return None if number < self.static_count else self.items[number]

    def open_runs(self) -> Iterator[NodeRun]:
        """The records of nodes of the plan and of open items: none of items that have ended."""
        for node in chain(self.nodes, self.item_nodes.values()):
            run = self.runs.get(node.node_id)
            if run is not None:
                yield run

    def in_order(self, item: OpenItem | None = None) -> Iterable[int]:
        """The numbers of all nodes of the plan or of an item, each after its parents."""
        if item is None:
            return self.plan.order
        return [item.base + number for number in item.region.plan.body.order]

    def node_count(self) -> int:
        """How many nodes there are now."""
        return self.static_count + len(self.item_nodes)

    def take_commands(self) -> Commands:
        """Everything that was decided since the last time, for one commit."""
        commands = self.commands
        self.commands = NO_COMMANDS
        return commands

    def take_lookups(self) -> dict[str, Lookup]:
        """What has to be looked up for children, by node id. Each is given out once."""
        lookups = self.lookups
        self.lookups = {}
        return lookups

    def take_unprepared(self) -> dict[str, Preparation]:
        """What has to be computed elsewhere, by node id. Each is given out once."""
        unprepared = self.unprepared
        self.unprepared = {}
        return unprepared


def _restore(execution: Execution, runs: Iterable[NodeRun]) -> None:
    """After a load: counts, deadlines, and every pending node to be considered again."""
    deadlines.arm_execution(execution)
    execution.runs.update((run.node_id, run) for run in runs)
    if execution.has_mailbox:
        execution.mailbox.restore(execution.runs.values())
    for node_id, run in execution.runs.items():
        number = execution.numbers.get(node_id)
        if number is not None:  # the others are restored with their items
            _restore_node(execution, number, run)
    execution.considered.extend(
        number
        for number in execution.in_order()
        if execution.nodes[number].node_id not in execution.runs
    )


def _restore_node(execution: Execution, number: int, run: NodeRun) -> None:
    node = execution.node(number)
    if run.state in NODE_ENDS:
        item = execution.item_of(number)
        if item is None:
            execution.unfinished_nodes -= 1
            execution.tally.settle(node, outcome_of(node, run))
        else:
            item.unfinished -= 1
            local = number - item.base
            item.tally.settle(item.region.plan.body.nodes[local], outcome_of(node, run))
    elif run.state is NodeState.RETRYING and run.due_at is not None:
        deadlines.arm(execution, run.due_at, run, "retry")
    elif run.state is NodeState.RUNNING:
        deadlines.arm_backstop(execution, run)
    elif run.state is NodeState.QUEUED:
        deadlines.arm_queue(execution, run)
        if run.reason == Reason.RETURNED:
            execution.ready.append(number)
    elif run.state is NodeState.WAITING and node.region is not None:
        _restore_region(execution, number, run, node.region)
    elif run.state is NodeState.WAITING:
        deadlines.arm_waiting(execution, run)
        if node.handler in LISTENING_HANDLERS:
            listen(execution, number, run)


def _restore_region(execution: Execution, number: int, run: NodeRun, plan: RegionPlan) -> None:
    """A map or loop that is under way: which items have ended and how, and the open ones."""
    region = begin_region(execution, number, run, plan)
    deadlines.arm_region(execution, run)
    runs = execution.runs
    still_open: list[int] = []
    for index in range(region.opened):
        ended = runs.get(region.item_address(index))
        if ended is not None and ended.state in NODE_ENDS:
            region.close(index, ended.state, is_optional=region.is_optional)
        else:
            still_open.append(index)
    region.stopping = must_stop(execution, region)
    execution.filling.append(region)
    is_over = not still_open and (plan.repeat is not None or region.is_done)
    if is_over or region.has_too_many_failures:
        execution.ended_regions.append(region)
    for index in still_open:
        _restore_item(execution, open_item(execution, region, index))


def _restore_item(execution: Execution, item: OpenItem) -> None:
    runs = execution.runs
    numbers = execution.in_order(item)
    begun = [
        (number, runs[execution.item_nodes[number].node_id])
        for number in numbers
        if execution.item_nodes[number].node_id in runs
    ]
    failed = first_failure(execution, item)
    if failed is not None:
        item.fail(failed)
        item.failing = execution.plan.on_failure == "fail_fast"
    own_run = None if item.region.plan.is_single else runs.get(item.address)
    if own_run is not None:
        item.timed_out = True
        item.failing = True
    if item.region.stopping:
        item.failing = True
    opened_at = _opened_at(run for _, run in begun)
    if opened_at is None:
        item.region.without_deadline.append(item)
    else:
        arm_item(execution, item, opened_at)
    for number, run in begun:
        _restore_node(execution, number, run)
    if not item.unfinished:
        execution.ended_items.append(item)
    execution.considered.extend(
        number for number in numbers if execution.item_nodes[number].node_id not in runs
    )


def _opened_at(runs: Iterable[NodeRun]) -> float | None:
    """When an item was opened, from the records of its nodes; None if none of them has it."""
    for run in runs:
        if run.more is not None and run.more.item_opened_at is not None:
            return run.more.item_opened_at
    return None
