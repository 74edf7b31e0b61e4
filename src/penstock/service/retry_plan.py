"""The plan of a retry: what it reuses of a finished execution, what it runs, and why. Pure.

A node's output is reused if it completed, means the same in the version that runs now, and nothing before it
runs again: what it was given is then what it would be given now. A branch that wasn't taken is
decided again, from the same outputs and so with the same result; what comes after it needn't run
because of that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.definition.plan import Plan, PlanNode
from penstock.engine.commands import NodeRun
from penstock.engine.reasons import Reason
from penstock.engine.states import NodeState
from penstock.errors import NotFound
from penstock.spelling import nearest_name
from penstock.stores.base import Stored

NOT_TAKEN = ("condition_false", "branch_not_taken")
DECIDED_AGAIN = "its branch wasn't taken; the condition is decided again"
ASKED_FOR = "asked for with from"
NEVER_RAN = "never ran"
UNBEGUN = (NodeState.SKIPPED, NodeState.CANCELLED)
ENDED_BADLY = {NodeState.FAILED: "failed", NodeState.CANCELLED: "cancelled"}


class RetryRun(msgspec.Struct):
    """A node that a retry runs, and why."""

    node_id: str
    reason: str


class RetryPlan(msgspec.Struct):
    """A plan of a retry.

    Every node is in one of the two lists, each after those that it depends on.
    """

    version: int
    reused: list[str]
    runs: list[RetryRun]

    @property
    def is_idle(self) -> bool:
        """Whether nothing in a retry could come out differently."""
        return all(run.reason == DECIDED_AGAIN for run in self.runs)


def plan_retry(stored: Stored, old: Plan, new: Plan, *, start: str | None = None) -> RetryPlan:
    """Plan a retry. `start` and all that comes after it run in any case.

    Raises `NotFound` if there is no such node.
    """
    if start is not None and start not in new.numbers:
        name = nearest_name(start, new.numbers)
        hint = f"; did you mean {name!r}?" if name else ""
        raise NotFound(f"{new.name}@{new.version} has no node {start!r}{hint}")
    plan, untaken = RetryPlan(new.version, [], []), _untaken(stored, old)
    unchanged: set[str] = set()
    """Nodes that will be for those after them what they were."""
    for number in new.order:
        node = new.nodes[number]
        parents = (new.nodes[parent].node_id for parent in node.dependencies)
        again = next((name for name in parents if name not in unchanged), None)
        run = untaken.get(node.node_id) or stored.runs.get(node.node_id)
        reason = (
            ASKED_FOR if node.node_id == start else _reason(node, run, old, new) or _after(again)
        )
        if reason is None:
            plan.reused.append(node.node_id)
        else:
            plan.runs.append(RetryRun(node.node_id, reason))
        if reason is None or (reason == DECIDED_AGAIN and again is None and _decides_alike(node)):
            unchanged.add(node.node_id)
    return plan


def _untaken(stored: Stored, old: Plan) -> dict[str, NodeRun]:
    """Branches before a node whose output was reused.

    A retry that ended early may not have come to decide them again.
    """
    found: dict[str, NodeRun] = {}
    before: set[int] = set()
    for number in reversed(old.order):
        node = old.nodes[number]
        run = stored.runs.get(node.node_id)
        if number in before and (run is None or (run.state in UNBEGUN and not run.attempt)):
            found[node.node_id] = NodeRun(node.node_id, NodeState.SKIPPED, reason=NOT_TAKEN[0])
        if number in before or (run is not None and run.reason == Reason.REUSED):
            before.update(node.dependencies)
    return found


def _reason(node: PlanNode, run: NodeRun | None, old: Plan, new: Plan) -> str | None:
    """Why a node runs, whatever comes before it."""
    if node.node_id not in old.numbers:
        return f"new in version {new.version}"
    if run is None or (run.state is NodeState.SKIPPED and run.reason not in NOT_TAKEN):
        return NEVER_RAN
    if run.state in ENDED_BADLY:
        return ENDED_BADLY[run.state]
    if old is not new and _meaning(old, old.nodes[old.numbers[node.node_id]]) != _meaning(
        new, node
    ):
        return f"changed in version {new.version}"
    return DECIDED_AGAIN if run.state is NodeState.SKIPPED else None


def _after(node_id: str | None) -> str | None:
    return None if node_id is None else f"comes after {node_id}, which runs again"


def _decides_alike(node: PlanNode) -> bool:
    """Whether a condition decides alike.

    Not if it asks which execution this is, or was decided before all that it looks at had settled.
    """
    return node.condition is None or (
        "execution" not in node.condition.source and node.rule != "one_success"
    )


def _meaning(plan: Plan, node: PlanNode) -> tuple[Any, ...]:
    """The meaning of a node, what decides over its outcome.

    As JSON, because to Python 1 and true are equal.
    """
    config = msgspec.json.encode(node.config.value, order="deterministic")
    parents = frozenset(plan.nodes[parent].node_id for parent in node.dependencies)
    return (
        node.handler,
        config,
        node.needs,
        parents,
        node.condition and node.condition.source,
        node.rule,
    )
