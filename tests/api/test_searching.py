"""Searching executions over HTTP: each filter, and pages that neither miss nor repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem, document, failing
from tests.api.gates import GatedService, gated, gated_service


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("searching")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def ids(api: Caller, **query: Any) -> list[str]:
    return [item["execution_id"] for item in api.items("/executions", **query)]


def test_the_newest_come_first_without_what_makes_an_execution_large(api: Caller) -> None:
    started = [api.start(document("newest", {"a": ""})) for _ in range(3)]
    items = api.items("/executions", workflow="newest")
    assert [item["execution_id"] for item in items] == started[::-1]
    assert items[0].keys() == {
        "execution_id",
        "workflow",
        "version",
        "state",
        "error",
        "labels",
        "created_at",
        "started_at",
        "finished_at",
        "retry_of",
    }


def test_each_state_finds_its_own(server: GatedService) -> None:
    api = server.api
    completed = api.ended(document("states", {"a": ""}))["execution_id"]
    failed = api.ended({**failing("states"), "labels": {}})["execution_id"]
    running = api.start(gated("states", "a"))
    server.gates.until_asked("states a")
    cancelled = api.start({**gated("states", "b")})
    api.post(f"/executions/{cancelled}/cancel")
    api.until_state(cancelled, "CANCELLED")
    for state, expected in {
        "COMPLETED": [completed],
        "FAILED": [failed],
        "RUNNING": [running],
        "CANCELLED": [cancelled],
        "PAUSED": [],
    }.items():
        assert ids(api, workflow="states", state=state) == expected
    assert ids(api, workflow="states", state=["COMPLETED", "FAILED"]) == [failed, completed]
    failed_item = api.items("/executions", state="FAILED", workflow="states")[0]
    assert failed_item["error"]["message"] == "failed on purpose"
    server.gates.open("states a")
    api.until_state(running, "COMPLETED")


def test_versions_and_labels_narrow_a_search_down(api: Caller) -> None:
    api.store(document("narrow", {"a": ""}))
    first = api.start("narrow", labels={"team": "x", "n": 1, "odd:key": "a:b", "é": "ü"})
    api.store(document("narrow", {"b": ""}))
    second = api.start("narrow", labels={"team": "y", "n": 1, "deep": {"a": [1]}})
    assert ids(api, workflow="narrow", version=1) == [first]
    assert ids(api, workflow="narrow", version=2) == [second]
    assert ids(api, workflow="narrow", version=3) == []
    assert ids(api, workflow="narrow@1") == [first]
    assert ids(api, workflow="narrow@latest") == [second]
    assert ids(api, workflow="narrow@nothing") == []
    assert ids(api, label="team:x") == [first]
    assert ids(api, label="n:1") == [second, first]
    assert ids(api, label=["n:1", "team:y"]) == [second]
    assert ids(api, label=["team:x", "team:nobody"]) == []
    assert ids(api, label="é:ü") == [first]
    assert ids(api, label="team:") == []
    assert api.shown(f"/executions/{second}")["labels"] == {"team": "y", "n": 1, "deep": {"a": [1]}}


def test_times_bound_a_search(api: Caller) -> None:
    ended = api.ended(document("timed", {"a": ""}))
    at, name = ended["created_at"], ended["execution_id"]
    assert ids(api, workflow="timed", since=at) == [name]
    assert ids(api, workflow="timed", until=at) == [], "the end isn't in it"
    assert ids(api, workflow="timed", since="2020-01-01", until="2999-01-01T00:00:00+02:00") == [
        name
    ]
    assert ids(api, workflow="timed", since="2999-01-01") == []
    assert ids(api, workflow="timed", until="2020-01-01T00:00:00") == []


def test_text_is_part_of_an_id_or_of_a_name(api: Caller) -> None:
    name = api.start(document("Monthly 100%_Report", {"a": ""}))
    for text in ("monthly", "REPORT", "100%_", name, name[-12:]):
        assert ids(api, text=text) == [name]
    for text in ("100_", "%%", "report_", "' OR 1=1 --"):
        assert ids(api, text=text) == []


@pytest.mark.parametrize(
    "query",
    [
        {"state": "DONE"},
        {"state": ""},
        {"version": "x"},
        {"version": 0},
        {"version": 2**64},
        {"label": "team"},
        {"label": ":x"},
        {"since": "yesterday"},
        {"until": "2026-13-01"},
        {"since": ""},
        {"limit": 0},
        {"limit": 10**9},
        {"cursor": "!"},
        {"cursor": "AAAA"},
        {"cursor": "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OQ"},
    ],
)
def test_a_filter_that_means_nothing_is_refused_and_named(
    api: Caller, query: dict[str, Any]
) -> None:
    body = assert_problem(api.get("/executions", **query), 422, "invalid_request")
    assert next(iter(query)) in json.dumps(body)


def test_pages_neither_miss_nor_repeat_while_new_executions_arrive(api: Caller) -> None:
    api.store(document("paged", {"a": ""}))

    def add(count: int) -> list[str]:
        items = api.post("/executions/batch", {"executions": [{"workflow": "paged"}] * count}).body[
            "items"
        ]
        return [item["execution_id"] for item in items]

    created = set(add(57))
    seen: list[str] = []
    query: dict[str, Any] = {"workflow": "paged", "limit": 10}
    while True:
        page = api.shown("/executions", **query)
        assert len(page["items"]) <= 10
        seen += [listed["execution_id"] for listed in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
        add(7)
    assert len(seen) == len(set(seen)) == 57
    assert set(seen) == created


def test_a_page_is_full_even_if_many_do_not_fit_the_filter(api: Caller) -> None:
    for _ in range(4):
        api.store(document("sparse", {"a": ""}))
        orders = [
            {"workflow": "sparse", "labels": {"rare": "yes" if n == 0 else "no"}} for n in range(30)
        ]
        api.post("/executions/batch", {"executions": orders})
    page = api.shown("/executions", workflow="sparse", label="rare:yes", limit=3)
    assert len(page["items"]) == 3
    assert page["next_cursor"] is not None
    assert len(ids(api, workflow="sparse", label="rare:yes", limit=3)) == 4
    assert len(ids(api, workflow="sparse", limit=500)) == 120


def test_a_search_for_more_labels_than_an_execution_has_is_refused(api: Caller) -> None:
    many = [f"a{n}:b" for n in range(1000)]
    assert ids(api, label=many[:64]) == []
    assert_problem(api.get("/executions", label=many), 422, "invalid_request")
