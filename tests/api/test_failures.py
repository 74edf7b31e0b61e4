"""The search for errors: which nodes failed, when and why, also those that were retried since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.service import failures
from tests.api.caller import Caller, assert_problem, failing
from tests.api_server import running_service


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("failures")) as service:
        yield Caller(service.address)


def test_each_filter_finds_its_own_errors(api: Caller) -> None:
    ids = [
        api.ended(failing("filtered", message=f"no luck {number}"))["execution_id"]
        for number in range(3)
    ]
    api.ended(failing("another", message="no luck either"))

    def found(**query: Any) -> list[str]:
        return [item["execution_id"] for item in api.items("/errors", **query)]

    assert found(workflow="filtered") == ids[::-1]
    assert found(workflow="filtered", text="LUCK 1") == [ids[1]]
    assert (
        found(workflow="filtered", node_id="bad", category="handler", handler="fail") == ids[::-1]
    )
    assert found(workflow="filtered", node_id="good") == []
    (second,) = api.items("/errors", workflow="filtered", text="luck 1")
    assert found(workflow="filtered", since=second["at"]) == ids[:0:-1]
    assert found(workflow="filtered", until=second["at"]) == ids[:1]


def test_an_error_says_what_failed_and_how_it_went_on(api: Caller) -> None:
    ended = api.ended(failing("told", message="no luck"))
    again = api.post(f"/executions/{ended['execution_id']}/retry").body["execution_id"]
    (error,) = [item for item in api.items("/errors", workflow="told") if item["retried_as"]]
    assert (error["workflow"], error["version"], error["node_id"], error["handler"]) == (
        "told",
        1,
        "bad",
        "fail",
    )
    assert (error["category"], error["message"], error["attempts"]) == ("handler", "no luck", 1)
    assert (error["execution_id"], error["retried_as"]) == (ended["execution_id"], again)


def test_a_search_that_finds_little_goes_on_page_by_page(
    api: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "BATCH", 2)
    monkeypatch.setattr(failures, "SCANNED_MAX", 2)
    ids = [
        api.ended(failing("paged", message=f"number {number}"))["execution_id"]
        for number in range(5)
    ]
    assert [
        item["execution_id"] for item in api.items("/errors", workflow="paged", text="number 0")
    ] == [ids[0]]


def test_a_time_that_is_none_is_refused(api: Caller) -> None:
    assert_problem(api.get("/errors?since=yesterday"), 422, "invalid_request")
