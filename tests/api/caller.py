"""A client that sends a request exactly as it is written.

No library normalises its path or its body on the way.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from tests.waiting import until_now

PATIENCE_SECONDS = 60.0
JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: Any


class Caller:
    def __init__(self, address: str) -> None:
        self.address = address
        self._netloc = urlsplit(address).netloc

    def send(
        self,
        method: str,
        target: str,
        data: bytes | Iterator[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """`target` is a path with its query, as it goes on the wire.

        An iterator is sent without a length.
        """
        connection = http.client.HTTPConnection(self._netloc, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, target, data, dict(headers or {}))
            response = connection.getresponse()
            return _answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """Call the API with JSON.

        An underscore at the end of a query parameter is for Python: `from_` is `from`.
        """
        target = "/api/v1" + path
        if query:
            target += "?" + urlencode(
                {key.rstrip("_"): _text(value) for key, value in query.items()}, doseq=True
            )
        data = b"" if body is None else json.dumps(body).encode()
        return self.send(
            method,
            target,
            data,
            {**({"Content-Type": JSON_TYPE} if data else {}), **(headers or {})},
        )

    def get(self, path: str, **query: Any) -> Answer:
        return self.call("GET", path, **query)

    def post(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Answer:
        return self.call("POST", path, body, headers, **query)

    def put(self, path: str, body: Any = None) -> Answer:
        return self.call("PUT", path, body)

    def delete(self, path: str) -> Answer:
        return self.call("DELETE", path)

    def shown(self, path: str, **query: Any) -> Any:
        """What a GET answers, which must be a success."""
        answer = self.get(path, **query)
        assert answer.status == 200, answer
        return answer.body

    def items(self, path: str, **query: Any) -> list[Any]:
        """Of all pages."""
        listed: list[Any] = []
        while True:
            page = self.shown(path, **query)
            assert page.keys() == {"items", "next_cursor"}
            listed += page["items"]
            if page["next_cursor"] is None:
                return listed
            query["cursor"] = page["next_cursor"]

    def store(self, document: Mapping[str, Any], **query: Any) -> dict[str, Any]:
        answer = self.post("/workflows", document, **query)
        assert answer.status in {200, 201}, answer
        stored: dict[str, Any] = answer.body
        return stored

    def start(self, workflow: str | Mapping[str, Any], **fields: Any) -> str:
        key = "workflow" if isinstance(workflow, str) else "definition"
        answer = self.post("/executions", {key: workflow, **fields})
        assert answer.status == 201, answer
        return str(answer.body["execution_id"])

    def state(self, execution_id: str) -> str:
        return str(self.shown(f"/executions/{execution_id}")["state"])

    def until_state(self, execution_id: str, *states: str) -> dict[str, Any]:
        """The execution, once it is in one of these states."""

        def look() -> dict[str, Any] | None:
            execution: dict[str, Any] = self.shown(f"/executions/{execution_id}")
            return execution if execution["state"] in states else None

        seen: dict[str, Any] = until_now(look, f"{execution_id} is {states}")
        return seen

    def ended(self, workflow: str | Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        """Start it and wait for its end."""
        return self.until_state(self.start(workflow, **fields), "COMPLETED", "FAILED", "CANCELLED")

    def count(self) -> tuple[int, int]:
        """How many workflows and executions there are."""
        return len(self.items("/workflows", limit=500)), len(self.items("/executions", limit=500))


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _answer(status: int, headers: dict[str, str], data: bytes) -> Answer:
    named = {name.lower(): value for name, value in headers.items()}
    kind = named.get("content-type", "").partition(";")[0]
    return Answer(
        status, named, json.loads(data) if data and kind in {JSON_TYPE, PROBLEM_TYPE} else data
    )


def segment(text: str) -> str:
    """As one part of a path."""
    return quote(text, safe="")


def at_once(count: int, work: Any) -> list[Any]:
    """What `work` answers for each number, all called at the same time."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def assert_problem(answer: Answer, status: int, code: str | None = None) -> dict[str, Any]:
    """RFC 9457, with our `code`."""
    assert answer.status == status, answer
    assert answer.headers["content-type"] == PROBLEM_TYPE
    body: dict[str, Any] = answer.body
    assert body["status"] == status
    assert body["type"]
    assert body["title"]
    assert body["detail"]
    assert body["code"].replace("_", "").islower(), body["code"]
    if code is not None:
        assert body["code"] == code, body
    for problem in body.get("problems") or ():
        assert problem.keys() - {"line", "column"} == {"code", "path", "message", "node_id"}
        assert problem["code"]
        assert problem["message"]
    return body


def document(
    name: str | None, edges: Mapping[str, str], handler: str = "echo", **fields: Any
) -> dict[str, Any]:
    """`{"a": "", "b": "a", "d": "b c"}`: nodes with their dependencies."""
    nodes = [
        {"id": node, "handler": handler, "dependencies": parents.split()}
        for node, parents in edges.items()
    ]
    return {**({"name": name} if name is not None else {}), "nodes": nodes, **fields}


def failing(name: str, **config: Any) -> dict[str, Any]:
    """`a` completes, `bad` fails at its only attempt, `after` is never reached."""
    nodes = [
        {"id": "a", "handler": "echo", "config": {"n": 1}},
        {
            "id": "bad",
            "handler": "fail",
            "dependencies": ["a"],
            "config": config,
            "retry": {"max_attempts": 1},
        },
        {"id": "after", "handler": "noop", "dependencies": ["bad"]},
    ]
    return {"name": name, "nodes": nodes}
