"""The tables of docs/design.md say what the code says.

Transitions, trigger rules, events, the fields of a commit plan. The rows are made from the code and
compared with the page's as text; a failure shows the rows that the page should have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from itertools import product

import pytest

from penstock.definition.model import TRIGGER_RULES
from penstock.engine import handling  # noqa: F401 -- it imports what registers event handlers
from penstock.engine.event_handlers import EVENT_HANDLERS
from penstock.engine.readiness import verdict
from penstock.engine.states import EXECUTION_TRANSITIONS, NODE_TRANSITIONS
from penstock.stores.commit_plan import CommitPlan
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "design.md"


def rows_under(header: str, section: str) -> list[str]:
    """The rows of the table with this header line, in this section of the page."""
    text = PAGE.read_text(encoding="utf-8")
    section_text = re.split(r"^#+ ", text.partition(f"# {section}\n")[2], flags=re.MULTILINE)[0]
    lines = iter(section_text.splitlines())
    assert header in lines, f"{section}: there is no table {header}"
    next(lines)  # the line of dashes
    rows: list[str] = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(line)
    return rows


def transition_rows(table: Mapping[StrEnum, frozenset[StrEnum]]) -> list[str]:
    order = list(table)
    rows: list[str] = []
    for before in order:
        after = ", ".join(state for state in order if state in table[before])
        rows.append(f"| {before} | {after or 'nothing'} |")
    return rows


def rule_rows() -> list[str]:
    """A verdict depends only on which of the three counts are 0."""
    rows: list[str] = []
    for counts in product((0, 1), repeat=3):
        cells = ["some" if count else "0" for count in counts]
        cells += [verdict(rule, 3, *counts).value for rule in TRIGGER_RULES]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


@pytest.mark.parametrize(
    ("section", "table"),
    [
        ("Transitions of a node", NODE_TRANSITIONS),
        ("Transitions of an execution", EXECUTION_TRANSITIONS),
    ],
)
def test_the_transition_tables_are_the_code_s(section, table):
    assert rows_under("| from | to |", section) == transition_rows(table)


def test_the_truth_table_of_the_trigger_rules_is_the_code_s():
    rules = " | ".join(f"`{rule}`" for rule in TRIGGER_RULES)
    header = f"| unsettled | successes | failures | {rules} |"
    assert rows_under(header, "Trigger rules") == rule_rows()


@pytest.mark.parametrize("rule", TRIGGER_RULES)
def test_only_whether_a_count_is_0_matters(rule):
    for unsettled, successes, failures in product(range(4), repeat=3):
        small = [min(count, 1) for count in (unsettled, successes, failures)]
        assert verdict(rule, 9, unsettled, successes, failures) is verdict(rule, 9, *small)


def test_every_event_is_in_the_table_of_events():
    rows = rows_under("| event | comes from | effect |", "Events")
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(event.__name__ for event in EVENT_HANDLERS)


def test_every_field_of_a_commit_plan_is_in_its_table():
    rows = rows_under("| field of `CommitPlan` | meaning |", "Commit")
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(CommitPlan.__struct_fields__)
