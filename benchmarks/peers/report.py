"""What was measured, as a page: rows in, Markdown and JSON out. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.peers.catalog import Peer
from benchmarks.peers.yardstick import WORKLOADS

BEGIN, END = "<!-- made by make bench-peers -->", "<!-- end of what was made -->"
IMAGES = "images/benchmarks"


@dataclass(frozen=True)
class Row:
    """One peer at one workload. Without values, `failure` says why."""

    peer: str
    workload: str
    values: tuple[float, ...] = ()
    count: int = 0
    version: str = ""
    note: str = ""
    failure: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)


Found = Mapping[tuple[str, str], Row]


def found_of(rows: Iterable[Row]) -> Found:
    return {(row.peer, row.workload): row for row in rows}


def ratio(row: Row, beside: Row) -> float:
    """How many times better the other one is; below 1 this one is."""
    if WORKLOADS[row.workload].is_rate:
        return beside.median / row.median
    return row.median / beside.median


def figure(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(value: float) -> str:
    return (
        f"× {value:,.0f}" if value >= 10 else f"× {value:.1f}" if value >= 1 else f"× {value:.2f}"
    )


def cell(peer: Peer, workload: str, row_by_key: Found) -> str:
    row = row_by_key.get((peer.name, workload))
    if row is None:
        return "–"
    if not row.values:
        return row.failure if row.failure.startswith(">") else "no"
    beside = row_by_key.get((peer.beside, workload))
    if peer.is_penstock or beside is None or not beside.values:
        return figure(row.median)
    return f"{figure(row.median)} ({times(ratio(row, beside))})"


def table(rows: Iterable[Row], peers: Sequence[Peer]) -> str:
    """A row for each peer that was measured, a column for each workload.

    A cell says how many times better Penstock is.
    """
    row_by_key = found_of(rows)
    names = [name for name in WORKLOADS if any(workload == name for _, workload in row_by_key)]
    heads = [f"{WORKLOADS[name].title}, {WORKLOADS[name].unit}" for name in names]
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'--:|' * len(names)}"]
    lines += [
        f"| {peer.title} | {' | '.join(cell(peer, name, row_by_key) for name in names)} |"
        for peer in measured(peers, row_by_key)
    ]
    return "\n".join(lines)


def measured(peers: Iterable[Peer], row_by_key: Found) -> list[Peer]:
    present = {name for (name, _), row in row_by_key.items() if row.version}
    return [peer for peer in peers if peer.name in present]


def configurations(rows: Iterable[Row], peers: Sequence[Peer]) -> str:
    row_by_key = found_of(rows)
    versions = {name: row.version for (name, _), row in row_by_key.items() if row.version}
    lines = ["| | version | lost when the power fails |", "|---|---|---|"]
    lines += [
        f"| {peer.title} | {versions[peer.name]} | {peer.durability} |"
        for peer in measured(peers, row_by_key)
    ]
    return "\n".join(lines)


def remarks(rows: Iterable[Row], peers: Sequence[Peer]) -> str:
    """What was less than the whole work, and what wasn't done at all."""
    titles = {peer.name: peer.title for peer in peers}
    lines = []
    for row in rows:
        workload, said = WORKLOADS[row.workload], []
        if row.values and row.count < workload.size:
            said.append(f"{row.count:,} of {workload.size:,}")
        said += [text for text in (row.note, row.failure) if text]
        if said:
            lines.append(f"- {titles[row.peer]}, {workload.title}: {'; '.join(said)}.")
    return "\n".join(lines)


def page_part(
    rows: Sequence[Row],
    peers: Sequence[Peer],
    facts: Mapping[str, Any],
    absent: Mapping[str, str],
    targets: str,
) -> str:
    """Everything between the marks."""
    pictures = [
        f"![{WORKLOADS[name].title}]({IMAGES}/{name}.svg)"
        for name in WORKLOADS
        if any(row.workload == name and row.values for row in rows)
    ]
    parts = [
        ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items()) + ".",
        table(rows, peers),
        remarks(rows, peers),
        "\n".join(f"- {name}: not measured: {reason}." for name, reason in absent.items()),
        "## Targets" if targets else "",
        targets,
        "## Charts",
        *pictures,
        "## Durability",
        configurations(rows, peers),
    ]
    return "\n\n".join(part for part in parts if part)


def put_into(page: str, part: str) -> str:
    """The page with the part between its marks; the text around them is somebody's own."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page needs {BEGIN} and {END}, each on a line of its own")
    return f"{page.partition(BEGIN)[0]}{BEGIN}\n\n{part}\n\n{END}{page.partition(END)[2]}"


def as_json(rows: Iterable[Row], facts: Mapping[str, Any], absent: Mapping[str, str]) -> str:
    data = {"machine": facts, "not_measured": absent, "rows": [asdict(row) for row in rows]}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
