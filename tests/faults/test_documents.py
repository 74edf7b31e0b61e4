"""Documents that are none, over HTTP: a 4xx that says where, nothing stored, never a 5xx (G7)."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller
from tests.api.test_documents import (
    DOCUMENT_PATHS,
    JSON_TYPE,
    NOT_JSON,
    WRONG_SHAPES,
    WRONG_TEXTS,
    send,
)
from tests.api_server import running_service
from tests.faults.table import Fault

DEEP = 100_000
GOOD: dict[str, Any] = {
    "name": "good",
    "description": "fine",
    "timeout_seconds": 60,
    "on_failure": "continue",
    "input": {"x": 1},
    "labels": {"team": "one"},
    "defaults": {"retry": {"max_attempts": 2}},
    "nodes": [
        {
            "id": "a",
            "handler": "echo",
            "config": {"x": "{{ input.x ?? 1 }}"},
            "retry": {"max_attempts": 1},
        },
        {
            "id": "b",
            "handler": "echo",
            "dependencies": ["a"],
            "condition": "a.x > 0",
            "trigger_rule": "all_done",
            "config": {"deep": [{"y": "{{ a.x }}"}]},
            "timeout_seconds": 5,
            "queue": "q",
            "optional": True,
        },
    ],
}
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    -(2**63) - 1,
    10**400,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "\x1b[2J",
    "a\r\nb",
    "x" * 300,
    "__class__",
    "__proto__",
    "{{",
    "}}",
    "{{ }}",
    "{{ a.__class__ }}",
    "{{ secrets.X }}",
    "a",
    "{{ a" + "[0]" * 50,
    [],
    [[]],
    [None],
    ["a", "a"],
    {},
    {"": 1},
    {"__class__": {}},
    {"$ref": "#"},
    float("nan"),
    float("inf"),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with running_service(tmp_path_factory.mktemp("documents"), rate_limit="off") as service:
        yield Caller(service.address)


def _written() -> Iterator[tuple[bytes, bool]]:
    """Each with whether it has a place that a problem could name."""
    for shape, _ in WRONG_SHAPES.values():
        yield json.dumps(shape).encode(), isinstance(shape, dict) and len(shape) > 1
    for text, *_ in WRONG_TEXTS.values():
        yield text, True
    for text in NOT_JSON.values():
        yield text, False
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        yield opening * DEEP + b"1" + closing * DEEP, True
        yield opening * DEEP, False


@pytest.mark.fault(
    "documents",
    "cycles, duplicates, reserved ids, JSON 100,000 deep, NaN, huge integers, surrogates, NUL …",
)
def test_whatever_is_no_document_is_refused_with_its_place_and_nothing_is_stored(
    fault: Fault, api: Caller
) -> None:
    before = api.count()
    refused = Counter[int]()
    documents = list(_written())
    for path in DOCUMENT_PATHS[:2]:
        for data, has_path in documents:
            answer = send(api, path, data)
            assert 400 <= answer.status < 500, (path, data[:100], answer)
            problems = answer.body["problems"]
            assert problems, (path, data[:100], answer)
            assert not has_path or any(map(_has_path, problems)), (path, data[:100], answer)
            refused[answer.status] += 1
    assert api.count() == before
    figures: dict[str, int] = {
        f"answered_{status}": count for status, count in sorted(refused.items())
    }
    fault.shows(documents=len(documents), sent=refused.total(), **figures, answered_5xx=0, stored=0)


def _has_path(problem: dict[str, Any]) -> bool:
    """JSON that is too deep has no path yet: where in the text it is so is said instead."""
    return bool(problem["path"]) or "line 1, column" in problem["message"]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key in (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield from _paths(value[key], (*path, key))


def _spoilt(choose: random.Random) -> Any:
    """The good document, with something else in one to three of its places."""
    document = json.loads(json.dumps(GOOD))
    for _ in range(choose.randint(1, 3)):
        path = choose.choice([candidate for candidate in _paths(document) if candidate])
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        if isinstance(inner, dict) and choose.random() < 0.2:
            inner[choose.choice(("", "__class__", "id", "nodes", "x\0", "\udfff"))] = inner.pop(
                path[-1]
            )
        else:
            # or one may come to stand in itself
            inner[path[-1]] = copy.deepcopy(choose.choice(HOSTILE))
    return document


@pytest.mark.fault(
    "documents", "a good document with hostile values in one to three of its places, at random"
)
def test_a_spoilt_document_is_taken_or_refused_and_never_an_error_of_ours(
    fault: Fault, api: Caller
) -> None:
    choose, answered = fault.choices(), Counter[int]()
    for _ in range(fault.size(short=100, full=5000)):
        data = json.dumps(_spoilt(choose)).encode()
        before = len(api.items("/workflows", limit=500)) if answered.total() % 20 == 0 else None
        answer = api.send("POST", "/api/v1/workflows", data, JSON_TYPE)
        assert answer.status in (200, 201, 400, 422), (data, answer)
        if before is not None and answer.status >= 400:
            assert len(api.items("/workflows", limit=500)) == before, data
        answered[answer.status] += 1
    assert answered[422] > 0
    taken = answered[200] + answered[201]
    fault.shows(
        documents=answered.total(), refused=answered.total() - taken, taken=taken, answered_5xx=0
    )


@pytest.mark.fault("documents", "ids such as __class__, used and referred to")
def test_ids_that_mean_something_elsewhere_are_names_like_others(
    fault: Fault, api: Caller, tmp_path: Path
) -> None:
    names = (
        "__class__",
        "__proto__",
        "__init__",
        "__globals__",
        "constructor",
        "self",
        "None",
        "prototype",
    )
    for name in names:
        first = {"id": name, "handler": "echo", "config": {"x": 1}}
        second = {
            "id": "b",
            "handler": "echo",
            "dependencies": [name],
            "config": {"got": f"{{{{ {name}.x }}}}"},
        }
        third = {**second, "id": "c", "config": {"got": f"{{{{ {name}.__class__ }}}}"}}
        ended = api.ended(
            {"name": f"odd {name}", "on_failure": "continue", "nodes": [first, second, third]}
        )
        assert ended["nodes"]["b"]["output"] == {"got": 1}
        assert "has no key '__class__'" in ended["nodes"]["c"]["error"]["message"]
    fault.shows(ids=len(names), attributes_read=0)
