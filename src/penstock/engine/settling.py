"""A node ends, and its children count it: completing and skipping. `failing` has the third way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.commands import More, NodeRun
from penstock.engine.events import Value
from penstock.engine.items import arm_item
from penstock.engine.readiness import Outcome
from penstock.engine.reasons import Reason
from penstock.engine.states import ExecutionState, NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.items import OpenItem
    from penstock.engine.state import Execution

# looked up here, once: in Python 3.11 a member of an enum costs as much as a call
PENDING = NodeState.PENDING
COMPLETED = NodeState.COMPLETED
SUCCESS = Outcome.SUCCESS


def open_run(execution: Execution, number: int) -> NodeRun:
    """The record of a node that leaves PENDING."""
    is_static = number < execution.static_count
    node = execution.nodes[number] if is_static else execution.item_nodes[number]
    node_id = node.node_id
    run = NodeRun(node_id, PENDING)
    execution.runs[node_id] = run
    if number >= execution.static_count:
        item = execution.items[number]
        if item.opened_at is None and execution.record.state is ExecutionState.RUNNING:
            # an earlier owner has opened it, with nothing begun
            arm_item(execution, item, execution.now)
        if item.opened_at is not None:
            run.more = More(item_opened_at=item.opened_at)
    return run


def run_of_item(execution: Execution, item: OpenItem) -> NodeRun:
    """The record of an item itself, which most items have from their end on."""
    run = execution.runs.get(item.address)
    if run is None:
        run = NodeRun(item.address, PENDING)
        execution.runs[item.address] = run
    return run


def complete(
    execution: Execution, number: int, run: NodeRun, output: Value, reason: str | None = None
) -> None:
    execution.outputs[run.node_id] = output
    commands = execution.commands
    commands.outputs[run.node_id] = output
    if type(output) is bytes:
        commands.size += len(output)
    move_node(execution, run, COMPLETED, reason)
    settle(execution, number, SUCCESS)


def skip(execution: Execution, number: int, reason: Reason) -> None:
    run = open_run(execution, number)
    move_node(execution, run, NodeState.SKIPPED, reason)
    failed_before = reason is Reason.UPSTREAM_FAILED
    settle(execution, number, Outcome.FAILURE if failed_before else Outcome.SKIP)


def settle(execution: Execution, number: int, outcome: Outcome) -> None:
    """Count a node that has ended for its children, and consider those that it decides."""
    if number >= execution.static_count:
        _settle_in_item(execution, number, outcome)
        return
    nodes = execution.nodes
    if nodes[number].catches:
        execution.ended_catchers.append(number)
    execution.considered.extend(execution.tally.settle(nodes[number], outcome, nodes))


def _settle_in_item(execution: Execution, number: int, outcome: Outcome) -> None:
    item = execution.items[number]
    base = item.base
    nodes = item.region.plan.body.nodes
    local = number - base
    children = item.tally.settle(nodes[local], outcome, nodes)
    execution.considered.extend([base + child for child in children])
