"""Documents and bodies that must be refused.

Always with a 4xx that says where and why, and nothing is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.definition.document_schema import document_schema
from tests.api.caller import Caller, assert_problem, document
from tests.api_server import running_service

MIB = 1024 * 1024
JSON_TYPE = {"Content-Type": "application/json"}
NODE = {"id": "a", "handler": "noop"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("documents")) as service:
        yield Caller(service.address)


def node(**fields: Any) -> dict[str, Any]:
    return {"name": "bad", "nodes": [{**NODE, **fields}]}


def flow(**fields: Any) -> dict[str, Any]:
    return {"name": "bad", "nodes": [NODE], **fields}


WRONG_SHAPES: dict[str, tuple[Any, str]] = {
    "cycle": (document("bad", {"a": "c", "b": "a", "c": "b"}), "cycle"),
    "cycle beside what is fine": (document("bad", {"ok": "", "a": "b", "b": "a"}), "cycle"),
    "self loop": (document("bad", {"a": "a"}), "self_dependency"),
    "duplicate id": ({"nodes": [NODE, NODE]}, "duplicate_id"),
    "unknown dependency": (document("bad", {"a": "b"}), "unknown_dependency"),
    "unknown handler": (node(handler="nope"), "unknown_handler"),
    "empty": ({"name": "bad", "nodes": []}, "empty_workflow"),
    "empty dag": ({"name": "bad", "dag": {"nodes": []}}, "empty_workflow"),
    "no nodes": ({"name": "bad"}, ""),
    "nothing": ({}, ""),
    "unknown reference": (node(config={"x": "{{ nobody.x }}"}), "unknown_reference"),
    "reference to what comes later": (
        {
            "nodes": [
                {**NODE, "config": {"x": "{{ b }}"}},
                {"id": "b", "handler": "noop", "depends_on": ["a"]},
            ]
        },
        "cycle",
    ),
    "reference to itself": (node(config={"x": "{{ a.x }}"}), ""),
    "reference to a reserved name": (node(config={"x": "{{ __class__ }}"}), "unknown_reference"),
    "malformed template": (node(config={"x": "{{ input.x"}), ""),
    "empty template": (node(config={"x": "{{ }}"}), ""),
    "malformed condition": (node(condition="1 +"), ""),
    "condition that is no text": (node(condition=1), ""),
    "handler missing": ({"nodes": [{"id": "a"}]}, ""),
    "id missing": ({"nodes": [{"handler": "noop"}]}, ""),
    "id empty": (node(id=""), ""),
    "id too long": (node(id="x" * 257), ""),
    "id with a line end": (node(id="a\nb"), ""),
    "id with an escape": (node(id="\x1b[2J"), ""),
    "id is a number": (node(id=1), ""),
    "id is null": (node(id=None), ""),
    "handler is a number": (node(handler=7), ""),
    "handler is an object": (node(handler={}), ""),
    "dependencies are text": (node(dependencies="b"), ""),
    "dependencies are numbers": (node(dependencies=[1]), ""),
    "dependencies are an object": (node(dependencies={"b": 1}), ""),
    "config is a list": (node(config=[]), ""),
    "config is text": (node(config="x"), ""),
    "nodes are text": ({"nodes": "x"}, ""),
    "nodes are numbers": ({"nodes": [1]}, ""),
    "nodes are null": ({"nodes": None}, ""),
    "dag is a list": ({"dag": []}, ""),
    "dag is text": ({"dag": "x"}, ""),
    "retry is a number": (node(retry=3), ""),
    "retry of nothing": (node(retry={"max_attempts": 0}), ""),
    "retry of half": (node(retry={"max_attempts": 1.5}), ""),
    "retry of a text": (node(retry={"max_attempts": "3"}), ""),
    "retry below zero": (node(retry={"initial_delay_seconds": -1}), ""),
    "time-out of nothing": (node(timeout_seconds=0), ""),
    "time-out below zero": (node(timeout_seconds=-1), ""),
    "time-out of a text": (node(timeout_seconds="1"), ""),
    "time-out of a truth": (node(timeout_seconds=True), ""),
    "unknown rule": (node(trigger_rule="sometimes"), ""),
    "queue is a number": (node(queue=1), ""),
    "optional is a text": (node(optional="yes"), ""),
    "on_failure unknown": (flow(on_failure="panic"), ""),
    "time-out of the workflow": (flow(timeout_seconds=-5), ""),
    "input is a list": (flow(input=[1]), ""),
    "input_schema is no schema": (flow(input_schema={"type": 7}), ""),
    "input_schema is a list": (flow(input_schema=[]), ""),
    "input_schema from elsewhere": (flow(input_schema={"$ref": "http://127.0.0.1:1/x.json"}), ""),
    "defaults are a list": (flow(defaults=[]), ""),
    "defaults are wrong": (flow(defaults={"retry": {"max_attempts": -1}}), ""),
    "a list": ([NODE], ""),
    "text": ("x", ""),
    "a number": (7, ""),
    "null": (None, ""),
    "true": (True, ""),
}  # fmt: skip
WITH_VALUE = (
    b'{"name": "bad", "nodes": [{"id": "a", "handler": "echo", "config": {"deep": [1, '
    b'{"x": %s}]}}]}'
)
WRONG_TEXTS: dict[str, tuple[bytes, str, str]] = {
    "NaN": (WITH_VALUE % b"NaN", "not_finite", "nodes[0].config.deep[1].x"),
    "infinity": (WITH_VALUE % b"-Infinity", "not_finite", "nodes[0].config.deep[1].x"),
    "too large for a float": (WITH_VALUE % b"1e999", "not_finite", "nodes[0].config.deep[1].x"),
    "integer of 65 bits": (
        WITH_VALUE % b"18446744073709551616",
        "number_too_large",
        "nodes[0].config.deep[1].x",
    ),
    "integer of 10,000 digits": (
        WITH_VALUE % (b"9" * 10_000),
        "number_too_large",
        "nodes[0].config.deep[1].x",
    ),
    "lone surrogate": (WITH_VALUE % rb'"\ud800"', "lone_surrogate", "nodes[0].config.deep[1].x"),
    "lone surrogate in a key": (
        WITH_VALUE % rb'{"\udfff": 1}',
        "lone_surrogate",
        "nodes[0].config.deep[1].x",
    ),
    "null character": (WITH_VALUE % rb'"a\u0000b"', "null_character", "nodes[0].config.deep[1].x"),
    "null character in a key": (
        WITH_VALUE % rb'{"\u0000": 1}',
        "null_character",
        "nodes[0].config.deep[1].x",
    ),
    "duplicate key": (
        WITH_VALUE % b'{"k": 1, "k": 2}',
        "duplicate_key",
        "nodes[0].config.deep[1].x.k",
    ),
    "duplicate key at the top": (b'{"nodes": [], "nodes": []}', "duplicate_key", "nodes"),
    "65 levels": (WITH_VALUE % (b"[" * 65 + b"]" * 65), "too_deep", "nodes"),
}
NOT_JSON: dict[str, bytes] = {
    "not JSON": b"name: bad",
    "half of it": b'{"nodes": [',
    "two of them": b"{} {}",
    "a comment": b'{"nodes": []} // x',
    "single quotes": b"{'nodes': []}",
    "a comma too many": b'{"nodes": [],}',
    "a raw line end in a text": b'{"name": "a\nb"}',
    "a raw null character": b'{"name": "a\0b"}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"nodes": []}'.encode("utf-16"),
    "half a surrogate in UTF-8": b'{"name": "\xed\xa0\x80"}',
    "form data": b"name=bad",
}
DOCUMENT_PATHS = ["/workflows", "/executions", "/workflows/validate"]


def send(api: Caller, path: str, data: bytes) -> Any:
    if path == "/executions":
        data = b'{"definition": ' + data + b"}"
    return api.send("POST", "/api/v1" + path, data, JSON_TYPE)


@pytest.mark.parametrize(("written", "code"), WRONG_SHAPES.values(), ids=WRONG_SHAPES.keys())
@pytest.mark.parametrize("path", DOCUMENT_PATHS[:2])
def test_a_document_that_is_none_is_refused_with_its_place(
    api: Caller, path: str, written: Any, code: str
) -> None:
    before = api.count()
    body = assert_problem(send(api, path, json.dumps(written).encode()), 422)
    assert body["code"] in {"invalid_workflow", "invalid_request"}
    assert body["problems"]
    assert (
        any(problem["path"] for problem in body["problems"])
        or not isinstance(written, dict)
        or len(written) < 2
    )
    assert not code or code in {problem["code"] for problem in body["problems"]}, body["problems"]
    assert api.count() == before


@pytest.mark.parametrize(
    "written", [shape for shape, _ in WRONG_SHAPES.values()], ids=WRONG_SHAPES.keys()
)
def test_validation_finds_the_same_and_is_a_good_answer(api: Caller, written: Any) -> None:
    answer = api.post("/workflows/validate", written)
    if not isinstance(written, dict):
        assert_problem(answer, 422)
        return
    assert answer.status == 200
    assert answer.body["valid"] is False
    refused = api.post("/workflows", written).body
    assert refused["problems"] == answer.body["problems"]


@pytest.mark.parametrize("path", ["/workflows", "/workflows/validate"])
def test_a_problem_has_its_place_in_the_text(api: Caller, path: str) -> None:
    text = b'{"nodes": [\n  {"id": "a",\n   "handler": "sleep",\n   "config": {"secs": 1}}]}'
    body = api.send("POST", f"/api/v1{path}", text, {"Content-Type": "application/json"}).body
    (problem,) = body["problems"]
    assert (problem["path"], problem["line"], problem["column"]) == (
        "nodes[0].config.secs",
        4,
        15,
    )


def test_the_schema_of_documents_is_served(api: Caller) -> None:
    answer = api.send("GET", "/schema.json")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/schema+json"
    schema = answer.body if isinstance(answer.body, dict) else json.loads(answer.body)
    assert schema == document_schema()


def test_the_cycle_is_shown(api: Caller) -> None:
    body = assert_problem(
        api.post("/workflows", document("bad", {"start": "", "a": "start c", "b": "a", "c": "b"})),
        422,
    )
    (problem,) = body["problems"]
    assert all(f"{name}" in problem["message"] for name in "abc")
    assert "start" not in problem["message"]


def test_all_problems_are_told_at_once(api: Caller) -> None:
    nodes = [
        {"id": "a", "handler": "nope", "dependencies": ["nobody"], "timeout_seconds": -1},
        {"id": "b", "handler": "noop", "dependencies": ["b"], "config": {"x": "{{ who }}"}},
    ]
    body = assert_problem(api.post("/workflows", {"nodes": nodes}), 422, "invalid_workflow")
    problems = {(problem["node_id"], problem["code"]) for problem in body["problems"]}
    assert {
        ("a", "unknown_handler"),
        ("a", "unknown_dependency"),
        ("b", "self_dependency"),
    } <= problems
    assert len(body["problems"]) == 5


@pytest.mark.parametrize(
    ("data", "code", "problem_path"), WRONG_TEXTS.values(), ids=WRONG_TEXTS.keys()
)
@pytest.mark.parametrize("path", DOCUMENT_PATHS)
def test_json_that_cannot_be_kept_is_refused_with_its_place(
    api: Caller, path: str, data: bytes, code: str, problem_path: str
) -> None:
    before = api.count()
    body = assert_problem(send(api, path, data), 422)
    assert body["code"] == code
    problem_found = body["problems"][0]["path"]
    assert problem_found.removeprefix("definition.").startswith(problem_path)
    assert api.count() == before


@pytest.mark.parametrize("data", NOT_JSON.values(), ids=NOT_JSON.keys())
@pytest.mark.parametrize("path", [*DOCUMENT_PATHS, "/executions/batch", "/dead-letters/retry"])
def test_what_is_not_json_is_refused(api: Caller, path: str, data: bytes) -> None:
    before = api.count()
    body = assert_problem(api.send("POST", "/api/v1" + path, data, JSON_TYPE), 400, "not_json")
    assert body["problems"][0]["code"] in {"malformed_json", "not_utf8"}
    assert api.count() == before


@pytest.mark.parametrize("depth", [1_000, 100_000, 1_000_000])
@pytest.mark.parametrize("bracket", [b"[]", b'{"a":}'], ids=["lists", "objects"])
@pytest.mark.parametrize("path", [*DOCUMENT_PATHS, "/executions/batch", "/dead-letters/retry"])
def test_json_without_a_bottom_is_refused_at_once(
    api: Caller, path: str, bracket: bytes, depth: int
) -> None:
    opening, closing = bracket[:-1], bracket[-1:]
    data = opening * depth + b"1" + closing * depth
    assert assert_problem(api.send("POST", "/api/v1" + path, data, JSON_TYPE), 422, "too_deep")[
        "problems"
    ]
    unclosed = api.send("POST", "/api/v1" + path, opening * depth, JSON_TYPE)
    assert unclosed.status in {400, 422}
    assert_problem(unclosed, unclosed.status)


@pytest.mark.parametrize("path", [*DOCUMENT_PATHS, "/executions/batch", "/dead-letters/retry"])
@pytest.mark.parametrize(
    "data", [b"", b" \n", b"\xef\xbb\xbf"], ids=["nothing", "blanks", "a byte order mark"]
)
def test_an_empty_body_is_refused(api: Caller, path: str, data: bytes) -> None:
    answer = api.send("POST", "/api/v1" + path, data, JSON_TYPE)
    assert answer.status in {400, 422}
    assert_problem(answer, answer.status)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json"]
)
@pytest.mark.parametrize("path", [*DOCUMENT_PATHS, "/executions/batch", "/executions/x/retry"])
def test_a_body_of_another_type_is_refused_on_loopback(api: Caller, path: str, kind: str) -> None:
    """A web page can send these to a local service without asking."""
    before = api.count()
    data = json.dumps(node()).encode()
    answer = api.send("POST", "/api/v1" + path, data, {"Content-Type": kind})
    assert_problem(answer, 415, "unsupported_media_type")
    assert_problem(api.send("POST", "/api/v1" + path, data), 415, "unsupported_media_type")
    assert api.count() == before


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json ;x=y"]
)
def test_parameters_and_case_of_the_type_do_not_matter(api: Caller, kind: str) -> None:
    data = json.dumps(node(id="typed")).encode()
    assert (
        api.send("POST", "/api/v1/workflows/validate", data, {"Content-Type": kind}).status == 200
    )


@pytest.mark.parametrize(
    "node_id", ["__class__", "__proto__", "__init__", "constructor", "self", "None", "{}", "{0.x}"]
)
def test_ids_that_mean_something_to_a_language_mean_nothing_here(api: Caller, node_id: str) -> None:
    nodes = [
        {"id": node_id, "handler": "echo", "config": {"a": 1, "__class__": 2}},
        {
            "id": "reads",
            "handler": "echo",
            "dependencies": [node_id],
            "config": {"got": f"{{{{ {node_id}.a }}}}"},
        },
        {
            "id": "fails",
            "handler": "echo",
            "dependencies": ["reads"],
            "config": {"x": f"{{{{ {node_id}.__d__ }}}}"},
        },
    ]
    odd = "{" in node_id
    written: dict[str, Any] = {"name": f"reserved {node_id}", "nodes": nodes[:1] if odd else nodes}
    ended = api.ended(written)
    assert ended["nodes"][node_id]["output"] == {"a": 1, "__class__": 2}
    if not odd:
        assert ended["nodes"]["reads"]["output"] == {"got": 1}
        assert "__d__" in ended["nodes"]["fails"]["error"]["message"]


def test_a_document_over_the_limit_is_too_large(api: Caller) -> None:
    before = api.count()
    large = node(config={"text": "x" * 11 * MIB})
    for path, body in (("/workflows", large), ("/executions", {"definition": large})):
        answer = api.post(path, body)
        assert answer.status in {413, 422}
        assert "10,485,760" in assert_problem(answer, answer.status)["detail"]
    assert api.count() == before
    assert (
        api.post("/workflows/validate", node(config={"text": "x" * 9 * MIB})).body["valid"] is True
    )


def test_one_node_too_many_is_too_many(api: Caller) -> None:
    before = api.count()
    nodes = [{"id": f"n{number}", "handler": "noop"} for number in range(100_001)]
    body = assert_problem(
        api.post("/workflows", {"name": "bad", "nodes": nodes}), 422, "invalid_workflow"
    )
    assert "100,000" in body["detail"]
    assert len(body["problems"]) == 1
    assert api.count() == before


def test_of_twenty_thousand_mistakes_the_first_hundred_are_told_and_how_many_more_there_are(
    api: Caller,
) -> None:
    nodes = [
        {"id": f"n{number}", "handler": "nope", "dependencies": ["nobody"]}
        for number in range(10_000)
    ]
    body = assert_problem(api.post("/workflows", {"nodes": nodes}), 422, "invalid_workflow")
    assert len(body["problems"]) == 101
    assert (
        body["problems"][-1]["message"]
        == "and 19,900 more, which aren't listed; correct these first"
    )
    assert len(body["detail"]) < 1000


@pytest.mark.parametrize(
    "path", [*DOCUMENT_PATHS, "/executions/batch", "/dead-letters/retry", "/executions/x/retry"]
)
def test_a_body_over_the_limit_is_refused_with_and_without_its_length(
    api: Caller, path: str
) -> None:
    before = api.count()
    answer = api.send("POST", "/api/v1" + path, b" " * (20 * MIB), JSON_TYPE)
    assert_problem(answer, 413, "body_too_large")
    untold = api.send("POST", "/api/v1" + path, iter([b" " * MIB] * 20), JSON_TYPE)
    assert_problem(untold, 413, "body_too_large")
    assert api.count() == before


ORDERS: dict[str, Any] = {
    "neither": {},
    "both": {"workflow": "x", "definition": node()},
    "workflow is a number": {"workflow": 1},
    "workflow is empty": {"workflow": ""},
    "workflow is null": {"workflow": None},
    "workflow is long": {"workflow": "x" * 2000},
    "definition is text": {"definition": "x"},
    "definition is null": {"definition": None},
    "input is a list": {"definition": node(), "input": []},
    "input is text": {"definition": node(), "input": "x"},
    "labels are a list": {"definition": node(), "labels": []},
    "labels are text": {"definition": node(), "labels": "x"},
    "labels are too many": {"definition": node(), "labels": {str(n): n for n in range(65)}},
    "something more": {"definition": node(), "wait": 3},
    "a list": [],
    "text": "x",
    "null": None,
    "a number": 7,
    "input with a null character": {"definition": node(), "input": {"x": "\0"}},
    "input with a large number": {"definition": node(), "input": {"x": 2**70}},
    "labels with a null character": {"definition": node(), "labels": {"x": "\0"}},
    "workflow with a null character": {"workflow": "a\0b"},
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_an_order_of_the_wrong_shape_is_refused(api: Caller, order: Any) -> None:
    before = api.count()
    body = assert_problem(
        api.send("POST", "/api/v1/executions", json.dumps(order).encode(), JSON_TYPE), 422
    )
    assert body["problems"]
    assert api.count() == before


def test_the_limits_are_settings(tmp_path: Path) -> None:
    limits: dict[str, Any] = {
        "document_max_bytes": 2000,
        "document_max_nodes": 3,
        "document_max_depth": 10,
    }
    with running_service(tmp_path, **limits) as service:
        api = Caller(service.address)
        assert api.post("/workflows", document("three", dict.fromkeys("abc", ""))).status == 201
        four = assert_problem(
            api.post("/workflows", document("four", dict.fromkeys("abcd", ""))), 422
        )
        assert four["problems"][0]["code"] == "too_large"
        deep: Any = {}
        for _ in range(10):
            deep = {"x": deep}
        assert_problem(api.post("/workflows", node(config=deep)), 422)
        assert_problem(api.post("/executions", {"definition": node(config=deep)}), 422)
        for path, body in (
            ("/workflows", node(config={"x": "y" * 2000})),
            ("/executions", {"definition": node(config={"x": "y" * 2000})}),
        ):
            answer = api.post(path, body)
            assert answer.status in {413, 422}
        assert len(api.items("/workflows")) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nowhere"),
        ("PATCH", "/executions"),
        ("GET", "/executions/x/cancel"),
        ("DELETE", "/executions"),
        ("POST", "/workers"),
    ],
)
def test_a_path_or_method_that_there_is_not_is_a_problem_too(
    api: Caller, method: str, path: str
) -> None:
    answer = api.call(method, path)
    assert answer.status in {404, 405}
    assert_problem(
        answer, answer.status, "not_found" if answer.status == 404 else "method_not_allowed"
    )
    assert answer.status == 404 or answer.headers["allow"]
