"""`python -m benchmarks.peers`: the same work on Penstock and on its peers.

They run one after another on this machine.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine
from benchmarks.peers.catalog import PEERS, Peer
from benchmarks.peers.chart import bars
from benchmarks.peers.environments import NotInstalled, python_of
from benchmarks.peers.report import (
    BEGIN,
    END,
    IMAGES,
    Row,
    as_json,
    figure,
    found_of,
    page_part,
    put_into,
    remarks,
    table,
)
from benchmarks.peers.runs import command_of, lines_of, open_addresses
from benchmarks.peers.targets import against
from benchmarks.peers.yardstick import WORKLOADS

TITLES = {peer.name: peer.title for peer in PEERS}
FRAME = f"# Benchmarks\n\n{BEGIN}\n{END}\n"


Lines = dict[tuple[str, str], list[dict[str, Any]]]


def measure(
    peer: Peer, python: Path, arguments: argparse.Namespace, folder: Path, lines: Lines
) -> None:
    """All workloads once.

    What took too long, failed or can't be done in an earlier round isn't tried again.
    """
    names = [
        name
        for name in arguments.workloads
        if all("value" in line for line in lines[peer.name, name])
    ]
    folder.mkdir()
    folder.chmod(0o711)  # PostgreSQL may run as somebody else
    with open_addresses(peer, folder) as addresses:
        for line in lines_of(command_of(peer, python), addresses, names, arguments.limit):
            lines[peer.name, line["workload"]].append(line)
            print(peer.name, line, flush=True)


def row_of(peer: Peer, name: str, lines: list[dict[str, Any]]) -> Row:
    """A peer that failed in one of the runs has failed: a median of the others would hide it."""
    last = lines[-1]
    version = next((line["version"] for line in lines if "version" in line), "")
    failure = last.get("failure") or last.get("unsupported", "")
    if failure:
        return Row(peer.name, name, version=version, failure=failure)
    values = tuple(line["value"] for line in lines)
    return Row(peer.name, name, values, last["count"], version, last.get("note", ""))


def charts(rows: list[Row]) -> dict[str, str]:
    row_by_key, drawn = found_of(rows), {}
    for name, workload in WORKLOADS.items():
        items = [
            (peer.title, row.median, figure(row.median), peer.is_penstock)
            for peer in PEERS
            if (row := row_by_key.get((peer.name, name))) and row.values
        ]
        better = "more" if workload.is_rate else "less"
        if items:
            drawn[name] = bars(
                workload.title, f"{workload.unit}, logarithmic; {better} is better", items
            )
    return drawn


def write(docs: Path, rows: list[Row], facts: dict[str, Any], absent: dict[str, str]) -> None:
    page = docs / "benchmarks.md"
    text = page.read_text() if page.exists() else FRAME
    page.write_text(put_into(text, page_part(rows, PEERS, facts, absent, against(rows, TITLES))))
    (docs / "benchmarks.json").write_text(as_json(rows, facts, absent))
    images = docs / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    for name, drawing in charts(rows).items():
        (images / f"{name}.svg").write_text(drawing)


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], help=f"of {', '.join(peer.name for peer in PEERS)}"
    )
    parser.add_argument("--workloads", nargs="*", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds that a workload may take"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path.cwd(), help="where the stores' files go: not tmpfs"
    )
    parser.add_argument(
        "--docs", type=Path, help="write the page, its charts and the JSON into this folder"
    )
    return parser.parse_args()


def environments(only: list[str]) -> tuple[dict[Peer, Path], dict[str, str]]:
    """Who can be measured, and who can't or needn't be, and why."""
    pythons: dict[Peer, Path] = {}
    absent: dict[str, str] = {}
    for peer in PEERS:
        try:
            if only and peer.name not in only:
                absent[peer.title] = "left out of this run"
            else:
                pythons[peer] = python_of(peer)
        except NotInstalled as error:
            absent[peer.title] = str(error)
    return pythons, absent


def main() -> None:
    arguments = arguments_of()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it has started ends with it
    pythons, absent = environments(arguments.only)
    facts = machine(arguments.folder) | {"runs": arguments.runs}
    directory = Path(tempfile.mkdtemp(dir=arguments.folder, prefix="penstock-bench-"))
    directory.chmod(0o711)
    # removed at the very end: on a file system with discard, removing one run's files slows down
    # the next one's syncs
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    lines: Lines = defaultdict(list)
    loads = []
    # everybody in turn, and that several times: a busy minute of the machine then meets all of them
    for number in range(arguments.runs):
        for peer, python in pythons.items():
            loads.append(os.getloadavg()[0])
            measure(peer, python, arguments, directory / f"{peer.name}-{number}", lines)
    facts["load_average"] = f"{min(loads):.1f} to {max(loads):.1f}"
    rows = [
        row_of(peer, name, lines[peer.name, name])
        for peer in pythons
        for name in arguments.workloads
    ]
    print(f"\n{table(rows, PEERS)}\n\n{against(rows, TITLES)}\n\n{remarks(rows, PEERS)}")
    print("\n".join(f"not measured: {name}: {reason}" for name, reason in absent.items()))
    if arguments.docs:
        write(arguments.docs, rows, facts, absent)


if __name__ == "__main__":
    main()
