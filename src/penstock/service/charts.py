"""The data of charts, made of what was counted and read. Pure: `statistics` does the reading."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from penstock.engine.commands import NodeRun
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.orchestrator.view import time_text
from penstock.stores.records import CountRow, Window

STATES = tuple(str(state) for state in ExecutionState)
ENDS = tuple(str(state) for state in ExecutionState if state in EXECUTION_ENDS)
FEW_BUCKETS = 10
WORKFLOWS_MAX = 50
HOPS_MAX = 100
"""Hops that are taken of one execution: one with thousands of nodes doesn't outweigh the others."""


def window_of(now: float, seconds: float, buckets: int) -> Window:
    """The window of the last `seconds`, in buckets that begin at multiples of their width.

    So they don't move from call to call.

    The last one is under way, and the window shorter by what it lacks. Of a few wide ones that
    could be most of it: they end now.
    """
    width = seconds / buckets
    end = now if buckets < FEW_BUCKETS else ceil(now / width) * width
    return Window(end - seconds, width, buckets)


def times(window: Window) -> list[str | None]:
    """When each bucket begins."""
    return [
        time_text(window.since + number * window.bucket_seconds) for number in range(window.buckets)
    ]


def totals(rows: Iterable[CountRow]) -> dict[str, int]:
    found = dict.fromkeys(STATES, 0)
    for row in rows:
        found[row.state] += row.count
    return found


def series(rows: Iterable[CountRow], window: Window) -> list[dict[str, Any]]:
    by_bucket: defaultdict[int, list[CountRow]] = defaultdict(list)
    for row in rows:
        by_bucket[row.bucket].append(row)
    return [{"at": at, **totals(by_bucket[number])} for number, at in enumerate(times(window))]


def workflows(rows: Iterable[CountRow]) -> list[dict[str, Any]]:
    """The workflows, those that fail most often first, then those that are started most."""
    by_name: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_name[row.workflow][row.state] += row.count
    found = [_workflow(name, counts) for name, counts in by_name.items()]
    found.sort(key=lambda each: (-each["failure_rate"], -each["total"], each["workflow"]))
    return found[:WORKFLOWS_MAX]


def _workflow(name: str, counts: Mapping[str, int]) -> dict[str, Any]:
    completed, failed, cancelled = (counts[state] for state in ("COMPLETED", "FAILED", "CANCELLED"))
    total = sum(counts.values())
    return {
        "workflow": name,
        "total": total,
        "completed": completed,
        "failed": failed,
        "cancelled": cancelled,
        "active": total - completed - failed - cancelled,
        "failure_rate": rate(failed, completed + failed),
    }


def examples(rows: Iterable[CountRow], per_bucket: int) -> dict[int, list[str]]:
    """Ids of some executions that have ended, by bucket: of what there is most, and no two of the same kind."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    ended = (row for row in rows if row.state in EXECUTION_ENDS)
    for row in sorted(ended, key=lambda row: (-row.count, row.workflow, row.state)):
        if len(found[row.bucket]) < per_bucket:
            found[row.bucket].append(row.example)
    return found


def hops_of(runs: Iterable[NodeRun]) -> tuple[float, ...]:
    """The hops of an execution.

    From the decision that a node may start, which is that its dependencies have settled, to its
    start by a worker.

    As `penstock_hop_seconds`, of each node's last attempt. A data node is evaluated in the decision
    and has none.
    """
    found = tuple(
        run.started_at - run.queued_at
        for run in runs
        if run.started_at is not None and run.queued_at is not None
    )
    return found[:: len(found) // HOPS_MAX + 1]


def hops_view(by_bucket: Mapping[int, Sequence[float]], window: Window) -> dict[str, Any]:
    everything = [hop for hops in by_bucket.values() for hop in hops]
    found = [
        {"at": at, **_milliseconds(by_bucket.get(number, ()))}
        for number, at in enumerate(times(window))
    ]
    return {**_milliseconds(everything), "samples": len(everything), "series": found}


def _milliseconds(hops: Sequence[float]) -> dict[str, float | None]:
    found = {"p50_ms": percentile(hops, 0.50), "p95_ms": percentile(hops, 0.95)}
    return {
        name: None if seconds is None else round(1000 * seconds, 3)
        for name, seconds in found.items()
    }


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that this share of all of them doesn't exceed, to the microsecond; None of nothing."""
    if not values:
        return None
    return round(sorted(values)[max(ceil(share * len(values)), 1) - 1], 6)


def rate(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0
