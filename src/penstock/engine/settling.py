"""A node ends, and its children count it: completing and skipping. `failing` has the third way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.commands import NodeRun
from penstock.engine.events import Value
from penstock.engine.readiness import Outcome
from penstock.engine.reasons import Reason
from penstock.engine.states import NodeState
from penstock.engine.transitions import move_node

if TYPE_CHECKING:
    from penstock.engine.state import Execution


def open_run(execution: Execution, number: int) -> NodeRun:
    """The record of a node that leaves PENDING."""
    node_id = execution.node(number).node_id
    run = NodeRun(node_id, NodeState.PENDING)
    execution.runs[node_id] = run
    return run


def complete(
    execution: Execution, number: int, run: NodeRun, output: Value, reason: str | None = None
) -> None:
    execution.outputs[run.node_id] = output
    commands = execution.commands
    commands.outputs[run.node_id] = output
    if type(output) is bytes:
        commands.size += len(output)
    move_node(execution, run, NodeState.COMPLETED, reason)
    settle(execution, number, Outcome.SUCCESS)


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
