"""The truth table of every trigger rule, and how each end of a dependency counts (G3)."""

from __future__ import annotations

from itertools import product

import pytest

from penstock.definition.model import TRIGGER_RULES
from penstock.engine.commands import NodeRun
from penstock.engine.readiness import Outcome, Verdict, outcome_of, verdict
from penstock.engine.states import NodeState
from tests.engine.trial import compiled, node

WAIT, START, SKIP, SKIP_FAILED = Verdict.WAIT, Verdict.START, Verdict.SKIP, Verdict.SKIP_FAILED

# Each row: how two dependencies settled (s success, k skip, f failure, . not yet) -> what each rule
# says.
RULES = ("all_success", "none_failed", "all_done", "one_success", "one_failed")
TRUTH = {
    "..": (WAIT, WAIT, WAIT, WAIT, WAIT),
    "s.": (WAIT, WAIT, WAIT, START, WAIT),
    "k.": (WAIT, WAIT, WAIT, WAIT, WAIT),
    "f.": (SKIP_FAILED, SKIP_FAILED, WAIT, WAIT, START),
    "ss": (START, START, START, START, SKIP),
    "sk": (START, START, START, START, SKIP),
    "sf": (SKIP_FAILED, SKIP_FAILED, START, START, START),
    "kk": (SKIP, START, START, SKIP, SKIP),
    "kf": (SKIP_FAILED, SKIP_FAILED, START, SKIP_FAILED, START),
    "ff": (SKIP_FAILED, SKIP_FAILED, START, SKIP_FAILED, START),
}
CASES = [(rule, row, TRUTH[row][i]) for row in TRUTH for i, rule in enumerate(RULES)]


@pytest.mark.parametrize(("rule", "row", "expected"), CASES)
def test_a_rule_with_two_dependencies_says_what_its_truth_table_says(rule, row, expected):
    assert verdict(rule, 2, row.count("."), row.count("s"), row.count("f")) is expected


def test_the_table_has_every_row_and_every_rule():
    assert {"".join(sorted(row, key="skf.".index)) for row in product("skf.", repeat=2)} == {
        "".join(sorted(row, key="skf.".index)) for row in TRUTH
    }
    assert set(RULES) == set(TRIGGER_RULES)


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_a_node_without_dependencies_starts_at_once_whatever_its_rule(rule):
    assert verdict(rule, 0, 0, 0, 0) is START


@pytest.mark.parametrize("rule", RULES)
def test_with_every_dependency_settled_no_rule_waits(rule):
    for row in product("skf", repeat=3):
        assert verdict(rule, 3, 0, row.count("s"), row.count("f")) is not WAIT


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_has_decided_a_later_dependency_does_not_undo(rule):
    for row in ("".join(row) for row in product("skf.", repeat=3) if "." in row):
        now = verdict(rule, 3, row.count("."), row.count("s"), row.count("f"))
        for then in (row.replace(".", settled, 1) for settled in "skf"):
            later = verdict(rule, 3, then.count("."), then.count("s"), then.count("f"))
            assert now is WAIT or later is now, (row, then)


ENDS = [
    (NodeState.COMPLETED, None, False, Outcome.SUCCESS),
    (NodeState.COMPLETED, None, True, Outcome.SUCCESS),
    (NodeState.FAILED, "handler", False, Outcome.FAILURE),
    (NodeState.FAILED, "handler", True, Outcome.SUCCESS),
    (NodeState.SKIPPED, "condition_false", False, Outcome.SKIP),
    (NodeState.SKIPPED, "branch_not_taken", False, Outcome.SKIP),
    (NodeState.SKIPPED, "execution_failed", False, Outcome.SKIP),
    (NodeState.SKIPPED, "upstream_failed", False, Outcome.FAILURE),
    (NodeState.SKIPPED, "upstream_failed", True, Outcome.FAILURE),
    (NodeState.CANCELLED, "execution_failed", False, Outcome.SKIP),
]


@pytest.mark.parametrize(("state", "reason", "optional", "expected"), ENDS)
def test_a_dependency_settles_by_how_it_ended(state, reason, optional, expected):
    plan_node = compiled(node("a", optional=optional)).nodes[0]
    assert outcome_of(plan_node, NodeRun("a", state, reason=reason)) is expected
