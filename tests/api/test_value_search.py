"""The search in inputs and outputs: what it finds, how far it looks, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.runtime.timing import EngineTiming
from penstock.service import value_search
from penstock.service.timing import ServiceTiming
from tests.api.caller import Caller, assert_problem
from tests.api_server import running_service

GREETING = {
    "name": "greeting",
    "nodes": [
        {"id": "quiet", "handler": "echo", "config": {"n": 1}},
        {"id": "greet", "handler": "echo", "config": {"text": "Hello, {{ input.name }}!"}},
    ],
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("values")) as service:
        caller = Caller(service.address)
        caller.store(GREETING)
        yield caller


def searched(api: Caller, **query: Any) -> list[dict[str, Any]]:
    """The items of all pages."""
    items: list[dict[str, Any]] = []
    while True:
        page = api.shown("/search", **query)
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        query["cursor"] = page["next_cursor"]


def test_a_text_is_found_in_the_input_whatever_its_case(api: Caller) -> None:
    ids = [
        api.ended("greeting", input={"name": name})["execution_id"]
        for name in ("Ada", "Grace", "adam", "Zoë")
    ]
    matches = searched(api, text="ADA", in_="input")
    assert [match["execution_id"] for match in matches] == [ids[2], ids[0]]
    assert matches[1]["excerpt"] == '{"name":"Ada"}'
    assert matches[1]["node_id"] is None
    assert [match["execution_id"] for match in searched(api, text="Zoë")] == [ids[3]]


def test_a_text_is_found_in_an_output_with_its_node(api: Caller) -> None:
    ended = api.ended("greeting", input={"name": "Barbara"})
    (match,) = searched(api, text="hello, barbara", in_="output")
    assert match["execution_id"] == ended["execution_id"]
    assert match["node_id"] == "greet"
    assert "Hello, Barbara!" in match["excerpt"]
    assert match["state"] == "COMPLETED"


def test_the_filters_say_which_executions_are_read(api: Caller) -> None:
    old = api.ended("greeting", input={"name": "Radia"})
    new = api.ended("greeting", input={"name": "Radia"})

    def ids(**query: Any) -> list[str]:
        return [match["execution_id"] for match in searched(api, text="Radia", **query)]

    assert ids() == [new["execution_id"], old["execution_id"]]
    assert ids(since=new["created_at"]) == [new["execution_id"]]
    assert ids(until=new["created_at"]) == [old["execution_id"]]
    assert ids(workflow="another") == []


def test_a_page_reads_only_so_many_executions_and_says_how_far_it_looked(
    api: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_search, "BATCH", 2)
    monkeypatch.setattr(value_search, "INPUTS_MAX", 3)
    oldest = api.ended("greeting", input={"name": "Hedy"})
    others = [api.ended("greeting", input={"name": "Joan"}) for _ in range(4)]
    first = api.shown("/search", text="Hedy")
    assert first["items"] == []
    assert first["searched"] == 3
    assert first["searched_until"] == others[1]["created_at"]
    second = api.shown("/search", text="Hedy", cursor=first["next_cursor"])
    assert [match["execution_id"] for match in second["items"]] == [oldest["execution_id"]]


def test_a_page_ends_when_its_time_is_over(tmp_path: Path) -> None:
    timing = EngineTiming(service=ServiceTiming(value_search_seconds=0.0))
    with running_service(tmp_path, timing=timing) as service:
        api = Caller(service.address)
        api.store(GREETING)
        for _ in range(2):
            api.ended("greeting", input={"name": "Katherine"})
        page = api.shown("/search", text="Katherine", in_="output")
        assert page["items"] == []
        assert page["searched"] == 0


def test_a_large_value_is_not_searched(api: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    api.ended("greeting", input={"name": "Mary" * 20})
    assert len(searched(api, text="MaryMary")) == 1
    monkeypatch.setattr(value_search, "VALUE_BYTES_MAX", 50)
    assert searched(api, text="MaryMary") == []


def test_a_long_value_is_shown_in_part(api: Caller) -> None:
    api.ended("greeting", input={"name": "x" * 500 + "Evelyn" + "y" * 500})
    (match,) = searched(api, text="evelyn")
    assert match["excerpt"].startswith("…xx")
    assert match["excerpt"].endswith("yy…")
    assert len(match["excerpt"]) < 150


def test_a_search_needs_a_text_and_a_place(api: Caller) -> None:
    assert_problem(api.get("/search"), 422, "invalid_request")
    assert_problem(api.get("/search?text=a&in=labels"), 422, "invalid_request")
