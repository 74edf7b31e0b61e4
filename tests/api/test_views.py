"""Looking at an execution over HTTP: results, nodes with their attempts, logs, history, graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem, document, failing, segment
from tests.api.gates import GatedService, gated, gated_service

HOSTILE_IDS = [
    "a/b",
    "/",
    "//",
    "..",
    ".",
    "../../etc/passwd",
    "100%",
    "%2F",
    "%00",
    "a b",
    "é",
    "e\u0301",
    "日本語",
    "😀",
    "a?b=c",
    "a#b",
    "a;b",
    "a+b",
    "a&b",
    "__class__",
    "__proto__",
    "constructor",
    "nodes/x/logs",
    "logs",
    "x/logs",
    "NFCORE.RNASEQ.FASTQC_1",
    "<img src=x>",
    "'",
    '"',
    "\\",
    "{{ x }}",
    "x" * 256,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("views")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def test_results_have_the_output_and_those_of_all_nodes(api: Caller) -> None:
    written = document("results", {"a": "", "b": "a", "c": "a"})
    for node in written["nodes"]:
        node["config"] = {"me": node["id"]}
    ended = api.ended(written)
    results = api.shown(f"/executions/{ended['execution_id']}/results")
    assert results == {
        "execution_id": ended["execution_id"],
        "state": "COMPLETED",
        "completed": True,
        "error": None,
        "output": {"b": {"me": "b"}, "c": {"me": "c"}},
        "outputs": {name: {"me": name} for name in "abc"},
    }


def test_an_execution_and_its_results_have_the_tokens_of_its_nodes(api: Caller) -> None:
    written = document("tokens", {"a": "", "b": ""})
    for node in written["nodes"]:
        node["handler"] = "spend"
        node["config"] = {"prompt": 10, "completion": 2}
    ended = api.ended(written)
    tokens = {"prompt": 20, "completion": 4, "total": 24}
    assert ended["tokens"] == tokens
    path = f"/executions/{ended['execution_id']}"
    assert api.shown(f"{path}/results")["tokens"] == tokens
    assert "tokens" not in api.shown(f"{path}?nodes=false")


def test_the_output_node_makes_the_output(api: Caller) -> None:
    written = document("with-output", {"a": "", "b": ""})
    written["nodes"].append(
        {"id": "out", "handler": "output", "dependencies": ["a"], "config": {"got": "{{ a }}"}}
    )
    ended = api.ended(written)
    assert ended["output"] == {"got": {}}
    assert api.shown(f"/executions/{ended['execution_id']}/results")["output"] == {"got": {}}


def test_results_of_what_has_not_ended_and_of_what_failed_say_so(server: GatedService) -> None:
    running = server.api.start(gated("unfinished", "a", "b"))
    server.gates.open("unfinished a")
    server.gates.until_asked("unfinished b")
    results = server.api.shown(f"/executions/{running}/results")
    assert (results["state"], results["completed"], results["outputs"]) == (
        "RUNNING",
        False,
        {"a": {"gate": "unfinished a"}},
    )
    server.gates.open("unfinished b")
    failed = server.api.ended(failing("failed", message="no luck"))
    results = server.api.shown(f"/executions/{failed['execution_id']}/results")
    assert (results["state"], results["completed"], results["outputs"]) == (
        "FAILED",
        False,
        {"a": {"n": 1}},
    )
    assert results["error"] == {"category": "handler", "message": "no luck", "node_id": "bad"}


def test_a_node_shows_how_it_was_written_and_every_attempt(api: Caller) -> None:
    retry = {"max_attempts": 3, "initial_delay_seconds": 0.01, "jitter_seconds": 0}
    config = {"until": 3, "lines": ["{{ first.word }}"]}
    nodes = [
        {"id": "first", "handler": "echo", "config": {"word": "hello"}},
        {
            "id": "tries",
            "handler": "tell",
            "dependencies": ["first"],
            "config": config,
            "retry": retry,
        },
    ]
    execution_id = api.ended({"name": "attempts", "nodes": nodes})["execution_id"]
    node = api.shown(f"/executions/{execution_id}/nodes/tries")
    assert (node["node_id"], node["handler"], node["dependencies"]) == ("tries", "tell", ["first"])
    assert (node["state"], node["attempt"], node["config"]) == ("COMPLETED", 3, config)
    assert (node["condition"], node["trigger_rule"]) == (None, "all_success")
    attempts = node["attempts"]
    assert [(attempt["attempt"], attempt["state"]) for attempt in attempts] == [
        (1, "FAILED"),
        (2, "FAILED"),
        (3, "COMPLETED"),
    ]
    assert [attempt["error"] and attempt["error"]["message"] for attempt in attempts] == [
        "RuntimeError: not at attempt 1",
        "RuntimeError: not at attempt 2",
        None,
    ]
    assert [bool(attempt["at"]) for attempt in attempts] == [True, True, False]
    assert all(attempt["worker_id"] for attempt in attempts)
    moments = [
        attempt[key] for attempt in attempts for key in ("queued_at", "started_at", "finished_at")
    ]
    assert all(moments)
    assert moments == sorted(moments)
    assert moments[-3:] == [node["queued_at"], node["started_at"], node["finished_at"]]
    assert_logs(api, execution_id)


def assert_logs(api: Caller, execution_id: str) -> None:
    logs = api.shown(f"/executions/{execution_id}/nodes/tries/logs")
    assert (logs["node_id"], logs["next_cursor"]) == ("tries", None)
    assert [item["attempt"] for item in logs["items"]] == [1, 2, 3]
    for item in logs["items"]:
        assert f"attempt {item['attempt']} of tries" in item["text"]
        assert "WARNING hello" in item["text"]
    assert api.shown(f"/executions/{execution_id}/nodes/first/logs")["items"] == []


def test_conditions_and_reasons_are_shown(api: Caller) -> None:
    written = document("conditions", {"a": "", "b": "a", "c": "b"})
    written["nodes"][1]["condition"] = "1 > 2"
    ended = api.ended(written)
    node = api.shown(f"/executions/{ended['execution_id']}/nodes/b")
    assert (node["state"], node["condition"]) == ("SKIPPED", "1 > 2")
    assert node["reason"]
    assert node["attempts"] == []


def test_a_secret_is_shown_as_the_reference_that_was_written(api: Caller) -> None:
    written = document("secret", {"a": ""}, "call_external_service")
    written["nodes"][0]["config"] = {"url": "https://{{ secrets.NOWHERE }}"}
    ended = api.ended(written)
    assert ended["state"] == "FAILED"
    assert api.shown(f"/executions/{ended['execution_id']}/nodes/a")["config"] == {
        "url": "https://{{ secrets.NOWHERE }}"
    }


@pytest.mark.parametrize("node_id", ["nobody", "A", "a/", "..", "%", "\x00", "x" * 3000])
def test_a_node_that_is_not_there_is_not_found(api: Caller, node_id: str) -> None:
    execution_id = api.ended(document("nodes", {"a": ""}))["execution_id"]
    for path in ("", "/logs"):
        assert_problem(
            api.get(f"/executions/{execution_id}/nodes/{segment(node_id)}{path}"), 404, "not_found"
        )


@pytest.mark.parametrize("node_id", HOSTILE_IDS)
def test_a_node_of_any_name_is_found_by_its_quoted_name(api: Caller, node_id: str) -> None:
    nodes = [
        {"id": node_id, "handler": "tell", "config": {"lines": ["here"]}},
        {"id": "next to it", "handler": "tell", "dependencies": [node_id]},
    ]
    ended = api.ended({"name": "hostile", "nodes": nodes})
    assert ended["state"] == "COMPLETED"
    assert ended["nodes"].keys() == {node_id, "next to it"}
    path = f"/executions/{ended['execution_id']}/nodes/{segment(node_id)}"
    assert api.shown(path)["node_id"] == node_id
    assert "here" in api.shown(path + "/logs")["items"][0]["text"]
    graph = api.shown(f"/executions/{ended['execution_id']}/graph")
    assert graph["edges"] == [{"from": node_id, "to": "next to it"}]
    assert node_id in {
        line["node_id"] for line in api.items(f"/executions/{ended['execution_id']}/history")
    }


def test_history_is_the_whole_story_in_its_order(api: Caller) -> None:
    execution_id = api.ended(document("history", {"a": "", "b": "a"}))["execution_id"]
    history = api.items(f"/executions/{execution_id}/history")
    assert [line["seq"] for line in history] == list(range(1, len(history) + 1))
    assert all(
        line.keys() == {"seq", "at", "node_id", "from", "to", "attempt", "reason"}
        for line in history
    )
    steps = [(line["node_id"], line["from"], line["to"]) for line in history]
    assert steps[0] == (None, "PENDING", "RUNNING")
    assert steps[-1] == (None, "RUNNING", "COMPLETED")
    assert [step[1:] for step in steps if step[0] == "b"] == [
        ("PENDING", "QUEUED"),
        ("QUEUED", "RUNNING"),
        ("RUNNING", "COMPLETED"),
    ]
    assert sorted(line["at"] for line in history) == [line["at"] for line in history]


def test_history_is_in_pages_that_join(api: Caller) -> None:
    execution_id = api.ended(document("long", {str(n): "" for n in range(20)}))["execution_id"]
    path = f"/executions/{execution_id}/history"
    whole = api.items(path)
    assert len(whole) == 62
    for limit in (1, 7, 61, 62, 63):
        assert api.items(path, limit=limit) == whole
    assert api.items(path, after=60) == whole[60:]
    assert api.items(path, after=50, limit=5) == whole[50:]
    assert api.items(path, after=62) == []
    for query in ({"after": -1}, {"after": "x"}, {"after": 2**70}, {"limit": 0}, {"cursor": "?"}):
        assert_problem(api.get(path, **query), 422, "invalid_request")


def test_the_graph_has_every_node_with_its_level_and_state(api: Caller) -> None:
    ended = api.ended(failing("graph"))
    graph = api.shown(f"/executions/{ended['execution_id']}/graph")
    by_id = {node["id"]: (node["handler"], node["state"], node["level"]) for node in graph["nodes"]}
    assert by_id == {
        "a": ("echo", "COMPLETED", 0),
        "bad": ("fail", "FAILED", 1),
        "after": ("noop", "SKIPPED", 2),
    }
    assert graph["edges"] == [{"from": "a", "to": "bad"}, {"from": "bad", "to": "after"}]


@pytest.mark.parametrize("size", [300_000, 10_000_000])
def test_a_large_output_is_passed_on_and_shown_whole(api: Caller, size: int) -> None:
    nodes: list[dict[str, Any]] = [
        {"id": "large", "handler": "grow", "config": {"bytes": size}},
        {
            "id": "copy",
            "handler": "echo",
            "dependencies": ["large"],
            "config": {"got": "{{ large.text }}"},
        },
    ]
    ended = api.post("/executions", {"definition": {"name": "large", "nodes": nodes}}, wait=60).body
    assert ended["state"] == "COMPLETED"
    assert len(ended["nodes"]["large"]["output"]["text"]) == size
    results = api.shown(f"/executions/{ended['execution_id']}/results")
    assert results["output"]["copy"] == {"got": "x" * size}
    assert (
        len(api.shown(f"/executions/{ended['execution_id']}/nodes/large")["output"]["text"]) == size
    )
    assert "nodes" not in api.items("/executions", workflow="large")[0]
