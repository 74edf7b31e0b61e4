"""Many executions controlled with one call.

Each gets its own answer, and a refused one doesn't stop the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.caller import Answer, Caller, assert_problem, document, failing
from tests.api.gates import GatedService, gated, gated_service

ITEM = {"execution_id", "ok", "made", "runs", "keeps", "error"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("bulk")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def bulk(api: Caller, action: str, names: list[str], **fields: Any) -> list[dict[str, Any]]:
    answer = api.post("/executions/bulk", {"action": action, "execution_ids": names, **fields})
    assert answer.status == 200, answer
    assert answer.body["next_cursor"] is None
    items: list[dict[str, Any]] = answer.body["items"]
    assert [item["execution_id"] for item in items] == names, "in the same order"
    assert all(item.keys() == ITEM and item["ok"] == (item["error"] is None) for item in items)
    return items


def waiting(server: GatedService, name: str, count: int) -> list[str]:
    """Executions that run and wait at their gate."""
    started = [
        server.api.start(gated(f"{name}-{number}", "only", "after")) for number in range(count)
    ]
    for number in range(count):
        server.gates.until_asked(f"{name}-{number} only")
    return started


def test_many_are_cancelled_and_what_had_ended_says_so(server: GatedService) -> None:
    api, ended = server.api, server.api.ended(document("over", {"a": ""}))["execution_id"]
    started = waiting(server, "stop", 3)
    items = bulk(api, "cancel", [started[0], ended, "nobody", *started[1:]])
    assert [item["ok"] for item in items] == [True, False, False, True, True]
    assert (items[1]["error"]["status"], items[1]["error"]["code"]) == (409, "conflict")
    assert (items[2]["error"]["status"], items[2]["error"]["code"]) == (404, "not_found")
    for name in started:
        api.until_state(name, "CANCELLED")
    assert api.state(ended) == "COMPLETED"


def test_many_are_paused_and_go_on(server: GatedService) -> None:
    api, started = server.api, waiting(server, "halt", 2)
    assert all(item["ok"] for item in bulk(api, "pause", started))
    for name in started:
        api.until_state(name, "PAUSED")
    assert [item["error"]["code"] for item in bulk(api, "pause", started)] == ["conflict"] * 2
    assert all(item["ok"] and item["runs"] is None for item in bulk(api, "resume", started))
    for number, name in enumerate(started):
        server.gates.open(f"halt-{number} only")
        server.gates.open(f"halt-{number} after")
        api.until_state(name, "COMPLETED")


def test_a_retry_of_many_makes_one_execution_of_each_that_can_be(api: Caller) -> None:
    failed = [api.ended(failing("again"))["execution_id"] for _ in range(3)]
    fine = api.ended(document("fine", {"a": ""}))["execution_id"]
    previews = bulk(api, "retry", [*failed, fine], preview=True)
    assert [item["ok"] for item in previews] == [True, True, True, False]
    assert all(item["made"] is None for item in previews)
    assert len(api.items("/executions", workflow="again")) == 3, "a preview starts nothing"
    items = bulk(api, "retry", [*failed, fine])
    assert (items[3]["error"]["code"], items[3]["made"]) == ("conflict", None)
    for name, preview, item in zip(failed, previews, items[:3], strict=False):
        assert item["keeps"] == preview["keeps"] == ["a"]
        assert item["runs"] == preview["runs"]
        assert [run["node_id"] for run in item["runs"]] == ["bad", "after"]
        assert api.until_state(item["made"], "FAILED")["retry_of"] == name
    assert len(api.items("/executions", workflow="again")) == 6
    again = bulk(api, "retry", failed[:1])[0]["error"]
    single = api.post(f"/executions/{failed[0]}/retry")
    assert again == single.body, "as the route for one says it"


def test_five_hundred_are_taken_and_one_more_is_not(api: Caller) -> None:
    names = [f"unknown-{number}" for number in range(501)]
    items = bulk(api, "cancel", names[:500])
    assert {item["error"]["code"] for item in items} == {"not_found"}
    refused = api.post("/executions/bulk", {"action": "cancel", "execution_ids": names})
    assert_problem(refused, 422, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "cancel"},
        {"execution_ids": ["a"]},
        {"action": "delete", "execution_ids": ["a"]},
        {"action": "cancel", "execution_ids": []},
        {"action": "cancel", "execution_ids": [""]},
        {"action": "cancel", "execution_ids": [1]},
        {"action": "cancel", "execution_ids": "a"},
        {"action": "retry", "execution_ids": ["a"], "preview": 1},
        {"action": "cancel", "execution_ids": ["a"], "x": 1},
        {"action": "cancel", "execution_ids": ["a", "b", "a"]},
        {"action": "cancel", "execution_ids": ["x" * 1025]},
        [],
    ],
)
def test_what_means_nothing_is_refused(api: Caller, body: Any) -> None:
    assert_problem(api.post("/executions/bulk", body), 422, "invalid_request")


@pytest.mark.parametrize("action", ["cancel", "pause", "resume"])
def test_only_a_retry_has_a_preview(server: GatedService, action: str) -> None:
    (name,) = waiting(server, f"preview-{action}", 1)
    refused: Answer = server.api.post(
        "/executions/bulk", {"action": action, "execution_ids": [name], "preview": True}
    )
    assert "only a retry has a preview" in assert_problem(refused, 422, "invalid_request")["detail"]
    assert server.api.state(name) == "RUNNING", "nothing was done"
    bulk(server.api, "cancel", [name], preview=False)
    server.api.until_state(name, "CANCELLED")


def test_the_audit_trail_has_one_line_for_all_of_them_and_none_for_a_preview(api: Caller) -> None:
    failed = [api.ended(failing("told"))["execution_id"] for _ in range(2)]
    before = len(api.items("/audit", action="steer_executions"))
    bulk(api, "retry", failed, preview=True)
    bulk(api, "retry", [*failed, "nobody"])
    lines = api.items("/audit", action="steer_executions")
    assert len(lines) == before + 1
    assert (lines[0]["object"], lines[0]["status"]) == ("executions", 200)
    assert lines[0]["detail"] == {"action": "retry", "count": 3, "done": 2, "execution_ids": failed}
