"""The table of faults says what was shown, what failed, and what nobody has tried."""

from __future__ import annotations

import pytest

from tests.faults.table import BEGIN, END, FAMILIES, Fault, Row, missing, page, table


def _row(family: str = "zombies", *, is_green: bool = True) -> Row:
    return Row(family, "SIGSTOP", is_green, 1.25, 7, {"stale_writes": 0, "fenced": 1200})


def test_a_row_says_what_was_done_and_its_figures() -> None:
    assert (
        table([_row()]).splitlines()[-1]
        == "| zombies | SIGSTOP | yes | 1.2 | 7 | stale writes 0, fenced 1,200 |"
    )


def test_a_row_that_did_not_hold_stands_out() -> None:
    assert "**NO**" in table([_row(is_green=False)])


def test_rows_come_in_the_order_of_faults() -> None:
    lines = table([_row("soak"), _row("processes")]).splitlines()
    assert ["processes" in lines[2], "soak" in lines[3]] == [True, True]


def test_a_family_that_nobody_tried_is_missing() -> None:
    assert missing([_row(family) for family in FAMILIES if family != "time"]) == ["time"]


def test_a_page_keeps_the_text_around_its_table_and_rows_of_families_not_run() -> None:
    first = page(f"# Faults\n\n{BEGIN}\n{END}\nAnd more.\n", [_row("zombies"), _row("soak")])
    second = page(first, [_row("zombies", is_green=False), _row("processes")])
    assert second.startswith(f"# Faults\n\n{BEGIN}\n| family")
    assert second.endswith(f"|\n{END}\nAnd more.\n")
    lines = [line for line in second.splitlines() if "SIGSTOP" in line]
    assert [line.split(" | ")[0] for line in lines] == ["| processes", "| zombies", "| soak"]
    assert [line.split(" | ")[2] for line in lines] == ["yes", "**NO**", "yes"]


def test_a_size_is_the_whole_only_in_a_full_run() -> None:
    sizes = [Fault("soak", "", 1, is_full).size(short=2, full=50) for is_full in (False, True)]
    assert sizes == [2, 50]


def test_a_figure_over_its_promise_fails_its_row_and_is_shown_all_the_same() -> None:
    full, short = (Fault("processes", "", 1, is_full) for is_full in (True, False))
    full.promises(20.0, redelivery_seconds=19.9)
    short.promises(20.0, redelivery_seconds=22.4)  # a small run on a busy machine
    with pytest.raises(AssertionError, match="promised are 20 s"):
        full.promises(20.0, redelivery_seconds=22.4)
    assert full.figures == short.figures == {"redelivery_seconds": 22.4}
