"""`python -m benchmarks.costs`: microseconds of CPU and bytes per task in each part, by profile."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine
from benchmarks.costs import embedded, report, scaled
from benchmarks.costs.load import CLIENTS
from benchmarks.costs.plan import plan
from benchmarks.marks import put_between

BULK = "in batches"
PROFILES = {"sqlite": embedded.measure, "scaled": scaled.measure}


def write_docs(folder: Path, measured: Sequence[report.Costs], facts: Mapping[str, Any]) -> None:
    page = folder / "scaling.md"
    said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
    text = put_between(page.read_text(), "bench-costs", f"{said}.\n\n{report.tables(measured)}")
    bulk = [costs for costs in measured if costs.profile == "scaled" and costs.way == BULK]
    if bulk:
        text = put_between(text, "bench-costs, the plan", plan(bulk[0]))
    page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", choices=list(PROFILES), nargs="*", default=list(PROFILES))
    parser.add_argument("--executions", type=int, default=10_000, help="diamonds, of 4 tasks each")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path.cwd(),
        help="where the stores keep their files: not tmpfs",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--docs", type=Path, help="put the tables into scaling.md of this folder")
    arguments = parser.parse_args()
    facts = machine(arguments.folder)
    measured: list[report.Costs] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="penstock-costs-") as name:
        Path(name).chmod(0o711)
        for profile in arguments.profile:
            for way in CLIENTS:
                measured.append(PROFILES[profile](Path(name), way, arguments.executions))
                print(
                    f"**{report.TITLES[profile]}, {way}**\n\n{report.table(measured[-1])}\n",
                    flush=True,
                )
    print(report.tables(measured))
    if arguments.json:
        arguments.json.write_text(
            json.dumps(report.as_data(measured, facts), indent=2, ensure_ascii=False) + "\n"
        )
    if arguments.docs:
        write_docs(arguments.docs, measured, facts)


if __name__ == "__main__":
    main()
