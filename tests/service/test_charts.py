"""Charts: what is made of counts, of node runs and of executions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from penstock.definition.plan import Plan, compile_document
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.states import ExecutionState, NodeState
from penstock.service import charts
from penstock.service.node_times import NodeTimes
from penstock.stores.base import Stored
from penstock.stores.records import CountRow, Window
from penstock.views.statistics import Bucket, NodeStats, StateCounts, WorkflowCounts

WINDOW = Window(since=960.0, bucket_seconds=60.0, buckets=3)


def row(workflow: str, state: str, bucket: int, count: int, example: str = "x") -> CountRow:
    return CountRow(workflow, state, bucket, count, example)


def test_buckets_begin_at_multiples_of_their_width_and_the_last_has_now_in_it() -> None:
    windows = [charts.window_of(now, 3600, 60) for now in (7200.1, 7230.0, 7259.9)]
    assert windows == [Window(3660.0, 60.0, 60)] * 3
    assert charts.window_of(7260.1, 3600, 60) == Window(3720.0, 60.0, 60)
    assert charts.window_of(7260.0, 3600, 60).bucket_of(7260.0) == 59


def test_a_few_wide_buckets_end_now() -> None:
    assert charts.window_of(7230.0, 3600, 1) == Window(3630.0, 3600.0, 1)
    assert charts.window_of(7230.0, 3600, 2) == Window(3630.0, 1800.0, 2)


def test_totals_and_series_have_every_state_and_every_bucket() -> None:
    rows = [row("a", "COMPLETED", 0, 2), row("b", "COMPLETED", 0, 3), row("a", "FAILED", 2, 1)]
    zero = dict.fromkeys(["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"], 0)
    assert charts.totals(rows) == StateCounts(**{**zero, "COMPLETED": 5, "FAILED": 1})
    assert charts.series(rows, WINDOW) == [
        Bucket(at="1970-01-01T00:16:00.000Z", **{**zero, "COMPLETED": 5}),
        Bucket(at="1970-01-01T00:17:00.000Z", **zero),
        Bucket(at="1970-01-01T00:18:00.000Z", **{**zero, "FAILED": 1}),
    ]


def test_workflows_that_fail_most_often_come_first_then_those_that_are_started_most() -> None:
    rows = [
        row("fine", "COMPLETED", 0, 5),
        row("busy", "COMPLETED", 0, 50),
        row("new", "RUNNING", 2, 7),
        row("bad", "FAILED", 0, 1),
        row("bad", "COMPLETED", 1, 2),
        row("bad", "CANCELLED", 1, 9),
        row("bad", "PAUSED", 1, 1),
        row("worse", "FAILED", 1, 1),
        row("worse", "FAILED", 2, 1),
    ]
    workflows = charts.workflows(rows)
    assert [workflow.workflow for workflow in workflows] == [
        "worse",
        "bad",
        "busy",
        "new",
        "fine",
    ]
    assert workflows[1] == WorkflowCounts(
        workflow="bad",
        total=13,
        completed=2,
        failed=1,
        cancelled=9,
        active=1,
        failure_rate=0.333333,
    )
    assert workflows[3].failure_rate == 0.0


def test_no_more_than_fifty_workflows_are_shown() -> None:
    workflows = charts.workflows(
        [row(f"w{number}", "FAILED", 0, number) for number in range(1, 61)]
    )
    assert [workflow.workflow for workflow in workflows] == [
        f"w{number}" for number in range(60, 10, -1)
    ]


def test_examples_are_of_what_there_is_most_and_have_ended() -> None:
    rows = [
        row("a", "RUNNING", 0, 90, "running"),
        row("a", "COMPLETED", 0, 5, "second"),
        row("a", "FAILED", 0, 1, "third"),
        row("b", "COMPLETED", 0, 9, "first"),
        row("b", "CANCELLED", 1, 1, "other bucket"),
        row("b", "PENDING", 2, 1),
    ]
    assert charts.examples(rows, 2) == {0: ["first", "second"], 1: ["other bucket"]}


def test_a_hop_is_from_the_decision_to_the_start_and_data_nodes_have_none() -> None:
    runs = [
        NodeRun("a", NodeState.COMPLETED, 1, queued_at=100.0, started_at=100.5, finished_at=109.0),
        NodeRun("data", NodeState.COMPLETED, finished_at=109.0),
        NodeRun("never", NodeState.CANCELLED, 1, queued_at=109.0, finished_at=110.0),
        NodeRun("b", NodeState.FAILED, 3, queued_at=120.0, started_at=120.25, finished_at=121.0),
    ]
    assert charts.hops_of(runs) == (0.5, 0.25)


def test_of_a_large_execution_only_some_hops_are_taken_from_all_over_it() -> None:
    runs = [
        NodeRun("n", NodeState.COMPLETED, 1, queued_at=0.0, started_at=float(number))
        for number in range(10_000)
    ]
    hops = charts.hops_of(runs)
    assert 50 <= len(hops) <= charts.HOPS_MAX
    assert max(hops) > 9800
    assert len({after - before for before, after in pairwise(hops)}) == 1


def test_hops_are_shown_in_milliseconds_and_none_where_there_are_none() -> None:
    hops = charts.hops_view({0: [0.001] * 19 + [0.5], 2: [0.0021234]}, WINDOW)
    assert (hops.p50_ms, hops.p95_ms, hops.samples) == (1.0, 2.123, 21)
    assert [(bucket.p50_ms, bucket.p95_ms) for bucket in hops.series] == [
        (1.0, 1.0),
        (None, None),
        (2.123, 2.123),
    ]
    assert charts.hops_view({}, WINDOW).p50_ms is None


@pytest.mark.parametrize(
    ("values", "share", "wanted"),
    [
        ([], 0.5, None),
        ([3.0], 0.5, 3.0),
        ([2.0, 1.0], 0.5, 1.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([float(n) for n in range(100, 0, -1)], 0.95, 95.0),
        ([1.0, 2.0], 0.95, 2.0),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_a_percentile_is_one_of_the_values(
    values: list[float], share: float, wanted: float | None
) -> None:
    assert charts.percentile(values, share) == wanted


def plan(**handlers: str) -> Plan:
    document = {
        "name": "w",
        "nodes": [{"id": name, "handler": handler} for name, handler in handlers.items()],
    }
    return compile_document(document, allow_unknown_handlers=True).plan


def stored(
    state: ExecutionState, *runs: NodeRun, seconds: float = 1.0, version: int = 1, **fields: Any
) -> Stored:
    record = ExecutionRecord(
        "x", "w", version, state, b"{}", 0.0, started_at=10.0, finished_at=10.0 + seconds
    )
    return Stored(record, {run.node_id: run for run in runs}, {}, 0, [], [])


def run(name: str, state: NodeState, seconds: float = 1.0, **fields: Any) -> NodeRun:
    defaults = {
        "attempt": 1,
        "queued_at": 20.0,
        "started_at": 20.0,
        "finished_at": 20.0 + seconds,
        **fields,
    }
    return NodeRun(name, state, **defaults)


def test_nodes_are_counted_and_timed_by_how_they_ended() -> None:
    times = NodeTimes()
    for seconds in (1.0, 2.0, 3.0):
        times.add(
            stored(
                ExecutionState.COMPLETED,
                run("a", NodeState.COMPLETED, seconds),
                seconds=10 * seconds,
            )
        )
    times.add(
        stored(
            ExecutionState.FAILED,
            run("a", NodeState.FAILED, 99.0, attempt=3),
            run("b", NodeState.SKIPPED, attempt=0),
        )
    )
    times.add(stored(ExecutionState.CANCELLED, run("a", NodeState.CANCELLED, 99.0)))
    node_times = times.view("flow", None, [plan(a="echo", b="http", never="noop")])
    assert node_times.sampled == 5
    assert node_times.states == {"COMPLETED": 3, "FAILED": 1, "CANCELLED": 1}
    assert (node_times.p50_seconds, node_times.p95_seconds) == (20.0, 30.0)
    a, b, never = node_times.nodes
    assert a == NodeStats(
        node_id="a",
        handler="echo",
        count=4,
        failed=1,
        skipped=0,
        failure_rate=0.25,
        attempts=7,
        p50_seconds=2.0,
        p95_seconds=3.0,
    )
    nothing: dict[str, Any] = {
        "count": 0,
        "failed": 0,
        "failure_rate": 0.0,
        "attempts": 0,
        "p50_seconds": None,
        "p95_seconds": None,
    }
    assert b == NodeStats(node_id="b", handler="http", skipped=1, **nothing)
    assert never == NodeStats(node_id="never", handler="noop", skipped=0, **nothing)


def test_what_an_earlier_execution_ran_is_not_counted_again() -> None:
    times = NodeTimes()
    reused = NodeRun("a", NodeState.COMPLETED, finished_at=20.0, reason="kept")
    times.add(stored(ExecutionState.COMPLETED, reused, run("b", NodeState.COMPLETED)))
    assert [node.count for node in times.view("flow", None, [plan(a="echo", b="echo")]).nodes] == [
        0,
        1,
    ]


def test_nodes_that_only_an_older_version_has_come_last() -> None:
    times = NodeTimes()
    times.add(stored(ExecutionState.COMPLETED, run("b", NodeState.COMPLETED), version=2))
    times.add(stored(ExecutionState.COMPLETED, run("old", NodeState.FAILED), version=1))
    assert times.versions == {1, 2}
    nodes = times.view(
        "flow", None, [plan(b="new-handler", a="echo"), plan(old="noop", b="old-handler")]
    ).nodes
    assert [(node.node_id, node.handler, node.count) for node in nodes] == [
        ("b", "new-handler", 1),
        ("a", "echo", 0),
        ("old", "noop", 1),
    ]
