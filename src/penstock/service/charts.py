"""The data of charts, computed from counts and node runs. Pure: `statistics` reads the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import ceil

from penstock.engine.commands import NodeRun
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.stores.records import CountRow, Window
from penstock.views.statistics import Bucket, HopBucket, Hops, StateCounts, WorkflowCounts
from penstock.views.times import time_text

STATES = tuple(str(state) for state in ExecutionState)
ENDS = tuple(str(state) for state in ExecutionState if state in EXECUTION_ENDS)
FEW_BUCKETS = 10
WORKFLOWS_MAX = 50
HOPS_MAX = 100
"""Hops that are sampled from one execution, so that one with thousands of nodes doesn't dominate.
"""


def window_of(now: float, seconds: float, buckets: int) -> Window:
    """The window of the last `seconds`, in buckets that begin at multiples of their width.

    So buckets don't move from call to call. The last bucket is still under way, and the window
    covers less time by what that bucket lacks. With a few wide buckets that could be most of the
    window, so those end now instead.
    """
    width = seconds / buckets
    end = now if buckets < FEW_BUCKETS else ceil(now / width) * width
    return Window(end - seconds, width, buckets)


def times(window: Window) -> list[str]:
    """When each bucket begins."""
    return [
        time_text(window.since + number * window.bucket_seconds) for number in range(window.buckets)
    ]


def totals(rows: Iterable[CountRow]) -> StateCounts:
    return StateCounts(**_counts_by_state(rows))


def _counts_by_state(rows: Iterable[CountRow]) -> dict[str, int]:
    """Counts by state, with a zero for each state that has none."""
    counts = dict.fromkeys(STATES, 0)
    for row in rows:
        counts[row.state] += row.count
    return counts


def series(rows: Iterable[CountRow], window: Window) -> list[Bucket]:
    by_bucket: defaultdict[int, list[CountRow]] = defaultdict(list)
    for row in rows:
        by_bucket[row.bucket].append(row)

    return [
        Bucket(at=at, **_counts_by_state(by_bucket[number]))
        for number, at in enumerate(times(window))
    ]


def workflows(rows: Iterable[CountRow]) -> list[WorkflowCounts]:
    """The workflows, those that fail most often first, then those that are started most."""
    by_name: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_name[row.workflow][row.state] += row.count

    views = [_workflow_view(name, counts) for name, counts in by_name.items()]
    views.sort(key=_most_failing_first)
    return views[:WORKFLOWS_MAX]


def _most_failing_first(view: WorkflowCounts) -> tuple[float, int, str]:
    return -view.failure_rate, -view.total, view.workflow


def _workflow_view(name: str, counts: Mapping[str, int]) -> WorkflowCounts:
    completed = counts["COMPLETED"]
    failed = counts["FAILED"]
    cancelled = counts["CANCELLED"]
    total = sum(counts.values())
    return WorkflowCounts(
        workflow=name,
        total=total,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        active=total - completed - failed - cancelled,
        failure_rate=rate(failed, completed + failed),
    )


def examples(rows: Iterable[CountRow], per_bucket: int) -> dict[int, list[str]]:
    """Ids of example executions that have ended, by bucket.

    At most one for each workflow and state, those with the highest counts first.
    """
    ended = [row for row in rows if row.state in EXECUTION_ENDS]
    ended.sort(key=lambda row: (-row.count, row.workflow, row.state))

    execution_ids: defaultdict[int, list[str]] = defaultdict(list)
    for row in ended:
        if len(execution_ids[row.bucket]) < per_bucket:
            execution_ids[row.bucket].append(row.example)
    return execution_ids


def hops_of(runs: Iterable[NodeRun]) -> tuple[float, ...]:
    """The hops of an execution, in seconds: an evenly spread sample if there are many.

    A hop lasts from the decision that a node may start, which is when its dependencies have
    settled, to its start on a worker. As in `penstock_hop_seconds`, it is that of each node's last
    attempt. A data node is evaluated in the decision and has no hop.
    """
    hops = tuple(
        run.started_at - run.queued_at
        for run in runs
        if run.started_at is not None and run.queued_at is not None
    )
    step = len(hops) // HOPS_MAX + 1
    return hops[::step]


def hops_view(by_bucket: Mapping[int, Sequence[float]], window: Window) -> Hops:
    all_hops = list(chain.from_iterable(by_bucket.values()))
    buckets = [
        HopBucket(at=at, **_percentiles(by_bucket.get(number, ())))
        for number, at in enumerate(times(window))
    ]
    return Hops(**_percentiles(all_hops), samples=len(all_hops), series=buckets)


def _percentiles(hops: Sequence[float]) -> dict[str, float | None]:
    return {
        "p50_ms": _milliseconds(percentile(hops, 0.50)),
        "p95_ms": _milliseconds(percentile(hops, 0.95)),
    }


def _milliseconds(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    return round(1000 * seconds, 3)


def percentile(values: Sequence[float], share: float) -> float | None:
    """A percentile: the smallest value that is at least as large as this share of the values.

    Rounded to six digits; None if there are no values.
    """
    if not values:
        return None
    rank = max(ceil(share * len(values)), 1)
    return round(sorted(values)[rank - 1], 6)


def rate(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0
