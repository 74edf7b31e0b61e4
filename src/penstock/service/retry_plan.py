"""The plan of a retry: what it reuses of a finished execution, what it runs, and why. Pure.

A node's output is reused if the node completed, if its definition is the same in the version that
runs now, and if nothing before it runs again: then it would be given the same config as before. A
branch that wasn't taken is decided again, from the same outputs and so with the same result. That
is no reason to run what comes after it.
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
from penstock.views.retries import Retried, RetryRun

NOT_TAKEN = ("condition_false", "branch_not_taken")
DECIDED_AGAIN = "its branch wasn't taken; the condition is decided again"
ASKED_FOR = "asked for with from"
NEVER_RAN = "never ran"
UNBEGUN = (NodeState.SKIPPED, NodeState.CANCELLED)
ENDED_BADLY = {NodeState.FAILED: "failed", NodeState.CANCELLED: "cancelled"}


class RetryPlan(msgspec.Struct):
    """The plan of a retry.

    Every node is in one of the two lists, each node after its dependencies.
    """

    version: int
    reused: list[str]
    runs: list[RetryRun]

    @property
    def is_idle(self) -> bool:
        """Whether nothing in a retry could come out differently."""
        return all(run.reason == DECIDED_AGAIN for run in self.runs)

    def view(self, retry_id: str | None, retry_of: str) -> Retried:
        """What users see of a retry; a preview has no `retry_id`."""
        return Retried(
            execution_id=retry_id,
            retry_of=retry_of,
            version=self.version,
            keeps=self.reused,
            runs=self.runs,
        )


def plan_retry(stored: Stored, old: Plan, new: Plan, *, start: str | None = None) -> RetryPlan:
    """Plan a retry. The node `start` and all that come after it run in any case.

    Raises `NotFound` if there is no such node.
    """
    if start is not None and start not in new.numbers:
        name = nearest_name(start, new.numbers)
        hint = f"; did you mean {name!r}?" if name else ""
        raise NotFound(f"{new.name}@{new.version} has no node {start!r}{hint}")

    plan = RetryPlan(new.version, [], [])
    untaken = _untaken_branches(stored, old)
    unchanged: set[str] = set()
    """Nodes whose children see what they saw before."""
    for number in new.order:
        node = new.nodes[number]
        node_id = node.node_id
        changed_parent = _changed_parent(new, node, unchanged)
        run = untaken.get(node_id) or stored.runs.get(node_id)

        reason = _reason(node, run, old, new)
        if node_id == start:
            reason = ASKED_FOR
        elif reason is None and changed_parent is not None:
            reason = f"comes after {changed_parent}, which runs again"

        if reason is None:
            plan.reused.append(node_id)
            unchanged.add(node_id)
        else:
            plan.runs.append(RetryRun(node_id, reason))
        if reason == DECIDED_AGAIN and changed_parent is None and _decides_alike(node):
            unchanged.add(node_id)
    return plan


def _changed_parent(plan: Plan, node: PlanNode, unchanged: set[str]) -> str | None:
    """The first parent of a node that isn't `unchanged`."""
    for parent in node.dependencies:
        parent_id = plan.nodes[parent].node_id
        if parent_id not in unchanged:
            return parent_id
    return None


def _untaken_branches(stored: Stored, old: Plan) -> dict[str, NodeRun]:
    """Nodes without a run that come before a node whose output was reused, as skipped runs.

    Their branch wasn't taken. A retry that ended early may not have decided them again.
    """
    skipped: dict[str, NodeRun] = {}
    ancestors: set[int] = set()
    """Nodes before one whose output was reused."""
    for number in reversed(old.order):
        node = old.nodes[number]
        run = stored.runs.get(node.node_id)
        is_ancestor = number in ancestors
        is_reused = run is not None and run.reason == Reason.REUSED
        never_began = run is None or (run.state in UNBEGUN and not run.attempt)

        if is_ancestor and never_began:
            skipped[node.node_id] = NodeRun(node.node_id, NodeState.SKIPPED, reason=NOT_TAKEN[0])
        if is_ancestor or is_reused:
            ancestors.update(node.dependencies)
    return skipped


def _reason(node: PlanNode, run: NodeRun | None, old: Plan, new: Plan) -> str | None:
    """Why a node runs, whatever comes before it."""
    if node.node_id not in old.numbers:
        return f"new in version {new.version}"
    if run is None or (run.state is NodeState.SKIPPED and run.reason not in NOT_TAKEN):
        return NEVER_RAN
    if run.state in ENDED_BADLY:
        return ENDED_BADLY[run.state]

    old_node = old.nodes[old.numbers[node.node_id]]
    if old is not new and _meaning(old, old_node) != _meaning(new, node):
        return f"changed in version {new.version}"
    return DECIDED_AGAIN if run.state is NodeState.SKIPPED else None


def _decides_alike(node: PlanNode) -> bool:
    """Whether the condition of a node decides the same way again.

    Not if it reads which execution this is, or may be decided before all parents have settled.
    """
    if node.condition is None:
        return True
    return "execution" not in node.condition.source and node.rule != "one_success"


def _meaning(plan: Plan, node: PlanNode) -> tuple[Any, ...]:
    """Everything in a node's definition that determines its outcome.

    The config is compared as JSON, because 1 and true are equal in Python.
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
