"""Bad requests to the compatible routes.

They get 4xx with the reasons, never 5xx, and nothing is stored.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.api.describing import openapi_document
from penstock.api.routing import routes_of
from tests.api.compat_app import PREFIXES, Answer, node, serving

PROBLEM = "application/problem+json"


def document(*nodes: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "flow", "dag": {"nodes": list(nodes)}, **fields}


def check_problem(answer: Answer, *statuses: int) -> None:
    assert answer.status in statuses, answer
    assert answer.headers["content-type"] == PROBLEM
    assert answer.body["status"] == answer.status
    assert answer.body["code"]
    assert answer.body["detail"]


INVALID: dict[str, tuple[Any, set[str]]] = {
    "empty workflow": (document(), {"empty_workflow"}),
    "no nodes": ({"name": "x"}, set()),
    "cycle": (document(node("a", "b"), node("b", "a")), {"cycle"}),
    "self dependency": (document(node("a", "a")), {"self_dependency"}),
    "duplicate id": (document(node("a"), node("a")), {"duplicate_id"}),
    "unknown dependency": (document(node("a", "ghost")), {"unknown_dependency"}),
    "unknown handler": (document(node("a", handler="ecco")), {"unknown_handler"}),
    "unknown reference": (document(node("a", config={"x": "{{ ghost.y }}"})), set()),
    "several at once": (
        document(node("a", "ghost"), node("b", "b")),
        {"unknown_dependency", "self_dependency"},
    ),
    "bad retry": (document(node("a", retry={"max_attempts": 0})), set()),
    "bad timeout": (document(node("a", timeout_seconds=-1)), set()),
    "malformed template": (document(node("a", config={"x": "{{ a..b }}"})), set()),
    "nodes of numbers": (document(1, None, "x"), set()),
    "dag is a list": ({"name": "x", "dag": []}, set()),
    "name is a number": (document(node("a"), name=5), set()),
    "null character": (document(node("a", config={"x": "\0"})), {"null_character"}),
    "lone surrogate": (b'{"nodes": [{"id": "\\ud800", "handler": "echo"}]}', {"lone_surrogate"}),
    "huge integer": (
        b'{"nodes": [{"id": "a", "handler": "echo", "config": {"x": 1%s}}]}' % (b"0" * 5000),
        set(),
    ),
    "a list": ([document(node("a"))], set()),
    "text": ("workflow", set()),
    "null": (b"null", set()),
    "no body": (None, set()),
    "blank": (b"  \n", set()),
    "not JSON": (b'{"nodes": [', set()),
    "not UTF-8": (b'{"name": "\xff"}', set()),
    "NaN": (b'{"nodes": [{"id": "a", "handler": "echo", "config": {"x": NaN}}]}', {"not_finite"}),
    "duplicate keys": (b'{"name": "a", "name": "b", "nodes": []}', {"duplicate_key"}),
    "100,000 deep": (b'{"nodes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", {"too_deep"}),
    "100 deep": (b'{"nodes": ' + b"[" * 100 + b"]" * 100 + b"}", {"too_deep"}),
}


@pytest.mark.parametrize(("body", "codes"), INVALID.values(), ids=INVALID)
def test_a_wrong_document_is_refused_with_every_reason_and_not_stored(tmp_path, body, codes):
    async def story() -> None:
        async with serving(tmp_path) as client:
            for path in (*(f"{prefix}/workflow" for prefix in PREFIXES), "/workflows"):
                answer = await client.call("POST", path, body)
                check_problem(answer, 400)
                problems = answer.body.get("problems", [])
                assert codes <= {problem["code"] for problem in problems}
                for problem in problems:
                    names = problem.keys() - {"line", "column"}
                    assert names == {"code", "path", "message", "node_id"}
            assert await client.is_empty()

    asyncio.run(story())


def test_a_body_that_is_too_large_is_refused(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            check_problem(
                await client.call("POST", "/workflow", b'"' + b"x" * 17 * 2**20 + b'"'), 413
            )
            assert await client.is_empty()

    asyncio.run(story())


BODIES: dict[str, Any] = {
    "a list": [1],
    "text": "x",
    "a number": 7,
    "params is a list": {"params": [1]},
    "input is text": {"input": "x"},
    "input_params is a number": {"input_params": 0},
    "node_params is a list": {"node_params": []},
    "node_params is false": {"node_params": False},
    "a null character": {"params": {"x": "\0"}},
    "a lone surrogate": b'{"params": {"x": "\\udfff"}}',
    "a huge integer": b'{"params": {"x": 1%s}}' % (b"0" * 30),
    "NaN": b'{"params": {"x": NaN}}',
    "duplicate keys": b'{"params": {}, "params": {"x": 1}}',
    "too deep": b'{"params": {"x": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
    "cut off": b'{"params": ',
    "not UTF-8": b"\xff\xfe",
    "blank": b"   ",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_trigger_with_a_wrong_body_starts_nothing(tmp_path, body):
    async def story() -> None:
        async with serving(tmp_path) as client:
            name = await client.submit(node("a"))
            for prefix in PREFIXES:
                for path in (
                    f"{prefix}/workflow/trigger/{name}",
                    f"{prefix}/workflows/{name}/trigger",
                ):
                    check_problem(await client.call("POST", path, body), 400)
            assert (await client.get(f"/workflow/{name}"))["status"] == "PENDING"
            assert (await client.trigger(name)).status == 200
            await client.reach(name, "COMPLETED")

    asyncio.run(story())


OF_EXECUTIONS = [
    ("POST", "/workflow/trigger/{}"),
    ("POST", "/workflows/{}/trigger"),
    ("GET", "/workflow/{}"),
    ("GET", "/workflow/{}/results"),
    ("GET", "/workflows/{}"),
    ("GET", "/workflows/{}/results"),
    ("DELETE", "/workflow/{}"),
]
OF_DEAD_LETTERS = [("POST", "/admin/dlq/{}/retry"), ("DELETE", "/admin/dlq/{}")]
IDS = [
    "00000000-0000-7000-8000-000000000000",
    "nope",
    "trigger",
    "results",
    "__class__",
    "' OR 1=1 --",
    "%",
    "*",
    "..",
    "../../etc/passwd",
    "a/b",
    "a\0b",
    "a\nb",
    "\x1b[31m",
    "{{ secrets.KEY }}",
    "<script>alert(1)</script>",
    "é" * 100,
    "\ud800",
    "x" * 5000,
    "-1",
    "0",
    "1e3",
    "²",
    "9" * 18,
    "9" * 19,
    "9" * 5000,
    str(2**63),
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_unknown_id_is_not_found_however_odd_it_is(tmp_path, prefix):
    async def story() -> None:
        async with serving(tmp_path) as client:
            for method, path in [*OF_EXECUTIONS, *OF_DEAD_LETTERS]:
                check_problem(await client.call(method, prefix + path.format(IDS[0])), 404)
                for name in IDS:
                    check_problem(await client.call(method, prefix + path.format(name)), 404, 405)
            assert await client.is_empty()

    asyncio.run(story())


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=x", "limit=99999999", "cursor=%00", "cursor=x", "cursor=é"],
)
def test_dead_letters_with_parameters_that_make_no_sense(tmp_path, query):
    async def story() -> None:
        async with serving(tmp_path) as client:
            for prefix in PREFIXES:
                check_problem(await client.call("GET", f"{prefix}/admin/dlq", query=query), 400)

    asyncio.run(story())


def test_each_route_is_described_once_with_its_errors(tmp_path):
    async def story() -> None:
        async with serving(tmp_path) as client:
            paths = openapi_document(routes_of(client.app), "1")["paths"]
            assert {path for path in paths if not path.startswith("/api/v1")} == {"/v1/health"}
            operations = [operation for path in paths.values() for operation in path.values()]
            ids = [operation["operationId"] for operation in operations]
            assert len(set(ids)) == len(ids) == 9
            assert all(name.startswith("compat_") for name in ids)
            for operation in operations:
                assert {"400", "401", "403", "429", "500", "503"} <= set(operation["responses"])
                for status, answer in operation["responses"].items():
                    assert list(answer["content"]) == [
                        "application/json" if status < "300" else PROBLEM
                    ]

    asyncio.run(story())
