"""One node over HTTP: what it was given, each attempt, and the rules that it goes by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller, document
from tests.api.gates import GatedService, gated, gated_service
from tests.waiting import until_now


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("nodes")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def node_of(api: Caller, execution_id: str, name: str) -> dict[str, Any]:
    node_view: dict[str, Any] = api.shown(f"/executions/{execution_id}/nodes/{name}")
    return node_view


def given(api: Caller, execution_id: str, name: str) -> tuple[Any, Any]:
    node = node_of(api, execution_id, name)
    return node["resolved_config"], node["unresolved"]


def chain(name: str) -> dict[str, Any]:
    """`a` is an echo, `b` waits at a gate, `c` refers to both, and fails for want of a secret."""
    written = gated(name, "b")
    written["nodes"][0]["dependencies"] = ["a"]
    values = {
        "a": "{{ a.n }}",
        "b": "{{ b.gate }}",
        "none": "{{ a.none ?? [] }}",
        "token": "{{ secrets.T }}",
    }
    config = {"url": "https://example.com", "json": values}
    written["nodes"] += [
        {"id": "a", "handler": "echo", "config": {"n": "{{ input.n }}"}},
        {
            "id": "c",
            "handler": "call_external_service",
            "dependencies": ["a", "b"],
            "config": config,
        },
    ]
    return written


def test_a_node_shows_what_it_was_given_before_during_and_after_its_run(
    server: GatedService,
) -> None:
    api = server.api
    execution_id = api.start(chain("given"), input={"n": 5})
    server.gates.until_asked("given b")
    assert given(api, execution_id, "a") == ({"n": 5}, None)
    config, unresolved = given(api, execution_id, "c")
    assert config is None
    assert unresolved.startswith("it waits for the output of 'b', which is ")
    until_now(
        lambda: node_of(api, execution_id, "b")["state"] == "RUNNING", "it was reported to run"
    )
    running = node_of(api, execution_id, "b")
    assert (running["resolved_config"], running["unresolved"]) == ({"gate": "given b"}, None)
    (attempt,) = running["attempts"]
    assert (attempt["attempt"], attempt["state"], attempt["finished_at"]) == (1, "RUNNING", None)
    assert attempt["queued_at"] <= attempt["started_at"]
    server.gates.open("given b")
    api.until_state(execution_id, "FAILED")
    values = {"a": 5, "b": "given b", "none": [], "token": "{{ secrets.T }}"}
    expected = {"url": "https://example.com", "json": values}
    assert given(api, execution_id, "c") == (expected, None)
    retry_id = api.post(f"/executions/{execution_id}/retry").body["execution_id"]
    api.until_state(retry_id, "FAILED")
    assert given(api, retry_id, "c") == (expected, None), "from outputs that the retry has kept"
    assert given(api, retry_id, "a") == ({"n": 5}, None)
    assert node_of(api, retry_id, "a")["attempts"] == []


def test_a_task_that_nobody_has_taken_is_queued_and_then_cancelled(tmp_path: Path) -> None:
    with gated_service(tmp_path, worker_concurrency=1) as server:
        api = server.api
        api.start(gated("busy", "only"))
        server.gates.until_asked("busy only")
        written = document("waiting", {"a": ""})
        written["nodes"][0]["config"] = {"n": 1}
        execution_id = api.start(written)
        until_now(lambda: node_of(api, execution_id, "a")["state"] == "QUEUED", "it waits")
        queued = node_of(api, execution_id, "a")
        assert queued["resolved_config"] == {"n": 1}
        assert [
            (shown_attempt["state"], shown_attempt["started_at"])
            for shown_attempt in queued["attempts"]
        ] == [("QUEUED", None)]
        api.post(f"/executions/{execution_id}/cancel")
        api.until_state(execution_id, "CANCELLED")
        node = node_of(api, execution_id, "a")
        (attempt,) = node["attempts"]
        assert (attempt["state"], attempt["error"]) == ("CANCELLED", None)
        assert attempt["finished_at"] == node["finished_at"]


@pytest.mark.parametrize(("size", "shown"), [(1000, True), (300_000, False), (5_000_000, False)])
def test_a_config_with_a_large_output_in_it_is_only_told_of(
    api: Caller,
    size: int,
    shown: bool,  # noqa: FBT001
) -> None:
    nodes = [
        {"id": "large", "handler": "grow", "config": {"bytes": size}},
        {
            "id": "all",
            "handler": "echo",
            "dependencies": ["large"],
            "config": {"got": "{{ large.text }}"},
        },
        {
            "id": "part",
            "handler": "noop",
            "dependencies": ["large"],
            "config": {"got": "{{ large.none ?? 1 }}"},
        },
    ]
    execution_id = api.ended({"name": "large-config", "nodes": nodes})["execution_id"]
    message = f"too large to show ({-(-(size + 10) // 1024)} KiB)"
    assert given(api, execution_id, "all") == (
        ({"got": "x" * size}, None) if shown else (None, message)
    )
    assert given(api, execution_id, "part") == ({"got": 1}, None)


def test_overrides_are_seen_in_both_configs(api: Caller) -> None:
    written = document("over", {"a": ""}, "echo")
    written["nodes"][0]["config"] = {"x": "{{ input.n }}", "y": 1}
    execution_id = api.post("/workflow", {"dag": written, "name": "over"}).body["execution_id"]
    body = {"node_params": {"a": {"y": "{{ plain }}"}}, "params": {"n": 5}}
    assert api.post(f"/workflow/trigger/{execution_id}", body).status in {200, 202}
    api.until_state(execution_id, "COMPLETED")
    node = node_of(api, execution_id, "a")
    assert node["config"] == {"x": "{{ input.n }}", "y": "{{ plain }}"}
    assert node["resolved_config"] == node["output"] == {"x": 5, "y": "{{ plain }}"}


WRITTEN = {
    "handler": "echo",
    "config": {"n": 1},
    "labels": {"team": "a"},
    "metadata": {"x": [1]},
    "optional": True,
    "timeout_seconds": 7,
    "queue": "echo",
    "retry": {"max_attempts": 2, "initial_delay_seconds": 0.5},
}


@pytest.mark.parametrize(
    "written",
    [
        {"nodes": [{"id": "a", **WRITTEN}]},
        {"nodes": {"a": WRITTEN}},
        {"dag": {"nodes": [{"id": "b", "handler": "noop"}, {"id": "a", **WRITTEN}]}},
    ],
    ids=["list", "mapping", "dag"],
)
def test_the_rules_and_notes_of_a_node_are_shown_however_it_is_written(
    api: Caller, written: dict[str, Any]
) -> None:
    node = node_of(api, api.ended({"name": "rules", **written})["execution_id"], "a")
    fields = {
        key: node[key]
        for key in ("labels", "metadata", "optional", "timeout_seconds", "queue", "config")
    }
    assert fields == {key: WRITTEN[key] for key in fields}
    assert node["retry"] == {
        "max_attempts": 2,
        "initial_delay_seconds": 0.5,
        "multiplier": 2.0,
        "max_delay_seconds": 30.0,
        "jitter_seconds": 0.5,
        "on": [],
        "not_on": [],
    }
    assert node["resolved_config"] == {"n": 1}


def test_what_is_not_written_is_shown_as_its_default(api: Caller) -> None:
    node = node_of(api, api.ended(document("defaults", {"a": ""}))["execution_id"], "a")
    assert (node["labels"], node["metadata"], node["optional"]) == (None, None, False)
    assert (node["timeout_seconds"], node["queue"], node["retry"]["max_attempts"]) == (
        300.0,
        "echo",
        4,
    )
    assert node["attempts"][0].keys() == {
        "attempt",
        "state",
        "queued_at",
        "started_at",
        "finished_at",
        "at",
        "error",
        "worker_id",
    }


def test_a_node_that_was_skipped_says_that_it_was_given_nothing(api: Caller) -> None:
    written = document("not-given", {"a": "", "b": "a"})
    written["nodes"][1] |= {"condition": "1 > 2", "config": {"n": "{{ a }}"}}
    execution_id = api.ended(written)["execution_id"]
    assert given(api, execution_id, "b") == (
        None,
        "it never started: it is SKIPPED (condition_false)",
    )


def test_a_large_output_is_shown_as_it_is(api: Caller) -> None:
    nodes = [{"id": "large", "handler": "grow", "config": {"bytes": 5_000_000}}]
    execution_id = api.ended({"name": "large-output", "nodes": nodes})["execution_id"]
    text = "x" * 5_000_000
    assert node_of(api, execution_id, "large")["output"]["text"] == text
    assert api.shown(f"/executions/{execution_id}")["nodes"]["large"]["output"]["text"] == text
    assert api.shown(f"/executions/{execution_id}/results")["outputs"]["large"]["text"] == text
