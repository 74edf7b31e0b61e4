"""Definitions over HTTP: versions, aliases, names of any kind.

Documents are checked before anything is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.stores.references import choose
from tests.api.caller import Caller, assert_problem, at_once, document, segment
from tests.api_server import running_service

ODD_NAMES = [
    "two words",
    "a@b",
    "a@3",
    "@front",
    "a/b",
    "a/../b",
    "..",
    "é",
    "日本語",
    "100%",
    "a%2Fb",
    "?x=1",
    "a#b",
    "a;b",
    "a+b",
    "<script>",
    "'; DROP TABLE workflows; --",
    "validate",
    "a\\b",
    "//",
    "e\u0301",
    "x" * 200,
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("workflows")) as service:
        yield Caller(service.address)


def one(name: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "nodes": [{"id": "a", "handler": "echo", "config": config}]}


def put_versions(api: Caller, name: str, count: int) -> None:
    for number in range(1, count + 1):
        assert api.store(one(name, n=number))["version"] == number


def version_of(api: Caller, reference: str) -> int:
    return int(api.shown(f"/executions/{api.start(reference)}")["version"])


def test_the_same_content_is_the_same_version_and_changed_content_the_next(api: Caller) -> None:
    first = api.post("/workflows", one("versions", n=1))
    assert (first.status, first.body["version"], first.body["created"]) == (201, 1, True)
    assert first.body["name"] == "versions"
    assert first.body["warnings"] == []
    again = api.post("/workflows", one("versions", n=1))
    assert (again.status, again.body["version"], again.body["created"]) == (200, 1, False)
    assert again.body["created_at"] == first.body["created_at"]
    changed = api.post("/workflows", one("versions", n=2))
    assert (changed.status, changed.body["version"]) == (201, 2)
    back = api.post("/workflows", one("versions", n=1))
    assert (back.status, back.body["version"]) == (200, 1)
    versions = api.items("/workflows/versions/versions")
    assert [version["version"] for version in versions] == [2, 1]
    assert len({version["content_hash"] for version in versions}) == 2


def test_fifty_who_store_the_same_at_once_make_one_version(api: Caller) -> None:
    answers = at_once(50, lambda _: api.post("/workflows", one("at-once")))
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert {answer.body["version"] for answer in answers} == {1}


def test_the_order_of_keys_is_not_content(api: Caller) -> None:
    written = one("order", n=1)
    assert api.store(written)["version"] == 1
    turned = {key: written[key] for key in reversed(written)}
    assert api.store(turned)["version"] == 1


def test_a_workflow_is_shown_as_it_was_written(api: Caller) -> None:
    written = {
        **one("shown", text="{{ input.x }} é"),
        "metadata": {"team": "billing"},
        "made_up": [1, None, 2.5],
    }
    stored = api.store(written)
    assert [warning["path"] for warning in stored["warnings"]] == ["made_up"]
    workflow = api.shown("/workflows/shown")
    assert workflow["definition"] == written
    assert (workflow["name"], workflow["version"], workflow["latest_version"]) == ("shown", 1, 1)


def test_a_document_without_a_name_gets_one_from_its_content(api: Caller) -> None:
    nameless = document(None, {"a": "", "b": "a"})
    name = api.store(nameless)["name"]
    assert name
    assert api.store({**nameless, "name": None})["name"].startswith("workflow-")
    assert api.store({**nameless, "name": ""})["name"].startswith("workflow-")
    assert api.store(nameless)["name"] == name
    assert api.store(document(None, {"a": "", "c": "a"}))["name"] != name


def test_versions_are_found_by_number_and_by_alias(api: Caller) -> None:
    put_versions(api, "found", 3)
    assert api.put("/workflows/found/aliases/stable", {"version": 2}).body == {
        "name": "found",
        "alias": "stable",
        "weights": {"2": 100},
    }
    for reference, version in (
        ("found", 3),
        ("found@1", 1),
        ("found@3", 3),
        ("found@latest", 3),
        ("found@stable", 2),
    ):
        assert api.shown(f"/workflows/{segment(reference)}")["version"] == version
        assert version_of(api, reference) == version
    assert api.shown("/workflows/found", version=1)["definition"] == one("found", n=1)
    assert api.shown("/workflows/found", version="stable")["version"] == 2
    named = {item["version"]: item["aliases"] for item in api.items("/workflows/found/versions")}
    assert named[2] == ["stable"]
    assert "stable" not in named[3]


@pytest.mark.parametrize(
    "reference", ["gone", "known@2", "known@0", "known@stable", "known@", "known@99999999999999999"]
)
def test_an_unknown_name_version_or_alias_is_not_found(api: Caller, reference: str) -> None:
    api.store(one("known"))
    assert_problem(api.get(f"/workflows/{segment(reference)}"), 404, "not_found")
    assert_problem(api.post("/executions", {"workflow": reference}), 404, "not_found")


def test_moving_an_alias_back_is_a_rollback_and_running_executions_keep_their_version(
    api: Caller,
) -> None:
    waiting = [one("rollback", n=1), one("rollback", n=2)]
    for written in waiting:
        written["nodes"].insert(0, {"id": "first", "handler": "sleep", "config": {"seconds": 60}})
        api.store(written)
    api.put("/workflows/rollback/aliases/stable", {"version": 2})
    pinned = api.start("rollback@stable")
    assert api.put("/workflows/rollback/aliases/stable", {"version": 1}).status == 200
    assert version_of(api, "rollback@stable") == 1
    assert api.shown(f"/executions/{pinned}")["version"] == 2
    assert api.shown(f"/executions/{pinned}/nodes/a")["config"] == {"n": 2}
    for execution in api.items("/executions", workflow="rollback"):
        api.post(f"/executions/{execution['execution_id']}/cancel")


def test_a_weighted_alias_shares_executions_out_by_their_ids(api: Caller) -> None:
    put_versions(api, "shared", 2)
    answer = api.put("/workflows/shared/aliases/canary", {"weights": {"1": 80, "2": 20}})
    assert answer.body["weights"] == {"1": 80, "2": 20}
    started = api.post(
        "/executions/batch", {"executions": [{"workflow": "shared@canary"}] * 1000}
    ).body["items"]
    shares = Counter(item["version"] for item in started)
    assert shares.keys() == {1, 2}
    assert 150 < shares[2] < 250, "five standard deviations around 200"
    assert len({item["execution_id"] for item in started}) == 1000
    assert all(
        item["version"] == choose({1: 80, 2: 20}, item["execution_id"]) for item in started
    ), "it can be repeated"
    for item in started[:5]:
        assert api.shown(f"/executions/{item['execution_id']}")["version"] == item["version"]


def test_a_share_of_nothing_is_never_chosen(api: Caller) -> None:
    put_versions(api, "zero", 2)
    api.put("/workflows/zero/aliases/stable", {"weights": {"1": 0, "2": 5}})
    started = api.post(
        "/executions/batch", {"executions": [{"workflow": "zero@stable"}] * 50}
    ).body["items"]
    assert {item["version"] for item in started} == {2}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"version": 0},
        {"version": "1"},
        {"version": 1.5},
        {"version": True},
        {"version": None},
        {"weights": {}},
        {"weights": {"1": -1}},
        {"weights": {"1": 0}},
        {"weights": {"one": 1}},
        {"weights": {"1": "1"}},
        {"weights": []},
        {"version": 1, "weights": {"1": 1}},
        {"version": 1, "more": 2},
        [],
        "1",
        1,
    ],
)
def test_an_alias_for_nothing_sensible_is_refused(api: Caller, body: Any) -> None:
    api.store(one("refusing"))
    assert_problem(api.put("/workflows/refusing/aliases/stable", body), 422)
    assert api.shown("/workflows/refusing")["aliases"].keys() == {"latest"}


@pytest.mark.parametrize("alias", ["latest", "3", "a b", "a@b", "é", "-", "x" * 65, "%00"])
def test_an_alias_that_could_be_taken_for_something_else_is_refused(
    api: Caller, alias: str
) -> None:
    api.store(one("refusing"))
    assert_problem(api.put(f"/workflows/refusing/aliases/{segment(alias)}", {"version": 1}), 422)
    assert api.shown("/workflows/refusing")["aliases"].keys() == {"latest"}


def test_an_alias_can_only_mean_a_version_that_there_is(api: Caller) -> None:
    api.store(one("refusing"))
    assert_problem(api.put("/workflows/refusing/aliases/stable", {"version": 7}), 404)
    assert_problem(
        api.put("/workflows/refusing/aliases/stable", {"weights": {"1": 1, "7": 1}}), 404
    )
    assert_problem(api.put("/workflows/nowhere/aliases/stable", {"version": 1}), 404)


def test_a_removed_alias_is_gone(api: Caller) -> None:
    api.store(one("removing"))
    api.put("/workflows/removing/aliases/stable", {"version": 1})
    assert api.delete("/workflows/removing/aliases/stable").status == 204
    assert_problem(api.get("/workflows/removing@stable"), 404, "not_found")
    assert_problem(api.post("/executions", {"workflow": "removing@stable"}), 404, "not_found")
    assert_problem(api.delete("/workflows/removing/aliases/stable"), 404, "not_found")
    assert_problem(api.delete("/workflows/nowhere/aliases/stable"), 404, "not_found")


def test_a_deleted_workflow_cannot_be_started_and_its_executions_go_on(api: Caller) -> None:
    slow = one("deleted")
    slow["nodes"].append(
        {"id": "b", "handler": "echo", "dependencies": ["a"], "config": {"from": "{{ a }}"}}
    )
    slow["nodes"][0] = {"id": "a", "handler": "sleep", "config": {"seconds": 0.3}}
    api.store(slow)
    execution_id = api.start("deleted")
    assert api.delete("/workflows/deleted").status == 204
    assert_problem(api.get("/workflows/deleted"), 404, "not_found")
    assert_problem(api.get("/workflows/deleted/versions"), 404, "not_found")
    assert_problem(api.post("/executions", {"workflow": "deleted"}), 404, "not_found")
    assert_problem(api.delete("/workflows/deleted"), 404, "not_found")
    assert "deleted" not in {item["name"] for item in api.items("/workflows")}
    ended = api.until_state(execution_id, "COMPLETED", "FAILED")
    assert ended["nodes"]["b"]["output"] == {"from": {"slept_seconds": 0.3}}
    assert api.shown(f"/executions/{execution_id}/nodes/b")["config"] == {"from": "{{ a }}"}


def test_a_workflow_that_comes_back_does_not_take_over_the_numbers_of_the_deleted_one(
    api: Caller,
) -> None:
    put_versions(api, "phoenix", 2)
    execution_id = api.start("phoenix@1")
    api.delete("/workflows/phoenix")
    returned = api.store(one("phoenix", n=3))
    assert returned["version"] == 3
    assert returned["aliases"].keys() == {"latest"}
    assert api.shown(f"/executions/{execution_id}/nodes/a")["config"] == {"n": 1}


def test_validation_tells_every_problem_and_stores_nothing(api: Caller) -> None:
    before = api.count()
    good = api.post("/workflows/validate", one("checked")).body
    assert good == {"valid": True, "name": "checked", "nodes": 1, "problems": [], "warnings": []}
    bad = document("checked", {"a": "b", "b": "a", "c": "nobody"}, handler="echoo")
    answer = api.post("/workflows/validate", bad)
    assert answer.status == 200
    assert answer.body["valid"] is False
    codes = {problem["code"] for problem in answer.body["problems"]}
    assert {"unknown_handler", "unknown_dependency"} <= codes
    assert all(problem["path"] and problem["message"] for problem in answer.body["problems"])
    assert any("echo" in problem["message"] for problem in answer.body["problems"]), (
        "the nearest name"
    )
    assert api.count() == before


def test_unknown_fields_are_warnings_and_with_strict_they_are_errors(api: Caller) -> None:
    odd = {**one("strict"), "descripton": "x"}
    checked = api.post("/workflows/validate", odd).body
    assert checked["valid"] is True
    assert ["description" in warning["message"] for warning in checked["warnings"]] == [True]
    assert api.post("/workflows/validate", odd, strict=True).body["valid"] is False
    refused = assert_problem(api.post("/workflows", odd, strict=True), 422, "invalid_workflow")
    assert [problem["path"] for problem in refused["problems"]] == ["descripton"]
    assert_problem(api.get("/workflows/strict"), 404)
    assert len(api.store(odd)["warnings"]) == 1


def test_an_unknown_handler_is_refused_unless_workers_for_it_come_later(api: Caller) -> None:
    later = document("later", {"a": ""}, handler="made_up_handler")
    refused = assert_problem(api.post("/workflows", later), 422, "invalid_workflow")
    assert refused["problems"][0]["code"] == "unknown_handler"
    assert refused["problems"][0]["node_id"] == "a"
    assert api.post("/workflows", later, allow_unknown_handlers=True).status == 201
    assert api.post("/workflows/validate", later, allow_unknown_handlers=True).body["valid"] is True
    assert_problem(api.post("/executions", {"definition": later}), 422, "invalid_workflow")


@pytest.mark.parametrize("name", ["strict", "allow_unknown_handlers"])
def test_a_switch_that_is_neither_true_nor_false_is_refused(api: Caller, name: str) -> None:
    query: dict[str, Any] = {name: "perhaps"}
    assert_problem(api.post("/workflows", one("switch"), **query), 422, "invalid_request")
    assert_problem(api.get("/workflows/switch"), 404)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_of_any_characters_works_everywhere(api: Caller, name: str) -> None:
    path = f"/workflows/{segment(name)}"
    assert api.store(one(name, n=1))["name"] == name
    assert api.store(one(name, n=2))["version"] == 2
    assert api.shown(path)["name"] == name
    assert api.shown(path, version=1)["definition"]["name"] == name
    assert [item["version"] for item in api.items(path + "/versions")] == [2, 1]
    assert api.put(path + "/aliases/stable", {"version": 1}).body["name"] == name
    assert api.shown(f"/workflows/{segment(name + '@stable')}")["version"] == 1
    assert version_of(api, f"{name}@stable") == 1
    assert version_of(api, name) == 2
    assert name in {item["name"] for item in api.items("/workflows", limit=7)}
    assert {item["workflow"] for item in api.items("/executions", workflow=name)} == {name}
    assert api.delete(path + "/aliases/stable").status == 204
    assert api.delete(path).status == 204
    assert_problem(api.get(path), 404, "not_found")


def test_a_name_that_ends_like_a_route_is_still_a_name(api: Caller) -> None:
    api.store(one("a"))
    api.store(one("a/versions"))
    assert api.shown("/workflows/a%2Fversions")["name"] == "a/versions"
    assert api.shown("/workflows/a/versions").keys() == {"items", "next_cursor"}
    assert api.items("/workflows/a%2Fversions/versions")[0]["version"] == 1
    api.store(one("a/graph"))
    assert api.shown("/workflows/a%2Fgraph")["name"] == "a/graph"
    assert api.shown("/workflows/a/graph")["name"] == "a"
    assert api.shown("/workflows/a%2Fgraph/graph")["name"] == "a/graph"
    api.put("/workflows/a/aliases/stable", {"version": 1})
    api.store(one("a/aliases/stable"))
    assert api.delete("/workflows/a%2Faliases%2Fstable").status == 204
    assert api.shown("/workflows/a")["aliases"].keys() == {"latest", "stable"}
    assert_problem(api.get("/workflows/a%2Faliases%2Fstable"), 404)


def test_a_name_with_an_at_sign_is_not_taken_for_a_version(api: Caller) -> None:
    api.store(one("mail", n=1))
    api.store(one("mail@9", n=2))
    assert api.shown("/workflows/mail%409")["name"] == "mail@9"
    assert api.shown("/workflows/mail%401")["name"] == "mail"
    assert api.shown("/workflows/mail%409%401")["name"] == "mail@9"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "x" * 2000, 7, False, ["a"], {"a": 1}, True])
def test_a_name_that_is_no_name_is_refused_with_its_path(api: Caller, name: Any) -> None:
    before = api.count()
    answer = api.post("/workflows", {**one("x"), "name": name})
    assert assert_problem(answer, 422)["problems"][0]["path"] == "name"
    assert api.count() == before


def test_the_list_is_in_pages_by_name(api: Caller) -> None:
    for number in range(5):
        api.store(one(f"page-{number}"))
    names = [item["name"] for item in api.items("/workflows", limit=2)]
    assert names == sorted(names)
    assert len(names) == len(set(names))
    assert {f"page-{number}" for number in range(5)} <= set(names)
    assert names == [item["name"] for item in api.items("/workflows", limit=500)]
    first = api.shown("/workflows", limit=1)["items"][0]
    assert first.keys() == {
        "name",
        "latest_version",
        "versions",
        "aliases",
        "created_at",
        "updated_at",
    }


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 501}, {"limit": "x"}, {"limit": -1}, {"cursor": "%%%"}]
)
def test_a_page_that_there_cannot_be_is_refused(api: Caller, query: dict[str, Any]) -> None:
    assert_problem(api.get("/workflows", **query), 422, "invalid_request")
