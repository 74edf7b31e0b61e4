"""From what one task costs to what a million a second would need.

Arithmetic: nothing was run at that size.
"""

from __future__ import annotations

from math import ceil

from benchmarks.costs.report import Costs

GOAL = 1_000_000
"""Tasks per second."""
LOAD = 0.6
"""How busy a core may be, so that a lost one's work finds room on the others."""
DAY = 86_400
HOSTS = {
    "api": "API processes",
    "orchestrator": "orchestrators",
    "worker": "workers, for what isn't the handler",
    "Redis": "Redis shards, of one core each",
    "PostgreSQL": "PostgreSQL, cores in all",
}
FLOWS = ("to Redis", "from Redis", "append-only file", "PostgreSQL's log (WAL)")
IN_POSTGRES = "kept in PostgreSQL"


def cores(micros: float) -> int:
    """A microsecond per task is a core, at a million a second."""
    return ceil(micros * GOAL / 1e6 / LOAD)


def plan(costs: Costs) -> str:
    rows = [f"| {GOAL:,} tasks/s | CPU µs per task | cores, {LOAD:.0%} busy |", "|---|--:|--:|"]
    for host, title in HOSTS.items():
        micros = costs.host(host)
        rows.append(f"| {title} | {micros:.0f} | {cores(micros):,} |")
    flows = [
        f"| {name} | {costs.sizes[name]:,.0f} | {costs.sizes[name] * GOAL / 1e9:.2f} GB/s |"
        for name in FLOWS
    ]
    in_postgres = costs.sizes[IN_POSTGRES]
    flows.append(
        f"| {IN_POSTGRES} | {in_postgres:,.0f} | {in_postgres * GOAL / 1e9:.2f} GB/s, "
        f"{in_postgres * GOAL * DAY / 1e12:,.0f} TB a day |"
    )
    return "\n".join([*rows, "", "| | bytes per task | at that rate |", "|---|--:|--:|", *flows])
