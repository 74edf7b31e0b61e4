"""What an execution keeps in memory beside its records, made from them: so it can't disagree with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import structs

from penstock.engine.commands import RETURNED, NodeRun
from penstock.engine.events import AddedNode
from penstock.engine.readiness import outcome_of
from penstock.engine.states import NODE_ENDS, NodeState

if TYPE_CHECKING:
    from penstock.engine.execution import Execution


def restore(execution: Execution, runs: Iterable[NodeRun]) -> None:
    """After a load: counts, deadlines, and every pending node to be looked at again."""
    execution.arm_execution()
    for run in runs:
        number = execution.numbers[run.node_id]
        node = execution.nodes[number]
        execution.runs[run.node_id] = run
        if run.state in NODE_ENDS:
            execution.open -= 1
            execution.tally.settle(node, number, outcome_of(node, run))
        elif run.state is NodeState.RETRYING and run.due_at is not None:
            execution.arm(run.due_at, run, "retry")
        elif run.state is NodeState.RUNNING:
            execution.arm_backstop(run)
        elif run.state is NodeState.QUEUED:
            execution.arm_queue(run)
            if run.reason == RETURNED:
                execution.ready.append(number)
    pending = (i for i in execution.in_order() if execution.nodes[i].node_id not in execution.runs)
    execution.considered.extend(pending)


def append_nodes(execution: Execution, added: Iterable[AddedNode]) -> list[int]:
    """Nodes beside the plan's: the plan is shared by all executions of the version, so it is copied first."""
    plan = execution.plan
    if execution.nodes is plan.nodes:
        execution.nodes, execution.numbers = plan.nodes.copy(), plan.numbers.copy()
    fresh: list[int] = []
    for node in added:
        number = execution.numbers[node.node_id] = len(execution.nodes)
        parents = tuple(execution.numbers[node_id] for node_id in node.dependencies)
        like = plan.nodes[plan.numbers[node.like]]
        execution.nodes.append(
            structs.replace(like, node_id=node.node_id, dependencies=parents, children=())
        )
        execution.open += 1
        execution.tally.append(number, parents)
        _count_settled(execution, number, parents)
        fresh.append(number)
    return fresh


def _count_settled(execution: Execution, number: int, parents: tuple[int, ...]) -> None:
    for parent in parents:
        run = execution.runs.get(execution.nodes[parent].node_id)
        if run is not None and run.state in NODE_ENDS:
            execution.tally.count(number, outcome_of(execution.nodes[parent], run))
