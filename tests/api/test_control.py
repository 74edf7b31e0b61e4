"""Cancel, pause, resume and retry over HTTP.

In the states that allow them and in those that don't.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem, at_once, document, failing
from tests.api.gates import GatedService, gated, gated_service
from tests.waiting import until_now

CONTROL_REQUESTS = ["cancel", "pause", "resume"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("control")) as running:
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def request_control(api: Caller, execution_id: str, what: str) -> None:
    answer = api.post(f"/executions/{execution_id}/{what}")
    assert (answer.status, answer.body) == (202, {"execution_id": execution_id, "requested": what})


def reasons(answer: dict[str, Any]) -> dict[str, str]:
    return {run["node_id"]: run["reason"] for run in answer["runs"]}


def test_a_cancelled_execution_ends_and_nothing_more_of_it_starts(server: GatedService) -> None:
    execution_id = server.api.start(gated("cancelled", "a", "b"))
    server.gates.until_asked("cancelled a")
    request_control(server.api, execution_id, "cancel")
    ended = server.api.until_state(execution_id, "CANCELLED")
    assert {node["state"] for node in ended["nodes"].values()} == {"CANCELLED"}
    server.gates.open("cancelled a")
    assert "cancelled b" not in server.gates.passed
    length = len(server.api.items(f"/executions/{execution_id}/history"))
    server.api.ended(document("another", {"a": ""}))
    assert len(server.api.items(f"/executions/{execution_id}/history")) == length, (
        "nothing after the end"
    )


def test_a_paused_execution_finishes_what_runs_and_goes_on_when_it_is_resumed(
    server: GatedService,
) -> None:
    api, gates = server.api, server.gates
    execution_id = api.start(gated("paused", "a", "b"))
    gates.until_asked("paused a")
    request_control(api, execution_id, "pause")
    api.until_state(execution_id, "PAUSED")
    gates.open("paused a")
    until_now(
        lambda: api.shown(f"/executions/{execution_id}/nodes/a")["state"] == "COMPLETED",
        "what runs is recorded",
    )
    assert (
        "paused already"
        in assert_problem(api.post(f"/executions/{execution_id}/pause"), 409, "conflict")["detail"]
    )
    assert api.state(execution_id) == "PAUSED"
    assert "paused b" not in gates.passed
    request_control(api, execution_id, "resume")
    assert (
        "isn't paused"
        in assert_problem(api.post(f"/executions/{execution_id}/resume"), 409, "conflict")["detail"]
    )
    gates.open("paused b")
    api.until_state(execution_id, "COMPLETED")
    states = [
        line["to"]
        for line in api.items(f"/executions/{execution_id}/history")
        if line["node_id"] is None
    ]
    assert states == ["RUNNING", "PAUSED", "RUNNING", "COMPLETED"]


def test_a_paused_execution_can_be_cancelled(server: GatedService) -> None:
    execution_id = server.api.start(gated("both", "a"))
    server.gates.until_asked("both a")
    request_control(server.api, execution_id, "pause")
    server.api.until_state(execution_id, "PAUSED")
    request_control(server.api, execution_id, "cancel")
    server.api.until_state(execution_id, "CANCELLED")


@pytest.mark.parametrize("what", CONTROL_REQUESTS)
@pytest.mark.parametrize("end", ["COMPLETED", "FAILED"])
def test_what_has_ended_cannot_be_controlled(api: Caller, what: str, end: str) -> None:
    written = failing("ended") if end == "FAILED" else document("ended", {"a": ""})
    execution_id = api.ended(written)["execution_id"]
    body = assert_problem(api.post(f"/executions/{execution_id}/{what}"), 409, "conflict")
    assert end in body["detail"]
    assert api.state(execution_id) == end


@pytest.mark.parametrize("what", [*CONTROL_REQUESTS, "retry"])
def test_what_is_not_there_cannot_be_controlled(api: Caller, what: str) -> None:
    assert_problem(api.post(f"/executions/nowhere/{what}"), 404, "not_found")


def test_cancelling_twenty_times_at_once_ends_it_once(server: GatedService) -> None:
    execution_id = server.api.start(gated("often", "a"))
    server.gates.until_asked("often a")
    answers = at_once(20, lambda _: server.api.post(f"/executions/{execution_id}/cancel"))
    assert {answer.status for answer in answers} <= {202, 409}
    assert 202 in {answer.status for answer in answers}
    server.api.until_state(execution_id, "CANCELLED")
    ends = [
        line
        for line in server.api.items(f"/executions/{execution_id}/history")
        if line["to"] == "CANCELLED"
    ]
    assert [line["node_id"] for line in ends].count(None) == 1


def test_a_retry_keeps_what_completed_and_runs_the_rest_as_a_new_execution(api: Caller) -> None:
    first = api.ended(failing("retried"), input={"x": 1}, labels={"team": "a"}, priority=3)
    before = api.count()
    preview = api.post(f"/executions/{first['execution_id']}/retry", preview=True)
    assert preview.status == 200
    assert preview.body["execution_id"] is None
    assert preview.body["keeps"] == ["a"]
    assert reasons(preview.body).keys() == {"bad", "after"}
    assert api.count() == before
    answer = api.post(f"/executions/{first['execution_id']}/retry")
    assert answer.status == 201
    assert answer.headers["location"].endswith(answer.body["execution_id"])
    assert {**answer.body, "execution_id": None} == preview.body
    assert answer.body["retry_of"] == first["execution_id"]
    again = api.until_state(answer.body["execution_id"], "FAILED")
    assert (again["input"], again["labels"], again["priority"]) == ({"x": 1}, {"team": "a"}, 3)
    assert again["retry_of"] == first["execution_id"]
    assert again["nodes"]["a"]["output"] == {"n": 1}
    assert again["nodes"]["a"]["attempt"] == 0, "it didn't run again"
    assert api.shown(f"/executions/{first['execution_id']}")["state"] == "FAILED"
    assert api.items("/executions", workflow="retried")[0]["retry_of"] == first["execution_id"]


def test_a_second_retry_is_refused_and_points_to_the_first(api: Caller) -> None:
    first = api.ended(failing("twice"))["execution_id"]
    second = api.post(f"/executions/{first}/retry").body["execution_id"]
    body = assert_problem(api.post(f"/executions/{first}/retry"), 409, "conflict")
    assert second in body["detail"]
    assert_problem(api.post(f"/executions/{first}/retry", preview=True), 409, "conflict")
    api.until_state(second, "FAILED")
    assert api.post(f"/executions/{second}/retry").status == 201, "the chain goes on from its end"


def test_ten_retries_at_once_make_one_execution(api: Caller) -> None:
    first = api.ended(failing("rush"))["execution_id"]
    answers = at_once(10, lambda _: api.post(f"/executions/{first}/retry"))
    created_ids = {answer.body["execution_id"] for answer in answers if answer.status == 201}
    assert len(created_ids) == 1
    assert {answer.status for answer in answers} <= {201, 409}
    assert len(api.items("/executions", workflow="rush")) == 2


def test_what_runs_and_what_has_nothing_to_run_cannot_be_retried(server: GatedService) -> None:
    running = server.api.start(gated("busy", "a"))
    server.gates.until_asked("busy a")
    assert (
        "RUNNING"
        in assert_problem(server.api.post(f"/executions/{running}/retry"), 409, "conflict")[
            "detail"
        ]
    )
    server.gates.open("busy a")
    server.api.until_state(running, "COMPLETED")
    for query in ({}, {"preview": True}):
        assert_problem(server.api.post(f"/executions/{running}/retry", **query), 409, "conflict")  # type: ignore[arg-type]


def test_a_retry_from_a_node_runs_it_and_what_comes_after_it(api: Caller) -> None:
    first = api.ended(document("from", {"a": "", "b": "a", "c": "b", "d": "a"}))["execution_id"]
    preview = api.post(f"/executions/{first}/retry", from_="b", preview=True).body
    assert (preview["keeps"], set(reasons(preview))) == (["a", "d"], {"b", "c"})
    assert_problem(api.post(f"/executions/{first}/retry", from_="nobody"), 404, "not_found")
    answer = api.post(f"/executions/{first}/retry", {"from": "b"})
    ended = api.until_state(answer.body["execution_id"], "COMPLETED")
    assert {name: node["attempt"] for name, node in ended["nodes"].items()} == {
        "a": 0,
        "b": 1,
        "c": 1,
        "d": 0,
    }


def test_a_retry_in_the_newest_version_runs_what_was_mended(api: Caller) -> None:
    first = api.ended(failing("mended"))["execution_id"]
    api.store(failing("mended", times=0))
    preview = api.post(f"/executions/{first}/retry", version="latest", preview=True).body
    assert (preview["version"], preview["keeps"]) == (2, ["a"])
    assert preview == api.post(f"/executions/{first}/retry", {"version": 2, "preview": True}).body
    answer = api.post(f"/executions/{first}/retry", {"version": "latest"})
    ended = api.until_state(answer.body["execution_id"], "COMPLETED", "FAILED")
    assert (ended["state"], ended["version"]) == ("COMPLETED", 2)
    assert ended["nodes"]["after"]["state"] == "COMPLETED"


def test_a_retry_in_a_version_that_is_not_there_is_not_found(api: Caller) -> None:
    first = api.ended(failing("versioned"))["execution_id"]
    for version in (9, 999_999_999):
        assert_problem(api.post(f"/executions/{first}/retry", version=version), 404, "not_found")
    assert api.post(f"/executions/{first}/retry").status == 201


@pytest.mark.parametrize(
    "body",
    [
        {"from": 1},
        {"from": ""},
        {"version": "newest"},
        {"version": 0},
        {"version": 1.5},
        {"preview": "yes"},
        {"unknown": 1},
        [],
        "latest",
        7,
    ],
)
def test_a_retry_that_means_nothing_is_refused(api: Caller, body: Any) -> None:
    first = api.ended(failing("meaningless"))["execution_id"]
    before = api.count()
    assert_problem(api.post(f"/executions/{first}/retry", body), 422, "invalid_request")
    assert api.count() == before


@pytest.mark.parametrize(
    "query", [{"version": "newest"}, {"version": "-1"}, {"preview": "perhaps"}, {"from_": ""}]
)
def test_parameters_of_a_retry_that_mean_nothing_are_refused(api: Caller, query: Any) -> None:
    first = api.ended(failing("meaningless"))["execution_id"]
    assert_problem(api.post(f"/executions/{first}/retry", **query), 422, "invalid_request")
