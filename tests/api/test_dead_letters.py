"""Dead letters over HTTP: found by filter, looked at, retried one by one or many, dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.caller import Caller, assert_problem, at_once, failing
from tests.api_server import running_service


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("dead-letters")) as service:
        yield Caller(service.address)


def dead(api: Caller, name: str, **fields: Any) -> tuple[str, int]:
    """An execution that failed, and its only dead letter."""
    execution_id = api.ended(failing(name), **fields)["execution_id"]
    (dead_letter,) = api.items("/dead-letters", execution_id=execution_id)
    return execution_id, dead_letter["id"]


def doubly_failing(name: str) -> dict[str, Any]:
    once = {"retry": {"max_attempts": 1}}
    nodes = [
        {"id": "x", "handler": "fail", **once},
        {"id": "y", "handler": "transform", "config": {"expression": "1/0"}, **once},
    ]
    return {"name": name, "on_failure": "continue", "nodes": nodes}


def test_a_dead_letter_tells_what_failed_why_and_how_often(api: Caller) -> None:
    written = failing("told", message="no luck")
    written["nodes"][1]["retry"] = {
        "max_attempts": 3,
        "initial_delay_seconds": 0.01,
        "jitter_seconds": 0,
    }
    ended = api.ended(written)
    (dead_letter,) = api.items("/dead-letters", workflow="told")
    assert dead_letter == api.shown(f"/dead-letters/{dead_letter['id']}")
    assert (dead_letter["execution_id"], dead_letter["node_id"], dead_letter["handler"]) == (
        ended["execution_id"],
        "bad",
        "fail",
    )
    assert (dead_letter["workflow"], dead_letter["version"], dead_letter["category"]) == (
        "told",
        1,
        "handler",
    )
    assert dead_letter["error"] == {"category": "handler", "message": "no luck"}
    assert [attempt["attempt"] for attempt in dead_letter["attempts"]] == [1, 2, 3]
    assert all(attempt["error"] == dead_letter["error"] for attempt in dead_letter["attempts"])
    assert (dead_letter["closed"], dead_letter["closed_at"], dead_letter["retried_as"]) == (
        None,
        None,
        None,
    )


def test_each_filter_finds_its_own(api: Caller) -> None:
    execution_id = api.ended(doubly_failing("filters"))["execution_id"]
    _, other = dead(api, "filters-too")
    by_node = {
        dead_letter["node_id"]: dead_letter
        for dead_letter in api.items("/dead-letters", execution_id=execution_id)
    }
    assert by_node.keys() == {"x", "y"}

    def ids(**query: Any) -> set[int]:
        return {dead_letter["id"] for dead_letter in api.items("/dead-letters", **query)}

    both = {by_node["x"]["id"], by_node["y"]["id"]}
    assert ids(workflow="filters") == both
    assert ids(workflow="filters", handler="fail") == {by_node["x"]["id"]}
    assert ids(workflow="filters", handler="transform") == {by_node["y"]["id"]}
    assert ids(workflow="filters", category=by_node["y"]["category"]) == {by_node["y"]["id"]}
    assert ids(workflow="filters", category="nothing") == set()
    assert ids(workflow="filters-too") == {other}
    assert both | {other} <= ids(handler="fail") | ids(handler="transform")
    assert ids(execution_id="nowhere") == set()


def test_the_list_is_in_pages_the_newest_first(api: Caller) -> None:
    newest_last = [dead(api, "paged")[1] for _ in range(5)]
    assert [
        dead_letter["id"] for dead_letter in api.items("/dead-letters", workflow="paged", limit=2)
    ] == newest_last[::-1]
    page = api.shown("/dead-letters", workflow="paged", limit=2)
    dead(api, "paged")
    rest = api.items("/dead-letters", workflow="paged", limit=2, cursor=page["next_cursor"])
    assert [dead_letter["id"] for dead_letter in rest] == newest_last[::-1][2:]


def test_a_retried_dead_letter_is_closed_with_the_execution_that_came_of_it(api: Caller) -> None:
    execution_id, dead_letter_id = dead(api, "one-retry", labels={"team": "a"})
    answer = api.post(f"/dead-letters/{dead_letter_id}/retry")
    assert answer.status == 201
    assert (answer.body["retry_of"], answer.body["keeps"]) == (execution_id, ["a"])
    retry = api.until_state(answer.body["execution_id"], "FAILED")
    assert (retry["retry_of"], retry["labels"]) == (execution_id, {"team": "a"})
    dead_letter = api.shown(f"/dead-letters/{dead_letter_id}")
    assert (dead_letter["closed"], dead_letter["retried_as"]) == ("retried", retry["execution_id"])
    assert dead_letter["closed_at"]
    assert dead_letter_id not in {item["id"] for item in api.items("/dead-letters")}
    assert dead_letter_id in {item["id"] for item in api.items("/dead-letters", closed=True)}
    body = assert_problem(api.post(f"/dead-letters/{dead_letter_id}/retry"), 409, "conflict")
    assert retry["execution_id"] in body["detail"]
    (after,) = api.items("/dead-letters", execution_id=retry["execution_id"])
    assert after["id"] != dead_letter_id, "it failed again, and has a dead letter of its own"


def test_one_retry_closes_all_dead_letters_of_its_execution(api: Caller) -> None:
    execution_id = api.ended(doubly_failing("pair"))["execution_id"]
    dead_letters = [
        dead_letter["id"] for dead_letter in api.items("/dead-letters", execution_id=execution_id)
    ]
    retry_id = api.post(f"/dead-letters/{dead_letters[0]}/retry").body["execution_id"]
    assert api.items("/dead-letters", execution_id=execution_id) == []
    assert {api.shown(f"/dead-letters/{each_id}")["retried_as"] for each_id in dead_letters} == {
        retry_id
    }


def test_ten_retries_of_a_dead_letter_at_once_make_one_execution(api: Caller) -> None:
    _, dead_letter_id = dead(api, "hurry")
    answers = at_once(10, lambda _: api.post(f"/dead-letters/{dead_letter_id}/retry"))
    assert {answer.status for answer in answers} <= {201, 409}
    assert len({answer.body["execution_id"] for answer in answers if answer.status == 201}) == 1
    assert len(api.items("/executions", workflow="hurry")) == 2


def test_a_dropped_dead_letter_is_closed_and_cannot_be_retried(api: Caller) -> None:
    execution_id, dead_letter_id = dead(api, "dropped")
    assert api.delete(f"/dead-letters/{dead_letter_id}").status == 204
    assert (
        "closed=true"
        in assert_problem(api.get(f"/dead-letters/{dead_letter_id}"), 404, "not_found")["detail"]
    )
    assert api.items("/dead-letters", workflow="dropped") == []
    (dead_letter,) = api.items("/dead-letters", workflow="dropped", closed=True)
    assert (dead_letter["id"], dead_letter["closed"], dead_letter["retried_as"]) == (
        dead_letter_id,
        "dropped",
        None,
    )
    assert dead_letter["closed_at"]
    assert_problem(api.delete(f"/dead-letters/{dead_letter_id}"), 409, "conflict")
    assert_problem(api.post(f"/dead-letters/{dead_letter_id}/retry"), 409, "conflict")
    assert api.post(f"/executions/{execution_id}/retry").status == 201, (
        "the execution itself can still be retried"
    )


def test_many_are_retried_by_filter_with_one_execution_for_each_that_failed(api: Caller) -> None:
    failed = {api.ended(doubly_failing("many"))["execution_id"] for _ in range(3)}
    dead(api, "not-many")
    preview = api.post("/dead-letters/retry", {"workflow": "many", "preview": True})
    assert preview.status == 200
    assert {item["retry_of"] for item in preview.body["items"]} == failed
    assert all(
        item["execution_id"] is None and len(item["letters"]) == 2 for item in preview.body["items"]
    )
    assert len(api.items("/executions", workflow="many")) == 3
    done = api.post("/dead-letters/retry", {"workflow": "many"})
    assert done.status == 200
    assert {item["retry_of"] for item in done.body["items"]} == failed
    retry_ids = {item["execution_id"] for item in done.body["items"]}
    assert len(retry_ids) == 3
    for execution_id in retry_ids:
        api.until_state(execution_id, "FAILED")
    assert len(api.items("/executions", workflow="many")) == 6
    assert {
        dead_letter["execution_id"] for dead_letter in api.items("/dead-letters", workflow="many")
    } == retry_ids
    assert len(api.items("/dead-letters", workflow="not-many")) == 1


def test_many_are_retried_by_their_ids(api: Caller) -> None:
    dead_letters = [dead(api, "by-id") for _ in range(3)]
    chosen = dead_letters[:2]
    done = api.post("/dead-letters/retry", {"ids": [dead_letter for _, dead_letter in chosen]}).body
    assert {item["retry_of"]: item["letters"] for item in done["items"]} == {
        name: [each] for name, each in chosen
    }
    assert [each["id"] for each in api.items("/dead-letters", execution_id=dead_letters[2][0])] == [
        dead_letters[2][1]
    ]
    assert api.post("/dead-letters/retry", {"ids": [chosen[0][1]]}).body["items"] == [], (
        "it is closed"
    )
    assert api.post("/dead-letters/retry", {"ids": []}).body["items"] == []
    assert_problem(
        api.post("/dead-letters/retry", {"ids": [dead_letters[2][1], 10**9]}), 404, "not_found"
    )
    assert api.shown(f"/dead-letters/{dead_letters[2][1]}")["closed"] is None, (
        "all of them, or none"
    )


def test_many_are_dropped_by_their_ids_and_those_that_were_open_are_counted(api: Caller) -> None:
    created_ids = [dead(api, "drop-many")[1] for _ in range(4)]
    api.delete(f"/dead-letters/{created_ids[0]}")
    answer = api.post("/dead-letters/drop", {"ids": [*created_ids[:3], created_ids[2], 10**9]})
    assert (answer.status, answer.body) == (200, {"dropped": 2})
    assert [
        dead_letter["id"] for dead_letter in api.items("/dead-letters", workflow="drop-many")
    ] == [created_ids[3]]
    closed = api.items("/dead-letters", workflow="drop-many", closed=True)
    assert {
        dead_letter["id"] for dead_letter in closed if dead_letter["closed"] == "dropped"
    } == set(created_ids[:3])
    assert api.post("/dead-letters/drop", {"ids": created_ids[:3]}).body == {"dropped": 0}
    lines = [
        line for line in api.items("/audit", action="drop_dead_letters") if line["status"] == 200
    ]
    assert [(line["object"], line["detail"]) for line in lines] == [
        ("dead-letters", {"count": 0, "dead_letter_ids": created_ids[:3]}),
        (
            "dead-letters",
            {"count": 2, "dead_letter_ids": [*created_ids[:3], created_ids[2], 10**9]},
        ),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"ids": [0]},
        {"ids": ["1"]},
        {"ids": [2**60]},
        {"ids": [1] * 1001},
        {"ids": [1], "all": True},
        [],
    ],
)
def test_a_bulk_drop_that_means_nothing_is_refused(api: Caller, body: Any) -> None:
    assert_problem(api.post("/dead-letters/drop", body), 422, "invalid_request")


def test_a_retry_of_the_execution_itself_closes_its_dead_letters_too(api: Caller) -> None:
    execution_id, dead_letter_id = dead(api, "itself")
    retry_id = api.post(f"/executions/{execution_id}/retry").body["execution_id"]
    dead_letter = api.shown(f"/dead-letters/{dead_letter_id}")
    assert (dead_letter["closed"], dead_letter["retried_as"]) == ("retried", retry_id)
    assert_problem(api.post(f"/dead-letters/{dead_letter_id}/retry"), 409, "conflict")


@pytest.mark.parametrize(
    "path", ["0", "-1", "x", "999999", "1.5", "99999999999999999999", "%00", "..", "1/2"]
)
def test_a_dead_letter_that_is_not_there_is_not_found(api: Caller, path: str) -> None:
    for answer in (
        api.get(f"/dead-letters/{path}"),
        api.delete(f"/dead-letters/{path}"),
        api.post(f"/dead-letters/{path}/retry"),
    ):
        assert_problem(answer, answer.status)
        assert answer.status in {404, 422}


@pytest.mark.parametrize(
    "body",
    [
        {"ids": ["1"]},
        {"ids": [0]},
        {"ids": [2**60]},
        {"ids": 1},
        {"workflow": 1},
        {"limit": 0},
        {"preview": 1},
        {"all": True},
        [],
        "x",
        {"ids": [1] * 1001},
    ],
)
def test_a_bulk_retry_that_means_nothing_is_refused(api: Caller, body: Any) -> None:
    before = api.count()
    assert_problem(api.post("/dead-letters/retry", body), 422, "invalid_request")
    assert api.count() == before


@pytest.mark.parametrize(
    "query", [{"closed": "perhaps"}, {"limit": 0}, {"cursor": "x"}, {"workflow": "x" * 5000}]
)
def test_a_filter_that_means_nothing_is_refused(api: Caller, query: dict[str, Any]) -> None:
    assert_problem(api.get("/dead-letters", **query), 422, "invalid_request")
