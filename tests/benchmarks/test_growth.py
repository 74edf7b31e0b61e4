"""How figures of growth become ratios, tables and charts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

import penstock
from benchmarks.growth import filling, report
from benchmarks.growth.report import Point
from benchmarks.growth.sides import in_turn, ratios
from benchmarks.lines import Axes, lines
from benchmarks.marks import put_between
from benchmarks.workloads import diamond
from penstock.runtime import run_loop
from penstock.stores.records import Search


def point(size: int, ratio: float = 1.0) -> Point:
    return Point(
        size,
        {"wall": 50.0, "cpu": 40.0, "hop": 400.0, "loop": 40.0},
        {"wall": ratio} if size else {},
    )


def test_a_ratio_is_the_median_of_pairs_and_not_of_medians():
    slow_minute = [{"wall": 10.0}, {"wall": 100.0}, {"wall": 10.0}]
    beside = [{"wall": 11.0}, {"wall": 110.0}, {"wall": 30.0}]
    assert ratios(slow_minute, beside, ["wall"])["wall"] == pytest.approx(1.1)


def test_every_second_round_is_measured_backwards():
    seen: list[str] = []

    def side(name: str) -> Callable[[], dict[str, float]]:
        def measure() -> dict[str, float]:
            seen.append(name)
            return {"wall": 1.0}

        return measure

    in_turn([side("a"), side("b")], 3)
    assert "".join(seen) == "abbaab"


def test_the_verdict_says_no_when_any_ratio_is_above_the_limit():
    assert "yes" in report.verdict({"sqlite": {"active": [point(0), point(1000, 1.29)]}})
    assert "NO" in report.verdict({"scaled": {"finished": [point(0), point(1000, 1.31)]}})


def test_a_table_has_a_line_for_each_size_and_a_column_for_each_process():
    text = report.tables({"sqlite": {"active": [point(0), point(100_000, 1.1)]}})
    assert "| loop CPU µs |" in text
    assert "| 100,000 | 50 | 400 | 40 | many at once × 1.10 |" in text


def test_a_chart_starts_at_zero_and_has_room_for_an_empty_store():
    axes = Axes([[(0, 48.0), (1000, 50.0), (1_000_000, 52.0)]])
    assert axes.x(0) < axes.x(1000) < axes.x(1_000_000)
    assert axes.y(0) > axes.y(48.0) > axes.y(52.0) >= axes.y(axes.top)
    ET.fromstring(lines("A & B", "µs", {"SQLite": [(0, 48.0), (1000, 50.0)]}))  # noqa: S314 -- our own


def test_a_part_is_put_between_its_own_marks():
    page = "a\n<!-- made by make x -->\nold\n<!-- end of make x -->\nb"
    assert (
        put_between(page, "x", "new")
        == "a\n<!-- made by make x -->\n\nnew\n\n<!-- end of make x -->\nb"
    )
    with pytest.raises(ValueError, match="needs"):
        put_between(page, "y", "new")


def test_a_filled_file_holds_executions_that_the_engine_reads_as_its_own(tmp_path):
    path = tmp_path / "filled.db"

    async def run() -> None:
        async with penstock.Engine(f"sqlite:///{path}") as engine:
            handle = await engine.start(diamond())
            await handle.result()
            filling.fill_sqlite(path, handle.id, 0, 50)
            copy = await engine.status(filling.name_of(49))
            assert copy.completed
            assert set(copy.nodes) == {"a", "b", "c", "d"}
            assert len(await engine.stores.cold.executions.search(Search(limit=100))) == 51

    run_loop(run())
    with sqlite3.connect(path) as connection:
        counts = connection.execute("SELECT count(*) FROM changes GROUP BY n").fetchall()
    assert len(set(counts)) == 1  # each copy has as many changes as its model
