"""Costs as tables: which process pays for which part. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PARTS = ("api", "inbox", "load", "decide", "commit", "fetch", "run", "report", "archive", "rest")
TITLES = {"sqlite": "SQLite", "scaled": "Redis + PostgreSQL"}
HOSTS = ("dev", "api", "orchestrator", "worker", "Redis", "PostgreSQL")


@dataclass(frozen=True)
class Costs:
    """Of one profile and one way of submitting, per task."""

    profile: str
    way: str
    tasks: int
    micros: Mapping[tuple[str, str], float]
    """CPU by process and part."""
    sizes: Mapping[str, float]
    """Bytes by what they are."""

    def part(self, part: str) -> float:
        return sum(spent for (_, name), spent in self.micros.items() if name == part)

    def host(self, host: str) -> float:
        return sum(spent for (name, _), spent in self.micros.items() if name == host)

    @property
    def total(self) -> float:
        return sum(self.micros.values())


def table(costs: Costs) -> str:
    """A line for each part, a column for each process."""
    hosts = [host for host in HOSTS if any(name == host for name, _ in costs.micros)]
    rows = [f"| CPU µs per task | {' | '.join(hosts)} | sum |", f"|---|{'--:|' * (len(hosts) + 1)}"]
    for part in PARTS:
        if any(name == part for _, name in costs.micros):
            cells = [_figure(costs.micros.get((host, part))) for host in hosts]
            rows.append(f"| {part} | {' | '.join(cells)} | {costs.part(part):.1f} |")
    sums = " | ".join(f"{costs.host(host):.1f}" for host in hosts)
    return "\n".join([*rows, f"| **sum** | {sums} | {costs.total:.1f} |"])


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def sizes(all_costs: Sequence[Costs]) -> str:
    """Bytes per task: a line for each kind, a column for each way of submitting."""
    names = list(dict.fromkeys(name for costs in all_costs for name in costs.sizes))
    rows = [
        f"| bytes per task | {' | '.join(costs.way for costs in all_costs)} |",
        f"|---|{'--:|' * len(all_costs)}",
    ]
    for name in names:
        cells = [f"{costs.sizes.get(name, 0):,.0f}" for costs in all_costs]
        rows += [f"| {name} | {' | '.join(cells)} |"]
    return "\n".join(rows)


def tables(measured: Sequence[Costs]) -> str:
    parts: list[str] = []
    for profile in dict.fromkeys(costs.profile for costs in measured):
        mine = [costs for costs in measured if costs.profile == profile]
        parts += [
            f"**{TITLES[profile]}, submitted {costs.way}**\n\n{table(costs)}" for costs in mine
        ]
        parts.append(sizes(mine))
    return "\n\n".join(parts)


def as_data(measured: Sequence[Costs], facts: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {
            "profile": costs.profile,
            "way": costs.way,
            "tasks": costs.tasks,
            "bytes": dict(costs.sizes),
            "micros": {f"{host}/{part}": spent for (host, part), spent in costs.micros.items()},
        }
        for costs in measured
    ]
    return {"machine": dict(facts), "costs": rows}
