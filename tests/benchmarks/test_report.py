"""The page about the peers says what was measured, and what wasn't."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from benchmarks.peers.catalog import PEERS, Peer
from benchmarks.peers.chart import bars
from benchmarks.peers.report import (
    BEGIN,
    END,
    Row,
    as_json,
    page_part,
    put_into,
    ratio,
    remarks,
    table,
)
from benchmarks.peers.targets import TARGETS, Target, against
from benchmarks.peers.yardstick import WORKLOADS

OURS = Peer("ours", "Penstock", "penstock_x", "nothing", "folder", "ours")
OTHER = Peer("other", "Other", "other_x", "everything", "folder", "ours", ("other",))
ROWS = [
    Row("ours", "chain", (0.5, 0.4, 9.0), 100, "1.0"),
    Row("other", "chain", (5.0, 6.0, 4.0), 100, "2.0"),
    Row("ours", "diamonds", (1000.0,), 500, "1.0"),
    Row("other", "diamonds", (2000.0,), 20, "2.0"),
    Row("other", "layers", version="2.0", failure="it has no edges"),
    Row("other", "light", failure="> 120 s"),
]


def line_of(title: str, text: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {title} |"))
    return [part.strip() for part in line.strip("|").split("|")]


def test_a_ratio_says_how_many_times_better_penstock_is_for_times_and_for_rates():
    assert ratio(ROWS[1], ROWS[0]) == 10
    assert ratio(ROWS[3], ROWS[2]) == 0.5


def test_a_cell_is_the_median_with_its_ratio_or_why_there_is_none():
    text = table(ROWS, [OURS, OTHER])
    assert line_of("Other", text) == ["Other", "5.00 (× 10)", "2,000 (× 0.50)", "no", "> 120 s"]
    assert line_of("Penstock", text) == ["Penstock", "0.50", "1,000", "–", "–"]


def test_less_work_and_work_that_was_not_done_are_named():
    text = remarks(ROWS, [OURS, OTHER])
    assert "Other, 500 diamonds at once: 20 of 500." in text
    assert "it has no edges" in text
    assert "Penstock" not in text


def test_the_page_keeps_what_stands_around_the_marks():
    part = page_part(ROWS, [OURS, OTHER], {"cores": 2}, {"Airflow": "no script"}, "")
    page = put_into(f"before\n{BEGIN}\nold\n{END}\nafter\n", part)
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "old" not in page
    assert "Airflow: not measured: no script." in page
    assert put_into(page, part) == page


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="needs"):
        put_into("a page of somebody's own", "part")


def test_a_target_is_measured_against_the_best_of_its_peers():
    rows = [
        Row("penstock-sqlite", "chain", (0.5,), 100, "1.0"),
        Row("dbos-sqlite", "chain", (3.0,), 100, "3.0"),
        Row("prefect", "chain", (0.9,), 100, "3.0"),
        Row("penstock-sqlite", "light", (0.7,), 40, "1.0"),
    ]
    chain, light = against(rows, {peer.name: peer.title for peer in PEERS}).splitlines()[2:]
    assert "| Prefect 3, SQLite | ≥ × 2.0 | × 1.8 | **falls short** |" in chain
    assert "| ≤ 1 | 0.70 | reached |" in light


def test_targets_name_peers_and_work_that_are_measured():
    names = {peer.name for peer in PEERS}
    for target in TARGETS:
        assert {target.penstock, *(target.peers if isinstance(target, Target) else ())} <= names
        assert target.workload in WORKLOADS


def test_the_json_has_every_run():
    rows = json.loads(as_json(ROWS, {"cores": 2}, {}))["rows"]
    assert rows[0]["values"] == [0.5, 0.4, 9.0]


def test_bars_grow_with_the_logarithm_and_names_are_escaped():
    drawing = bars(
        "a < b",
        "ms",
        [("one", 1.0, "1", True), ("ten & more", 10.0, "10", False), ("c", 100.0, "100", False)],
    )
    svg = ET.fromstring(drawing)  # noqa: S314 -- our own
    lengths = [float(bar.attrib["width"]) for bar in svg.iter("{http://www.w3.org/2000/svg}rect")]
    assert lengths[0] > 0
    assert lengths[2] - lengths[1] == pytest.approx(lengths[1] - lengths[0], abs=0.2)


def test_everybody_is_beside_a_penstock_that_is_measured_too():
    ours = {peer.name for peer in PEERS if peer.is_penstock}
    assert {peer.beside for peer in PEERS} <= ours


def test_a_whole_run_counts_as_many_units_as_the_workload_has():
    assert WORKLOADS["diamonds"].value(2.0, 500) == 250
    assert WORKLOADS["chain"].value(1.0, 100) == 10
