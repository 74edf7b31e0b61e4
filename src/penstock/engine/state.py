"""One run of one version: its state in memory, and how it is loaded.

The fields that are stored are `record`, `runs` (a record per node that has left PENDING) and
`outputs`. Everything else (how many parents of each node are unsettled, which nodes are ready,
which deadlines lie ahead) is derived from these when an execution is loaded, so it can't disagree
with them. This module has the fields and no behaviour: `handling` says where that is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import chain
from typing import Any

from msgspec import structs

from penstock.definition.plan import Plan, PlanNode
from penstock.engine import deadlines
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun
from penstock.engine.events import AddedNode, Blob, Value
from penstock.engine.preparing import Preparation, Prepared
from penstock.engine.readiness import Tally, outcome_of
from penstock.engine.reasons import Reason
from penstock.engine.states import NODE_ENDS, ExecutionState, NodeState

NO_COMMANDS = Commands("")
"""Stands where no event has been handled since the last commit."""

INLINE_BYTES_MAX = 256 * 1024
"""How much one event may have decoded and converted in the decision itself.

That is 20 ms of the loop for the dearest of JSON. What is left over is prepared elsewhere.
"""


class Execution:
    """The state of one execution in memory.

    A node's *number* is its index in `nodes`; its id is `nodes[number].node_id`.
    """

    __slots__ = (
        "blocked",
        "commands",
        "considered",
        "deadlines",
        "deadlines_paused",
        "inline_bytes",
        "last_seq",
        "loaded",
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
        "returned",
        "reused",
        "runs",
        "tally",
        "unfinished_nodes",
        "unprepared",
        "values",
        "wake_at",
        "wanted",
    )

    def __init__(
        self,
        plan: Plan,
        record: ExecutionRecord,
        runs: Iterable[NodeRun] = (),
        outputs: dict[str, Value] | None = None,
        last_seq: int = 0,
    ) -> None:
        self.plan = plan
        self.record = record
        self.runs: dict[str, NodeRun] = {}
        """By id, the records of nodes that have left PENDING."""
        self.outputs: dict[str, Value] = outputs or {}
        self.last_seq = last_seq
        """`seq` of the last history line."""

        self.nodes: list[PlanNode] = plan.nodes
        self.numbers: dict[str, int] = plan.numbers
        """By id, the number of each node."""
        self.unfinished_nodes = len(plan.nodes)
        self.tally = Tally(plan)
        self.reused: list[tuple[int, Value]] = []
        """Numbers and outputs of nodes that an earlier execution has completed, last first."""

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
        self.inline_bytes = INLINE_BYTES_MAX
        """How much may still be decoded in the decision on this event."""

        self.deadlines: list[deadlines.Deadline] = []
        """A heap. Deadlines of attempts that are over stay in it, and have no effect."""
        self.deadlines_paused: list[deadlines.Deadline] = []
        """Deadlines that came while the execution was paused, and wait for its end."""
        self.wake_at: float | None = None
        """When the stored timer fires."""

        self.now = 0.0
        self.commands = NO_COMMANDS
        self.returned: set[tuple[str, int, str]] = set()
        """Node, attempt and worker of tasks that were handed back."""
        if record.added:
            append_nodes(self, record.added)
        if record.state != ExecutionState.PENDING:
            _restore(self, runs)

    def node_of(self, run: NodeRun) -> PlanNode:
        return self.nodes[self.numbers[run.node_id]]

    def in_order(self) -> Iterable[int]:
        """The numbers of all nodes, each after its parents."""
        return chain(self.plan.order, range(len(self.plan.nodes), len(self.nodes)))

    def take_commands(self) -> Commands:
        """Everything that was decided since the last time, for one commit."""
        commands = self.commands
        self.commands = NO_COMMANDS
        return commands

    def take_unprepared(self) -> dict[str, Preparation]:
        """What has to be computed elsewhere, by node id. Each is given out once."""
        unprepared = self.unprepared
        self.unprepared = {}
        return unprepared


def _restore(execution: Execution, runs: Iterable[NodeRun]) -> None:
    """After a load: counts, deadlines, and every pending node to be considered again."""
    deadlines.arm_execution(execution)
    for run in runs:
        number = execution.numbers[run.node_id]
        node = execution.nodes[number]
        execution.runs[run.node_id] = run
        if run.state in NODE_ENDS:
            execution.unfinished_nodes -= 1
            execution.tally.settle(node, number, outcome_of(node, run))
        elif run.state is NodeState.RETRYING and run.due_at is not None:
            deadlines.arm(execution, run.due_at, run, "retry")
        elif run.state is NodeState.RUNNING:
            deadlines.arm_backstop(execution, run)
        elif run.state is NodeState.QUEUED:
            deadlines.arm_queue(execution, run)
            if run.reason == Reason.RETURNED:
                execution.ready.append(number)
    execution.considered.extend(
        number
        for number in execution.in_order()
        if execution.nodes[number].node_id not in execution.runs
    )


def append_nodes(execution: Execution, added: Iterable[AddedNode]) -> list[int]:
    """Add nodes beside the plan's, and return their numbers.

    The plan is shared by all executions of the version, so its lists are copied first.
    """
    plan = execution.plan
    if execution.nodes is plan.nodes:
        execution.nodes = plan.nodes.copy()
        execution.numbers = plan.numbers.copy()
    numbers: list[int] = []
    for node in added:
        number = len(execution.nodes)
        execution.numbers[node.node_id] = number
        parents = tuple(execution.numbers[parent_id] for parent_id in node.dependencies)
        like = plan.nodes[plan.numbers[node.like]]
        execution.nodes.append(
            structs.replace(like, node_id=node.node_id, dependencies=parents, children=())
        )
        execution.unfinished_nodes += 1
        execution.tally.append(number, parents)
        _count_settled(execution, number, parents)
        numbers.append(number)
    return numbers


def _count_settled(execution: Execution, number: int, parents: tuple[int, ...]) -> None:
    for parent in parents:
        run = execution.runs.get(execution.nodes[parent].node_id)
        if run is not None and run.state in NODE_ENDS:
            execution.tally.count(number, outcome_of(execution.nodes[parent], run))
