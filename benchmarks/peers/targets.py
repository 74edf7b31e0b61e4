"""What we want to reach beside the peers, and whether a run did: ratios of one run only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.peers.catalog import EVERYSEC, SQLITE
from benchmarks.peers.report import Found, Row, figure, found_of, ratio, times
from benchmarks.peers.yardstick import WORKLOADS

HEAD = "| | beside | wanted | measured | |\n|---|---|--:|--:|---|"


@dataclass(frozen=True)
class Target:
    """Penstock is `minimum` times better than the best of these peers."""

    penstock: str
    workload: str
    peers: tuple[str, ...]
    minimum: float


@dataclass(frozen=True)
class Limit:
    """Penstock's own figure is at most this."""

    penstock: str
    workload: str
    maximum: float


DURABLE_ON_SQLITE = ("dbos-sqlite", "prefect", "dagster")
DURABLE_ON_SERVERS = ("dbos-postgres", "celery", "airflow")
TARGETS: tuple[Target | Limit, ...] = (
    Target(EVERYSEC, "diamonds", ("celery",), 20),
    Target(EVERYSEC, "diamonds", ("dbos-postgres",), 45),
    Target(EVERYSEC, "diamonds", ("prefect",), 1000),
    Target(SQLITE, "diamonds", ("dbos-sqlite",), 100),
    Target(SQLITE, "chain", DURABLE_ON_SQLITE, 2),
    Target(EVERYSEC, "chain", DURABLE_ON_SERVERS, 2),
    Target(SQLITE, "layers", (*DURABLE_ON_SQLITE, *DURABLE_ON_SERVERS), 20),
    Target(EVERYSEC, "layers", (*DURABLE_ON_SQLITE, *DURABLE_ON_SERVERS), 20),
    Limit(SQLITE, "light", 1.0),
    Limit(EVERYSEC, "light", 1.75),
)


def against(rows: Iterable[Row], titles: dict[str, str]) -> str:
    """A line for each target whose figures are there; empty if there is none."""
    row_by_key = found_of(rows)
    lines = [line for target in TARGETS if (line := _line(target, row_by_key, titles))]
    return "\n".join([HEAD, *lines]) if lines else ""


def _line(target: Target | Limit, row_by_key: Found, titles: dict[str, str]) -> str:
    own = row_by_key.get((target.penstock, target.workload))
    if own is None or not own.values:
        return ""
    what = f"{titles[target.penstock]}: {WORKLOADS[target.workload].title}"
    if isinstance(target, Limit):
        unit = WORKLOADS[target.workload].unit
        return _row(
            what,
            unit,
            f"≤ {target.maximum:g}",
            figure(own.median),
            is_reached=own.median <= target.maximum,
        )
    peers = _measured(target.peers, target.workload, row_by_key)
    if not peers:
        return ""
    best = min(peers, key=lambda row: ratio(row, own))
    reached = ratio(best, own)
    return _row(
        what,
        titles[best.peer],
        f"≥ {times(target.minimum)}",
        times(reached),
        is_reached=reached >= target.minimum,
    )


def _measured(names: Sequence[str], workload: str, row_by_key: Found) -> list[Row]:
    rows = [row_by_key.get((name, workload)) for name in names]
    return [row for row in rows if row is not None and row.values]


def _row(what: str, beside: str, wanted: str, measured: str, *, is_reached: bool) -> str:
    verdict = "reached" if is_reached else "**falls short**"
    return f"| {what} | {beside} | {wanted} | {measured} | {verdict} |"
