"""When a node may start: its trigger rule against how its dependencies settled. Integers only.

A dependency settles as a success (COMPLETED, or FAILED but optional), a skip (a branch that wasn't
taken) or a failure (FAILED, or skipped because something before it failed).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from penstock.definition.model import TriggerRule
from penstock.definition.plan import CLEANUP_RULES, Body, Plan, PlanNode
from penstock.engine.commands import NodeRun
from penstock.engine.reasons import Reason
from penstock.engine.states import NodeState


class Outcome(Enum):
    SUCCESS = "success"
    SKIP = "skip"
    FAILURE = "failure"


class Verdict(Enum):
    WAIT = "wait"
    START = "start"
    SKIP = "skip"
    """Not taken: counts as a skip for what comes after."""
    SKIP_FAILED = "skip_failed"
    """Something before it failed: counts as a failure for what comes after."""


def is_cleanup(node: PlanNode) -> bool:
    """Whether the node cleans up or notifies: one without dependencies starts at once anyway."""
    return node.rule in CLEANUP_RULES and bool(node.dependencies)


EARLY_RULES: frozenset[TriggerRule] = frozenset({"one_success", "caught"})
"""Nodes with these rules may start although no parent has settled as a failure, and some haven't
settled.
"""

# looked up here, once: see `settling`
_SUCCESS = Outcome.SUCCESS
_OUTCOME_SKIP = Outcome.SKIP
_FAILURE = Outcome.FAILURE
_WAIT = Verdict.WAIT
_START = Verdict.START
_SKIP = Verdict.SKIP
_SKIP_FAILED = Verdict.SKIP_FAILED


def verdict(
    rule: TriggerRule, total: int, unsettled: int, successes: int, failures: int
) -> Verdict:
    """A node without dependencies starts at once, whatever its rule."""
    if not total:
        return _START
    return _RULES[rule](unsettled, successes, failures)


def _all_success(unsettled: int, successes: int, failures: int) -> Verdict:
    if failures:
        return _SKIP_FAILED
    if unsettled:
        return _WAIT
    return _START if successes else _SKIP


def _none_failed(unsettled: int, _successes: int, failures: int) -> Verdict:
    if failures:
        return _SKIP_FAILED
    return _WAIT if unsettled else _START


def _all_done(unsettled: int, _successes: int, _failures: int) -> Verdict:
    return _WAIT if unsettled else _START


def _one_success(unsettled: int, successes: int, failures: int) -> Verdict:
    if successes:
        return _START
    if unsettled:
        return _WAIT
    return _SKIP_FAILED if failures else _SKIP


def _one_failed(unsettled: int, _successes: int, failures: int) -> Verdict:
    if failures:
        return _START
    return _WAIT if unsettled else _SKIP


# what a node with `catches` comes to is in `catching`, which knows whose failure it is
_RULES = {
    "all_success": _all_success,
    "none_failed": _none_failed,
    "all_done": _all_done,
    "one_success": _one_success,
    "one_failed": _one_failed,
    "caught": _one_failed,
}


def outcome_of(node: PlanNode, run: NodeRun) -> Outcome:
    """How a node that has ended settles."""
    if run.state is NodeState.COMPLETED or (run.state is NodeState.FAILED and node.optional):
        return Outcome.SUCCESS
    if run.state is NodeState.FAILED or run.reason == Reason.UPSTREAM_FAILED:
        return Outcome.FAILURE
    return Outcome.SKIP


class Tally:
    """For each node, how many of its dependencies are unsettled, succeeded and failed."""

    __slots__ = ("failures", "successes", "unsettled")

    def __init__(self, plan: Plan | Body) -> None:
        size = len(plan.nodes)
        self.unsettled = plan.dependency_counts.copy()
        self.successes = [0] * size
        self.failures = [0] * size

    def settle(
        self, node: PlanNode, outcome: Outcome, nodes: Sequence[PlanNode] | None = None
    ) -> Iterable[int]:
        """Count a settled node for its children; returns those that may now be decided.

        Without `nodes`, returns all children.
        """
        children = node.children
        unsettled = self.unsettled
        counted = self.successes if outcome is _SUCCESS else self.failures
        increment = outcome is not _OUTCOME_SKIP
        for child in children:
            unsettled[child] -= 1
            counted[child] += increment
        if nodes is None or outcome is _FAILURE:
            return children
        return [
            child for child in children if not unsettled[child] or nodes[child].rule in EARLY_RULES
        ]

    def verdict(self, node: PlanNode, number: int) -> Verdict:
        unsettled = self.unsettled[number]
        successes = self.successes[number]
        failures = self.failures[number]
        if not (unsettled or failures) and successes and node.rule == "all_success":
            return _START  # what nearly every node comes to
        return verdict(node.rule, len(node.dependencies), unsettled, successes, failures)
