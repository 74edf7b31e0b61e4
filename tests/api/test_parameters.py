"""Parameters of routes: what is read, what is refused, and what OpenAPI says about them."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from penstock.api import problems
from penstock.api.parameters import Header, Path, Query
from penstock.api.routing import Route, Router
from tests.api.asgi import Answer, call


class Color(Enum):
    RED = "red"
    BLUE = "blue"


Limit = Annotated[int, Query(ge=1, le=500, description="How many.")]
Word = Annotated[str | None, Query(alias="from", min_length=1, max_length=5)]
Tag = Annotated[str | None, Header(alias="X-Tag", pattern="^[a-z]+$")]
Colors = Annotated[list[Color], Query(alias="color", max_length=2)]
router = Router(tags=["things"])


@router.get("/things", summary="Things", responses={200: {"description": "Things"}})
async def things(
    limit: Limit = 50,
    seconds: float = 0.5,
    deep: bool | None = None,  # noqa: FBT001 -- as routes have it
    word: Word = None,
    kind: Literal["old", "new"] = "old",
    colors: Colors = [],  # noqa: B006
    tag: Tag = None,
) -> Response:
    """What is there."""
    values = [limit, seconds, deep, word, kind, colors, tag]
    return Response(msgspec.json.encode(values))


@router.get("/things/{number:int}")
async def thing(number: Annotated[int, Path(ge=1, le=9)], request: Request) -> Response:
    return Response(msgspec.json.encode([number, request.url.path]))


@router.get("/by-uuid/{key:uuid}")
async def by_uuid(key: UUID) -> Response:
    return Response(msgspec.json.encode(str(key)))


@router.get("/search")
async def search(text: str) -> Response:
    return Response(msgspec.json.encode(text))


@router.get("/names/{name:path}")
async def named(name: str) -> Response:
    return Response(msgspec.json.encode(name))


@router.post("/names/{name:path}/copy")
async def copied(name: str) -> Response:
    return Response(msgspec.json.encode(name))


def ask(target: str, headers: dict[str, str] | None = None, method: str = "GET") -> Answer:
    app = Starlette(routes=[router])
    problems.install(app)
    return asyncio.run(call(app, method, target, headers or {}))


def mistakes(answer: Answer) -> list[tuple[str, str]]:
    assert (answer.status, answer.code) == (422, "invalid_request")
    return [(problem["path"], problem["message"]) for problem in answer.json["problems"]]


def test_what_is_not_sent_has_its_default():
    assert ask("/things").json == [50, 0.5, None, None, "old", [], None]


def test_values_are_converted_as_their_types_say():
    target = "/things?limit=7&seconds=1&deep=YES&from=a&kind=new&color=red&color=blue"
    answer = ask(target, {"X-Tag": "x"})
    assert answer.json == [7, 1.0, True, "a", "new", ["red", "blue"], "x"]


def test_of_a_value_that_is_sent_twice_the_last_counts():
    assert ask("/things?limit=abc&limit=3").json[0] == 3


def test_each_request_gets_a_list_of_its_own():
    assert ask("/things?color=red").json[5] == ["red"]
    assert ask("/things").json[5] == []


INTEGER = "it must be an integer from 1 to 500"
WORD = "it must be text of 1 to 5 characters"


@pytest.mark.parametrize(
    ("query", "path", "message"),
    [
        ("limit=", "query.limit", INTEGER),
        ("limit=0", "query.limit", INTEGER),
        ("limit=501", "query.limit", INTEGER),
        ("limit=1.5", "query.limit", INTEGER),
        ("limit=%2B5", "query.limit", INTEGER),
        ("limit=" + "9" * 5000, "query.limit", INTEGER),
        ("limit=null", "query.limit", INTEGER),
        ("seconds=x", "query.seconds", "it must be a number"),
        ("deep=maybe", "query.deep", "it must be true or false"),
        ("from=", "query.from", WORD),
        ("from=toolong", "query.from", WORD),
        ("kind=older", "query.kind", "it must be one of new, old"),
        ("color=red&color=green", "query.color.1", "it must be one of blue, red"),
        ("color=red&color=red&color=red", "query.color", "there are 3 of them, and at most 2"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(query: str, path: str, message: str):
    [(at, text)] = mistakes(ask(f"/things?{query}"))
    assert at == path
    assert text.startswith(message)


def test_every_mistake_is_named_at_once():
    answer = ask("/things?limit=x&deep=x", {"X-Tag": "7"})
    assert [path for path, _ in mistakes(answer)] == ["query.limit", "query.deep", "header.X-Tag"]


def test_the_end_of_a_pattern_is_the_end_of_the_value():
    """In Python, `$` also matches before a line end."""
    pattern = Annotated[str | None, Query(pattern="^[a-z]+$")]
    lines = Router()

    async def show(word: Any = None) -> Response:
        return Response(msgspec.json.encode(word))

    show.__annotations__["word"] = pattern
    lines.add("GET", "/", show)
    app = Starlette(routes=[lines])
    problems.install(app)
    assert asyncio.run(call(app, "GET", "/?word=abc")).json == "abc"
    assert asyncio.run(call(app, "GET", "/?word=abc%0A")).status == 422


def test_a_value_that_is_required_is_named():
    assert mistakes(ask("/search")) == [("query.text", "it is required")]
    assert ask("/search?text=").json == "", "empty is not missing"


@pytest.mark.parametrize("number", ["0", "10", "9" * 5000])
def test_a_number_in_the_path_has_its_limits(number: str):
    assert ask("/things/7").json == [7, "/things/7"]
    expected = ("path.number", "it must be an integer from 1 to 9")
    assert mistakes(ask(f"/things/{number}")) == [expected]


def test_a_path_that_the_route_does_not_match_is_not_found():
    assert ask("/things/x").status == 404
    assert ask("/by-uuid/x").status == 404
    key = "6f2c1f54-6a1a-4b6b-8b3a-3d6cf28f6a11"
    assert ask(f"/by-uuid/{key}").json == key


def test_the_first_route_for_a_method_and_a_path_answers():
    assert ask("/names/a/copy").json == "a/copy"
    assert ask("/names/a/copy", method="POST").json == "a"
    refused = ask("/names/a", method="DELETE")
    assert (refused.status, refused.headers["allow"]) == (405, "GET")
    assert ask("/names/a", method="HEAD").status == 405


def test_a_route_is_described_by_its_signature():
    described = router.routes[0].describe()
    assert described["tags"] == ["things"]
    assert described["description"] == "What is there."
    assert described["responses"] == {"200": {"description": "Things"}}
    by_name = {parameter["name"]: parameter for parameter in described["parameters"]}
    assert by_name["limit"] == {
        "name": "limit",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
        "description": "How many.",
    }
    assert by_name["X-Tag"]["in"] == "header"
    text = {"type": "string", "pattern": "^[a-z]+$"}
    assert by_name["X-Tag"]["schema"] == {"anyOf": [text, {"type": "null"}]}
    assert by_name["color"]["schema"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/Color"},
        "maxItems": 2,
        "default": [],
    }


def test_a_parameter_of_the_path_that_the_function_does_not_take_is_refused():
    async def nothing() -> Response:
        return Response()

    with pytest.raises(TypeError, match="doesn't take name"):
        Route("GET", "/names/{name}", nothing, {})


def test_a_list_whose_rules_would_be_ignored_is_refused():
    async def show(word: Annotated[list[str], Query(pattern="^a$")] = []) -> Response:  # noqa: B006
        return Response(b"".join(text.encode() for text in word))

    with pytest.raises(TypeError, match="word is a list"):
        Route("GET", "/words", show, {})
