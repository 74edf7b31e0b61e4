"""What was measured, as tables and charts: points in, Markdown, JSON and SVG out.

Pure but for `write_docs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.lines import lines
from benchmarks.marks import put_between

PROFILES = {"sqlite": "SQLite", "scaled": "Redis + PostgreSQL"}
TITLES = {
    "nodes": "nodes in the DAG",
    "items": "items of a map",
    "active": "active executions beside it",
    "finished": "finished executions in the store",
    "payload": "bytes of output, passed on to a child",
}
RATIOS = {"wall": "many at once", "cpu": "their CPU", "hop": "a chain"}
LIMIT = 1.3
"""What time per task may at most be of that in an empty store."""
IMAGES = "images/scaling"


@dataclass(frozen=True)
class Point:
    size: int
    micros: dict[str, float]
    """Per task: `wall`, for a chain `hop`, CPU by process."""
    ratios: dict[str, float]
    """To the empty store, or to the smallest size."""
    fill_seconds: float = 0.0


Grown = Mapping[str, Mapping[str, Sequence[Point]]]
"""By profile and by what has grown."""


def ratios_text(point: Point) -> str:
    return ", ".join(f"{RATIOS[key]} × {value:.2f}" for key, value in point.ratios.items()) or "–"


def table(kind: str, points: Sequence[Point]) -> str:
    names = [name for name in points[0].micros if name not in ("wall", "hop", "cpu", "client")]
    has_hops = "hop" in points[0].micros
    heads = [
        "µs per task",
        *(["µs per hop"] if has_hops else []),
        *(f"{_role(name)} CPU µs" for name in names),
    ]
    heads.append("beside an empty store" if has_hops else "beside the first line")
    rows = [f"| {TITLES[kind]} | {' | '.join(heads)} |", f"|--:|{'--:|' * (len(heads) - 1)}---|"]
    for point in points:
        figures = [
            point.micros["wall"],
            *([point.micros["hop"]] if has_hops else []),
            *(point.micros[n] for n in names),
        ]
        cells = " | ".join(f"{value:,.0f}" for value in figures)
        rows.append(f"| {point.size:,} | {cells} | {ratios_text(point)} |")
    return "\n".join(rows)


def _role(name: str) -> str:
    return {"postgres": "PostgreSQL", "redis": "Redis"}.get(name, name.rstrip("0123456789"))


def tables(measured: Grown) -> str:
    parts: list[str] = []
    for kind, title in TITLES.items():
        for profile, kinds in measured.items():
            if kinds.get(kind):
                parts.append(f"**{PROFILES[profile]}, by {title}**\n\n{table(kind, kinds[kind])}")
    return "\n\n".join([*parts, verdict(measured)])


def verdict(measured: Grown) -> str:
    """The largest of each ratio at the largest size, against what is wanted."""
    said: list[str] = []
    for profile, kinds in measured.items():
        for kind in ("active", "finished"):
            if kinds.get(kind):
                point = kinds[kind][-1]
                within = max(point.ratios.values()) <= LIMIT
                ratios = f"{point.size:,} {TITLES[kind]}: {ratios_text(point)}"
                said.append(
                    f"- {PROFILES[profile]}, {ratios} "
                    f"(at most × {LIMIT}: {'yes' if within else 'NO'})."
                )
    return "\n".join(said)


def chart(kind: str, measured: Grown) -> str:
    named = {
        PROFILES[profile]: [(point.size, point.micros["wall"]) for point in kinds[kind]]
        for profile, kinds in measured.items()
        if kinds.get(kind)
    }
    return lines(
        f"Time per task, by {TITLES[kind]}", "µs, wall clock; flat is what G6 promises", named
    )


def part(measured: Grown, facts: Mapping[str, Any]) -> str:
    said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in facts.items())
    pictures = [
        f"![{TITLES[kind]}]({IMAGES}/{kind}.svg)"
        for kind in TITLES
        if any(k.get(kind) for k in measured.values())
    ]
    return "\n\n".join([f"{said}.", tables(measured), *pictures])


def as_data(measured: Grown, facts: Mapping[str, Any]) -> dict[str, Any]:
    grown = {
        profile: {kind: [asdict(point) for point in points] for kind, points in kinds.items()}
        for profile, kinds in measured.items()
    }
    return {"machine": dict(facts), "grown": grown}


def write_docs(folder: Path, measured: Grown, facts: Mapping[str, Any]) -> None:
    page = folder / "scaling.md"
    page.write_text(put_between(page.read_text(), "bench-growth", part(measured, facts)))
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    for kind in TITLES:
        if any(kinds.get(kind) for kinds in measured.values()):
            (folder / IMAGES / f"{kind}.svg").write_text(chart(kind, measured))
