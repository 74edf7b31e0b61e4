"""`python -m benchmarks.growth`: how time per task grows.

By DAG size, active executions, finished executions and payload size.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.__main__ import machine
from benchmarks.growth import report
from benchmarks.growth.report import Point
from benchmarks.growth.sides import Side, in_turn, medians, probe, ratios, sides

PROFILES = ("sqlite", "scaled")
CALM_PERCENT, CALM_SECONDS = 8.0, 90.0


class Sizes(NamedTuple):
    nodes: tuple[int, ...] = (1000, 10_000, 100_000)
    active: tuple[int, ...] = (1000, 10_000, 100_000)
    finished: tuple[int, ...] = (1000, 100_000, 1_000_000)
    payload: tuple[int, ...] = (100, 1000, 10_000, 100_000, 1_000_000)
    items: tuple[int, ...] = (1000, 10_000, 100_000)
    diamonds: int = 1000
    hops: int = 100
    rounds: int = 7
    pairs: int = 40


QUICK = Sizes(
    (1000, 10_000),
    (1000, 10_000),
    (1000, 10_000),
    (100, 10_000, 1_000_000),
    (1000, 10_000),
    200,
    50,
    3,
    10,
)
SCALED_NODES_MAX = 10_000


def by_size(
    side: Side, work: str, sizes: Sequence[int], rounds: int, count: int = 1
) -> list[Point]:
    """Measure documents of several sizes on one store, in turn.

    The smallest is what the others are compared with.
    """
    runs = in_turn(
        [partial(side.ask, do="run", work=work, size=size, count=count) for size in sizes], rounds
    )
    return [
        Point(size, medians(figures), ratios(runs[0], figures, ["wall"]))
        for size, figures in zip(sizes, runs, strict=True)
    ]


def calm_down() -> None:
    """Wait until the work that filling caused has ended.

    Every execution that has changed is copied to PostgreSQL once.
    """
    end = time.monotonic() + CALM_SECONDS
    while psutil.cpu_percent(interval=3) > CALM_PERCENT and time.monotonic() < end:
        pass


def by_fill(empty: Side, full: Side, kind: str, to: Sequence[int], sizes: Sizes) -> list[Point]:
    """The same work beside more and more executions, and beside none."""
    points: list[Point] = []
    for size in to:
        took = full.ask(do=kind, to=size)["seconds"]
        calm_down()
        runs = in_turn(
            [partial(probe, side, sizes.diamonds, sizes.hops) for side in (empty, full)],
            sizes.rounds,
        )
        if not points:
            points.append(Point(0, medians(runs[0]), {}))
        points.append(Point(size, medians(runs[1]), ratios(*runs), took))
        print(
            f"  {kind} {size:,}: filled in {took:.0f} s, {report.ratios_text(points[-1])}",
            flush=True,
        )
    return points


def measure(profile: str, sizes: Sizes, folder: Path, only: str) -> dict[str, list[Point]]:
    points_by_kind: dict[str, list[Point]] = {}
    nodes_max = SCALED_NODES_MAX if profile == "scaled" else max(sizes.nodes)
    if only in "nodes items payload":
        with sides(profile, folder, 1) as (side,):
            probe(side, sizes.diamonds, sizes.hops)  # nobody is measured on its first work
            nodes = [size for size in sizes.nodes if size <= nodes_max]
            points_by_kind["nodes"] = by_size(side, "layers", nodes, min(3, sizes.rounds))
            points_by_kind["items"] = by_size(side, "items", sizes.items, min(3, sizes.rounds))
            points_by_kind["payload"] = by_size(
                side, "payload", sizes.payload, sizes.rounds, sizes.pairs
            )
    for kind, to in (("active", sizes.active), ("finished", sizes.finished)):
        if only in kind:
            with sides(profile, folder, 2) as (empty, full):
                for side in (empty, full):
                    probe(side, sizes.diamonds, sizes.hops)
                points_by_kind[kind] = by_fill(empty, full, kind, to, sizes)
    return points_by_kind


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, nargs="*", default=PROFILES)
    parser.add_argument("--only", default="", help="active, finished, nodes, items or payload")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it")
    parser.add_argument("--rounds", type=int, help="how often each side is measured")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path.cwd(),
        help="where the stores keep their files: not tmpfs",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument(
        "--docs", type=Path, help="put tables and charts into scaling.md of this folder"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    sizes = QUICK if options.quick else Sizes()
    if options.rounds:
        sizes = sizes._replace(rounds=options.rounds)
    facts: dict[str, Any] = machine(options.folder)
    grown: dict[str, dict[str, list[Point]]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="penstock-growth-") as name:
        Path(name).chmod(0o711)
        for profile in options.profile:
            print(f"{profile}:", flush=True)
            grown[profile] = measure(profile, sizes, Path(name), options.only)
    print("\n" + report.tables(grown))
    if options.json:
        options.json.write_text(
            json.dumps(report.as_data(grown, facts), indent=2, ensure_ascii=False) + "\n"
        )
    if options.docs:
        report.write_docs(options.docs, grown, facts)


if __name__ == "__main__":
    main()
