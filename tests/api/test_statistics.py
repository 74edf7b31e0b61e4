"""How the store and its workflows do, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.views.statistics import Stats, WorkflowStats
from tests.api.caller import Caller, assert_problem, at_once, document, failing, segment
from tests.api.gates import GatedService, gated, gated_service
from tests.servers import database_url, redis_url
from tests.waiting import until_now

STATES = ("PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("statistics")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def stats(api: Caller, **query: Any) -> dict[str, Any]:
    """An answer, which has exactly the fields that are described."""
    statistics: dict[str, Any] = api.shown("/stats", **query)
    assert_described(statistics, Stats)
    return statistics


def assert_described(answer: Any, view: type[msgspec.Struct]) -> None:
    assert msgspec.to_builtins(msgspec.convert(answer, view, strict=True)) == answer
    assert set(view.__struct_encode_fields__) == answer.keys()


def test_an_empty_store_has_nothing_to_show(tmp_path: Path) -> None:
    with gated_service(tmp_path) as server:
        answer = stats(server.api)
        assert answer["active"] == {"PENDING": 0, "RUNNING": 0, "PAUSED": 0}
        assert answer["totals"] == dict.fromkeys(STATES, 0)
        assert len(answer["series"]) == len(answer["hops"]["series"]) == 60
        assert answer["workflows"] == []
        assert (answer["hops"]["p50_ms"], answer["hops"]["samples"]) == (None, 0)
        assert (answer["dead_letters"], answer["inbox"], answer["truncated"]) == (0, 0, False)
        assert answer["tasks"] == {"waiting": 0, "running": 0}
        assert (answer["workers"], answer["orchestrators"]) == (1, 1)


def test_everything_that_happens_is_counted_where_it_belongs(tmp_path: Path) -> None:
    with gated_service(tmp_path) as server:
        api = server.api
        for _ in range(3):
            api.ended(document("fine", {"a": "", "b": "a"}))
        api.ended(failing("bad"))
        running, paused, cancelled = (
            api.start(gated(name, "a", "b")) for name in ("running", "paused", "cancelled")
        )
        for name in ("running", "paused", "cancelled"):
            server.gates.until_asked(f"{name} a")
        api.post(f"/executions/{paused}/pause")
        api.until_state(paused, "PAUSED")
        api.post(f"/executions/{cancelled}/cancel")
        api.until_state(cancelled, "CANCELLED")
        answer = stats(api, seconds=3600, buckets=20)
        assert answer["active"] == {"PENDING": 0, "RUNNING": 1, "PAUSED": 1}
        wanted = {
            "COMPLETED": 3,
            "FAILED": 1,
            "CANCELLED": 1,
            "RUNNING": 1,
            "PAUSED": 1,
            "PENDING": 0,
        }
        assert answer["totals"] == wanted
        assert {state: sum(item[state] for item in answer["series"]) for state in STATES} == wanted
        assert answer["dead_letters"] == 1
        assert answer["tasks"]["running"] >= 1
        assert answer["workflows"][0] == {
            "workflow": "bad",
            "total": 1,
            "completed": 0,
            "failed": 1,
            "cancelled": 0,
            "active": 0,
            "failure_rate": 1.0,
        }
        assert [item["workflow"] for item in answer["workflows"]] == [
            "bad",
            "fine",
            "cancelled",
            "paused",
            "running",
        ]
        assert_hops(answer["hops"])
        assert api.state(running) == "RUNNING"


def assert_hops(hops: dict[str, Any]) -> None:
    assert hops["samples"] >= 4, "two nodes that completed, two of the one that failed"
    assert 0 <= hops["p50_ms"] <= hops["p95_ms"] < 60_000
    assert any(bucket["p50_ms"] is not None for bucket in hops["series"])
    assert any(bucket["p50_ms"] is None for bucket in hops["series"])


def test_on_redis_and_postgresql_it_is_the_same_a_moment_later(tmp_path: Path) -> None:
    with gated_service(tmp_path, store=redis_url(), database=database_url()) as server:
        api = server.api
        api.store(document("fine", {"a": "", "b": "a"}))
        api.ended("fine")
        api.start(gated("held", "a"))
        server.gates.until_asked("held a")

        def look() -> dict[str, Any] | None:
            answer = stats(api, buckets=30)
            is_there = (
                answer["totals"]["COMPLETED"]
                and answer["hops"]["samples"]
                and answer["active"]["RUNNING"]
            )
            return answer if is_there else None

        settled = until_now(look, "the end of one and the start of the other are in PostgreSQL")
        assert settled["active"] == {"PENDING": 0, "RUNNING": 1, "PAUSED": 0}
        assert settled["totals"] == {**dict.fromkeys(STATES, 0), "COMPLETED": 1, "RUNNING": 1}
        assert (settled["tasks"], settled["workers"], settled["orchestrators"]) == (
            {"waiting": 0, "running": 1},
            1,
            1,
        )
        assert settled["hops"]["samples"] == 2
        assert api.shown("/workflows/fine/stats")["states"]["COMPLETED"] == 1
        until_now(lambda: stats(api, buckets=31)["inbox"] == 0, "everything is committed")
        server.gates.open("held a")


def test_what_waits_for_its_trigger_is_pending(tmp_path: Path) -> None:
    with gated_service(tmp_path) as server:
        server.api.store(document("waits", {"a": ""}))
        answer = server.api.send(
            "POST",
            "/v1/workflow",
            b'{"name": "w", "dag": {"nodes": [{"id": "a", "handler": "noop"}]}}',
            {"Content-Type": "application/json"},
        )
        assert answer.status == 201, answer
        pending = stats(server.api, buckets=30)
        assert (pending["active"]["PENDING"], pending["totals"]["PENDING"]) == (1, 1)
        assert pending["workflows"][0]["active"] == 1


def test_buckets_are_one_after_another_and_the_last_has_now_in_it(api: Caller) -> None:
    for seconds, buckets in ((60, 60), (3600, 12), (604_800, 200), (100, 7), (60, 1)):
        answer = stats(api, seconds=seconds, buckets=buckets)
        assert answer["bucket_seconds"] == pytest.approx(seconds / buckets)
        at = [datetime.fromisoformat(bucket["at"]).timestamp() for bucket in answer["series"]]
        assert [bucket["at"] for bucket in answer["hops"]["series"]] == [
            bucket["at"] for bucket in answer["series"]
        ]
        assert len(at) == buckets
        assert answer["series"][0]["at"] == answer["since"]
        widths = [after - before for before, after in pairwise(at)]
        assert widths == pytest.approx([seconds / buckets] * (buckets - 1), abs=0.002)
        now = datetime.fromisoformat(answer["now"]).timestamp()
        assert at[-1] - 0.002 <= now <= at[-1] + seconds / buckets + 0.002


def test_an_answer_is_shared_for_a_moment_and_then_made_again(api: Caller) -> None:
    answers = at_once(8, lambda _: api.shown("/stats", seconds=7200, buckets=11))
    assert len({answer["now"] for answer in answers}) <= 2
    until_now(
        lambda: api.shown("/stats", seconds=7200, buckets=11)["now"] > answers[0]["now"],
        "a newer answer",
    )


@pytest.mark.parametrize(
    "query",
    [
        {"seconds": 59},
        {"seconds": 604_801},
        {"buckets": 0},
        {"buckets": 201},
        {"seconds": "1h"},
        {"buckets": 1.5},
    ],
)
def test_a_window_that_is_too_wide_or_too_fine_is_refused(
    api: Caller, query: dict[str, Any]
) -> None:
    assert_problem(api.get("/stats", **query), 422, "invalid_request")


def test_a_workflow_shows_how_its_nodes_do_in_the_order_of_the_plan(api: Caller) -> None:
    retry = {"max_attempts": 3, "initial_delay_seconds": 0.01, "jitter_seconds": 0}
    nodes = [
        {"id": "z", "handler": "echo", "config": {"n": 1}},
        {
            "id": "m",
            "handler": "tell",
            "dependencies": ["z"],
            "config": {"until": 2},
            "retry": retry,
        },
        {"id": "a", "handler": "echo", "dependencies": ["m"], "condition": "1 > 2"},
        {"id": "out", "handler": "output", "dependencies": ["m"], "config": {"n": "{{ z.n }}"}},
    ]
    api.store({"name": "nodes", "nodes": nodes})
    for _ in range(2):
        api.ended("nodes")
    answer = api.shown("/workflows/nodes/stats")
    assert_described(answer, WorkflowStats)
    assert (answer["name"], answer["version"], answer["sampled"]) == ("nodes", None, 2)
    assert answer["states"] == {"COMPLETED": 2, "FAILED": 0, "CANCELLED": 0}
    assert 0 < answer["p50_seconds"] <= answer["p95_seconds"]
    z, m, a, out = answer["nodes"]
    assert [node["node_id"] for node in (z, m, a, out)] == ["z", "m", "a", "out"]
    assert [node["handler"] for node in (z, m, a, out)] == ["echo", "tell", "echo", "output"]
    assert (m["count"], m["failed"], m["attempts"], m["failure_rate"]) == (2, 0, 4, 0.0)
    assert 0 <= m["p50_seconds"] <= m["p95_seconds"]
    assert (a["count"], a["skipped"], a["p50_seconds"]) == (0, 2, None)
    assert (out["count"], out["p50_seconds"]) == (2, None), "a data node takes no time of a worker"


def test_a_workflow_that_fails_shows_where(api: Caller) -> None:
    api.store(failing("fails"))
    api.ended("fails")
    answer = api.shown("/workflows/fails/stats")
    by_name = {node["node_id"]: node for node in answer["nodes"]}
    assert answer["states"]["FAILED"] == 1
    assert answer["p50_seconds"] is None, "none has completed"
    assert (by_name["bad"]["failed"], by_name["bad"]["failure_rate"]) == (1, 1.0)
    assert (by_name["after"]["skipped"], by_name["after"]["count"]) == (1, 0)


def test_a_version_counts_alone_and_a_sample_is_the_newest(api: Caller) -> None:
    for nodes in ({"a": ""}, {"b": "", "c": "b"}):
        api.store(document("versions", nodes))
        for _ in range(2):
            api.ended("versions")
    api.put("/workflows/versions/aliases/stable", {"version": 1})
    first = api.shown("/workflows/versions/stats", version=1)
    assert (first["version"], first["sampled"], [node["node_id"] for node in first["nodes"]]) == (
        1,
        2,
        ["a"],
    )
    assert api.shown("/workflows/versions/stats", version="stable") == first
    assert api.shown("/workflows/versions@1/stats") == first
    both = api.shown("/workflows/versions/stats")
    assert (both["version"], both["sampled"]) == (None, 4)
    assert [(node["node_id"], node["count"]) for node in both["nodes"]] == [
        ("b", 2),
        ("c", 2),
        ("a", 2),
    ]
    newest = api.shown("/workflows/versions/stats", sample=1)
    assert (newest["sampled"], [node["node_id"] for node in newest["nodes"]]) == (1, ["b", "c"])


def test_a_workflow_that_never_ran_has_its_nodes_and_no_numbers(server: GatedService) -> None:
    server.api.store(document("idle", {"a": ""}))
    answer = server.api.shown("/workflows/idle/stats")
    assert (answer["sampled"], answer["p95_seconds"], answer["nodes"][0]["count"]) == (0, None, 0)
    server.api.store(gated("unfinished stats", "a"))
    unfinished = server.api.start("unfinished stats")
    server.gates.until_asked("unfinished stats a")
    assert server.api.shown(f"/workflows/{segment('unfinished stats')}/stats")["sampled"] == 0, (
        "it hasn't ended"
    )
    server.gates.open("unfinished stats a")
    server.api.until_state(unfinished, "COMPLETED")


def test_a_workflow_or_version_that_is_not_there_is_not_found(api: Caller) -> None:
    api.store(document("here", {"a": ""}))
    for path, query in (("nobody", {}), ("here", {"version": 2}), ("here", {"version": "stable"})):
        assert_problem(api.get(f"/workflows/{path}/stats", **query), 404, "not_found")
    for query in ({"sample": 0}, {"sample": 501}, {"version": "x" * 65}):
        assert_problem(api.get("/workflows/here/stats", **query), 422, "invalid_request")


def test_a_name_that_ends_in_stats_is_a_name(api: Caller) -> None:
    api.store(document("team/stats", {"a": ""}))
    api.store(document("stats", {"a": ""}))
    assert api.shown(f"/workflows/{segment('team/stats')}")["name"] == "team/stats"
    assert api.shown("/workflows/stats")["name"] == "stats"
    assert api.shown(f"/workflows/{segment('team/stats')}/stats")["sampled"] == 0
    assert api.shown("/workflows/stats/stats")["name"] == "stats"
