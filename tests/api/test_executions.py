"""Starting executions over HTTP, and searching for them.

By name or with a document, once, many at a time, with labels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem, at_once, document, failing, segment
from tests.api.gates import GatedService, gated, gated_service

ONE = {
    "name": "one",
    "nodes": [{"id": "a", "handler": "echo", "config": {"x": "{{ input.x ?? null }}"}}],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatedService]:
    with gated_service(tmp_path_factory.mktemp("executions")) as running:
        running.api.store(ONE)
        yield running


@pytest.fixture
def api(server: GatedService) -> Caller:
    return server.api


def key(text: str) -> dict[str, str]:
    return {"Idempotency-Key": text}


def test_an_execution_of_a_stored_workflow_is_answered_at_once(api: Caller) -> None:
    answer = api.post(
        "/executions", {"workflow": "one", "input": {"x": 7}, "labels": {"team": "billing"}}
    )
    assert answer.status == 201
    body = answer.body
    assert (body["workflow"], body["version"], body["labels"]) == ("one", 1, {"team": "billing"})
    assert answer.headers["location"] == f"/api/v1/executions/{body['execution_id']}"
    ended = api.until_state(body["execution_id"], "COMPLETED")
    assert ended["output"] == {"a": {"x": 7}}
    assert ended["input"] == {"x": 7}
    assert ended["created_at"] == body["created_at"] <= ended["started_at"] <= ended["finished_at"]
    assert ended.keys() >= {
        "execution_id",
        "workflow",
        "version",
        "state",
        "input",
        "output",
        "error",
        "labels",
        "created_at",
        "started_at",
        "finished_at",
        "nodes",
        "retry_of",
        "priority",
    }
    assert ended["nodes"]["a"].keys() >= {
        "state",
        "attempt",
        "output",
        "error",
        "worker_id",
        "queued_at",
        "started_at",
        "finished_at",
    }


def test_a_document_can_be_started_as_it_is_and_is_stored_for_its_executions_only(
    api: Caller,
) -> None:
    ended = api.ended(document("inline", {"a": "", "b": "a"}))
    assert (ended["workflow"], ended["version"], ended["state"]) == ("inline", 1, "COMPLETED")
    assert api.ended(document("inline", {"a": "", "b": "a"}))["version"] == 1
    assert api.ended(document("inline", {"a": "", "c": "a"}))["version"] == 2
    assert_problem(api.get("/workflows/inline"), 404, "not_found")
    assert_problem(api.get("/workflows/inline", version="2"), 404, "not_found")
    assert_problem(api.post("/executions", {"workflow": "inline@2"}), 404, "not_found")
    assert_problem(api.put("/workflows/inline/aliases/stable", {"version": 2}), 404, "not_found")
    assert "inline" not in {item["name"] for item in api.items("/workflows")}


def test_starting_a_document_does_not_change_what_others_run_who_start_its_name(
    api: Caller,
) -> None:
    stored = api.store(document("payroll", {"pay": ""}))
    api.put("/workflows/payroll/aliases/stable", {"version": stored["version"]})
    before = api.shown("/workflows/payroll")
    inline = document("payroll", {"steal": ""})
    started = [
        api.ended(inline)["version"],
        api.post("/executions/batch", {"executions": [{"definition": inline}]}).body["items"][0][
            "version"
        ],
        api.post("/executions/batch", {"definition": inline, "executions": [{}]}).body["items"][0][
            "version"
        ],
        api.shown(f"/executions/{api.call('POST', '/workflow', inline).body['execution_id']}")[
            "version"
        ],
    ]
    assert started == [2, 2, 2, 2], "the same content is stored once"
    assert api.shown("/workflows/payroll") == before
    for reference in ("payroll", "payroll@latest", "payroll@stable", "payroll@1"):
        assert api.ended(reference)["nodes"].keys() == {"pay"}
    assert [item["version"] for item in api.items("/workflows/payroll/versions")] == [1]


def test_a_document_that_was_started_before_becomes_the_latest_when_it_is_stored(
    api: Caller,
) -> None:
    changed = document("promoted", {"b": ""})
    api.store(document("promoted", {"a": ""}))
    assert api.ended(changed)["version"] == 2
    assert api.store(document("promoted", {"c": ""}))["version"] == 3
    stored = api.store(changed)
    assert (stored["version"], stored["created"]) == (4, True)
    assert api.ended("promoted")["nodes"].keys() == {"b"}
    assert api.ended(document("promoted", {"c": ""}))["version"] == 3, (
        "content that is a version is that version"
    )


def test_starting_a_deleted_document_does_not_bring_its_name_back(api: Caller) -> None:
    deleted = document("gone", {"a": ""})
    api.store(deleted)
    api.delete("/workflows/gone")
    assert api.ended(deleted)["state"] == "COMPLETED"
    assert_problem(api.get("/workflows/gone"), 404, "not_found")


def test_with_wait_the_answer_has_the_result_if_it_ends_in_time(server: GatedService) -> None:
    ended = server.api.post("/executions", {"workflow": "one", "input": {"x": [1]}}, wait=20)
    assert ended.status == 201
    assert (ended.body["state"], ended.body["output"]) == ("COMPLETED", {"a": {"x": [1]}})
    failed = server.api.post("/executions", {"definition": failing("waited")}, wait=20)
    assert (failed.status, failed.body["state"], failed.body["error"]["node_id"]) == (
        201,
        "FAILED",
        "bad",
    )
    begun = time.monotonic()
    late = server.api.post("/executions", {"definition": gated("late", "a")}, wait=0.2)
    assert time.monotonic() - begun < 10
    assert late.status == 201
    assert late.body["state"] in {"PENDING", "RUNNING"}
    server.gates.open("late a")
    server.api.until_state(late.body["execution_id"], "COMPLETED")


@pytest.mark.parametrize("wait", [-1, "x", "nan", "inf", 1e9, ""])
def test_a_wait_of_no_sensible_length_is_refused_and_nothing_is_started(
    api: Caller, wait: Any
) -> None:
    before = api.count()
    assert_problem(api.post("/executions", {"workflow": "one"}, wait=wait), 422, "invalid_request")
    assert api.count() == before


def test_an_input_that_does_not_fit_the_schema_is_refused(api: Caller) -> None:
    api.store({**ONE, "name": "picky", "input_schema": {"type": "object", "required": ["user_id"]}})
    before = api.count()
    wrong: list[dict[str, Any]] = [{}, {"input": None}, {"input": {}}, {"input": {"user": 7}}]
    for input_value in wrong:
        body = assert_problem(
            api.post("/executions", {"workflow": "picky", **input_value}), 422, "invalid_input"
        )
        assert "user_id" in body["detail"]
    assert api.count() == before
    assert api.ended("picky", input={"user_id": 7})["state"] == "COMPLETED"


def test_defaults_of_the_input_are_under_what_is_given(api: Caller) -> None:
    api.store({**ONE, "name": "defaults", "input": {"x": 1, "y": 2}})
    assert api.ended("defaults", input={"x": 5})["input"] == {"x": 5, "y": 2}


def test_every_type_of_json_comes_back_as_it_was_sent(api: Caller) -> None:
    values: list[Any] = [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        1.5,
        1e300,
        "",
        "é",
        "😀",
        "{{ a }}",
        [],
        {},
        [[{}]],
    ]
    assert api.ended("one", input={"x": values})["output"]["a"]["x"] == values


def test_the_same_key_makes_one_execution_and_says_so(api: Caller) -> None:
    order = {"workflow": "one", "input": {"x": 1}}
    first = api.post("/executions", order, key("order-1"))
    assert "idempotency-replayed" not in first.headers
    again = api.post("/executions", {"input": {"x": 1}, "workflow": "one"}, key("order-1"))
    assert (again.status, again.body["execution_id"]) == (201, first.body["execution_id"])
    assert again.headers["idempotency-replayed"] == "true"
    waited = api.post("/executions", order, key("order-1"), wait=20)
    assert (waited.body["execution_id"], waited.body["state"]) == (
        first.body["execution_id"],
        "COMPLETED",
    )
    other = api.post("/executions", order, key("order-2"))
    assert other.body["execution_id"] != first.body["execution_id"]


@pytest.mark.parametrize(
    "other",
    [
        {"workflow": "one", "input": {"x": 2}},
        {"workflow": "one"},
        {"workflow": "one@1", "input": {"x": 1}},
        {"workflow": "one", "input": {"x": 1}, "labels": {"a": "b"}},
        {"workflow": "one", "input": {"x": 1}, "priority": 1},
        {"workflow": "one", "input": {"x": True}},
    ],
)
def test_the_same_key_with_another_body_is_refused(api: Caller, other: dict[str, Any]) -> None:
    first = api.post("/executions", {"workflow": "one", "input": {"x": 1}}, key("used"))
    assert first.status == 201
    before = api.count()
    assert_problem(api.post("/executions", other, key("used")), 422, "key_reused")
    assert api.count() == before


def test_fifty_requests_with_one_key_at_once_make_one_execution(api: Caller) -> None:
    before = api.count()[1]
    answers = at_once(50, lambda _: api.post("/executions", {"workflow": "one"}, key("fifty")))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body["execution_id"] for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert api.count()[1] == before + 1


def test_a_key_that_was_refused_can_be_used_for_the_corrected_request(api: Caller) -> None:
    assert_problem(api.post("/executions", {"workflow": "nowhere"}, key("corrected")), 404)
    assert_problem(api.post("/executions", {"definition": {"nodes": []}}, key("corrected")), 422)
    assert api.post("/executions", {"workflow": "one"}, key("corrected")).status == 201


@pytest.mark.parametrize("text", ["", "x" * 256])
def test_a_key_that_is_no_key_is_refused(api: Caller, text: str) -> None:
    assert_problem(api.post("/executions", {"workflow": "one"}, key(text)), 422, "invalid_request")


def test_a_batch_has_one_answer_for_each_good_or_bad(api: Caller) -> None:
    orders: list[Any] = [
        {"workflow": "one", "input": {"x": 1}, "labels": {"batch": "1"}},
        {"workflow": "nowhere"},
        {
            "definition": {
                "name": "round",
                "nodes": [{"id": "a", "handler": "noop", "dependencies": ["a"]}],
            }
        },
        {"workflow": "one", "input": [1]},
        {},
        {"workflow": "one", "priority": 1000},
        {"definition": document("of-a-batch", {"a": ""}), "labels": {"batch": "1"}},
    ]
    answer = api.post("/executions/batch", {"executions": orders})
    assert answer.status == 200
    items = answer.body["items"]
    assert [item.get("error", {}).get("status") for item in items] == [
        None,
        404,
        422,
        422,
        422,
        422,
        None,
    ]
    assert items[2]["error"]["code"] == "invalid_workflow"
    assert items[2]["error"]["problems"][0]["node_id"] == "a"
    started = [item["execution_id"] for item in items if "error" not in item]
    assert {listed["execution_id"] for listed in api.items("/executions", label="batch:1")} == set(
        started
    )
    for execution_id in started:
        api.until_state(execution_id, "COMPLETED")


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"executions": []},
        {"executions": {}},
        {"executions": [1]},
        {"executions": [{}] * 1001},
        "x",
        None,
    ],
)
def test_a_batch_that_is_none_is_refused(api: Caller, body: Any) -> None:
    before = api.count()
    assert_problem(api.post("/executions/batch", body), 422)
    assert api.count() == before


def test_higher_priorities_are_handed_out_first(tmp_path: Path) -> None:
    with gated_service(tmp_path, worker_concurrency=1, worker_threads=1) as server:
        api, gates = server.api, server.gates
        api.start(gated("first", "a"))
        gates.until_asked("first a")
        names = {"low": -5, "plain-1": 0, "plain-2": 0, "high": 5, "highest": 100}
        started = [
            api.start(gated(name, "a"), priority=priority) for name, priority in names.items()
        ]
        for name in names:
            gates.open(f"{name} a")
        for execution_id in started:
            until_queued(api, execution_id)
        gates.open("first a")
        for execution_id in started:
            api.until_state(execution_id, "COMPLETED")
        assert gates.passed == ["first a", "highest a", "high a", "plain-1 a", "plain-2 a", "low a"]
        assert api.shown(f"/executions/{started[0]}")["priority"] == -5


def until_queued(api: Caller, execution_id: str) -> None:
    api.until_state(execution_id, "RUNNING")
    assert api.shown(f"/executions/{execution_id}/nodes/a")["state"] == "QUEUED"


@pytest.mark.parametrize("priority", [101, -101, 1.5, "1", None, True])
def test_a_priority_that_is_none_is_refused(api: Caller, priority: Any) -> None:
    assert_problem(
        api.post("/executions", {"workflow": "one", "priority": priority}), 422, "invalid_request"
    )


@pytest.mark.parametrize("execution_id", ["nowhere", "..", "\x00", "a/b", "é", "x" * 3000])
@pytest.mark.parametrize(
    "path", ["", "/results", "/history", "/graph", "/nodes/a", "/nodes/a/logs"]
)
def test_an_unknown_execution_is_not_found(api: Caller, execution_id: str, path: str) -> None:
    assert_problem(api.get(f"/executions/{segment(execution_id)}{path}"), 404, "not_found")


@pytest.mark.parametrize(
    "path", ["%ff%fe", "%ed%a0%80", "%00", "%0a", "%c0%ae%c0%ae", "..%2f..%2fetc%2fpasswd"]
)
def test_bytes_that_are_no_text_in_a_path_or_a_query_break_nothing(api: Caller, path: str) -> None:
    for target in (
        f"executions/{path}",
        f"executions/{path}/nodes/{path}",
        f"workflows/{path}",
        f"keys/{path}",
    ):
        answer = api.send("GET", f"/api/v1/{target}")
        assert answer.status in {404, 405, 422}
        assert_problem(answer, answer.status)
    for name in ("text", "workflow", "label", "since", "cursor", "state", "limit"):
        answer = api.send("GET", f"/api/v1/executions?{name}={path}")
        assert answer.status in {200, 422}


@pytest.mark.timeout(45)
def test_waiting_for_an_execution_that_ends_at_once_does_not_wait(api: Caller) -> None:
    """It has ended before anybody could begin to wait."""
    node = {"id": "a", "handler": "noop", "condition": "input.x == 1"}
    body = {"definition": {"name": "at-once", "nodes": [node]}, "input": {"x": 2}}
    answer = api.post("/executions?wait=60", body)
    assert (answer.status, answer.body["state"]) == (201, "COMPLETED")


def test_a_repeated_key_is_honoured_also_when_the_workflow_is_gone(api: Caller) -> None:
    api.post("/workflows", document("gone", {"a": ""}))
    first = api.post("/executions", {"workflow": "gone"}, headers={"Idempotency-Key": "gone-1"})
    assert api.delete("/workflows/gone").status == 204
    again = api.post("/executions", {"workflow": "gone"}, headers={"Idempotency-Key": "gone-1"})
    assert (again.status, again.body["execution_id"]) == (201, first.body["execution_id"])
    assert_problem(api.post("/executions", {"workflow": "gone"}), 404, "not_found")


def test_an_input_that_does_not_fit_its_schema_says_where(api: Caller) -> None:
    address = {"type": "object", "required": ["city"], "properties": {"zip": {"type": "string"}}}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "address": address}}
    document = {"name": "fits", "input_schema": schema, "nodes": [{"id": "a", "handler": "noop"}]}
    answer = api.post(
        "/executions", {"definition": document, "input": {"n": "x", "address": {"zip": 1}}}
    )
    assert (answer.status, answer.body["code"]) == (422, "invalid_input")
    assert sorted(problem["path"] for problem in answer.body["problems"]) == [
        "input.address",
        "input.address.zip",
        "input.n",
    ]
    assert "n: " in answer.body["detail"]


@pytest.mark.parametrize(
    "labels", [{"a": "x" * 20_000}, {"x" * 20_000: "a"}, {"a": ["x" * 100] * 300}]
)
def test_labels_of_many_kilobytes_are_refused(api: Caller, labels: dict[str, Any]) -> None:
    answer = api.post("/executions", {"workflow": "one", "labels": labels})
    assert_problem(answer, 422, "invalid_input")
    assert "16,384 bytes" in answer.body["detail"]


def test_large_inputs_and_outputs_are_shown_as_they_are(api: Caller) -> None:
    input_value = {"x": [{"text": "é\n" * 100, "number": i} for i in range(500)]}
    ended = api.ended(ONE, input=input_value)
    assert ended["input"] == input_value
    assert ended["output"] == {"a": input_value}
    assert ended["nodes"]["a"]["output"] == input_value
    name = ended["execution_id"]
    assert api.get(f"/executions/{name}", nodes="false").body["input"] == input_value
    assert api.get(f"/executions/{name}/results").body["outputs"] == {"a": input_value}
