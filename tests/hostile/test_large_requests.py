"""Requests with many values, and schemas that take long.

They are checked in a process beside the one that answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.app import create_app
from penstock.config import Settings
from penstock.definition.parse import FUNCTION as PARSE
from penstock.definition.parse import decode_in_pieces
from penstock.definition.read import content_hash, dump_document
from penstock.definition.schema import FUNCTION as CHECK
from penstock.runtime import Engine
from penstock.sandbox import InlineSandbox, Job, Overrun
from penstock.service.fleet import EmbeddedFleet
from tests.api.asgi import Answer, call

JSON = {"content-type": "application/json", "authorization": ""}
NODES = [{"id": "a", "handler": "noop"}]
MANY = ",".join(f'"k{i:09}": [{i}]' for i in range(30_000))
"""Half a megabyte of values."""


class Recording(InlineSandbox):
    """Writes down what it is asked to do."""

    def __init__(self, overrun: str = "") -> None:
        self.functions: list[str] = []
        self._overrun = overrun

    async def run(self, job: Job) -> AsyncIterator[bytes]:
        self.functions.append(job.function)
        if self._overrun:
            raise Overrun(self._overrun)
        async for answer in super().run(job):
            yield answer


async def post(body: bytes, sandbox: Recording, path: str = "/api/v1/executions") -> Answer:
    settings = Settings()
    async with Engine("memory://", settings=settings, sandbox=sandbox) as engine:
        fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
        app = create_app(engine.service, fleet, settings, version="1")
        return await call(
            app, "POST", path, {"content-type": "application/json"}, body=body, client="127.0.0.1"
        )


def sent(input_text: str, **document: Any) -> bytes:
    definition = json.dumps({"name": "large", "nodes": NODES, **document})
    return f'{{"definition": {definition}, "input": {input_text}}}'.encode()


def test_a_body_with_many_values_is_checked_beside_the_loop():
    sandbox = Recording()
    answer = asyncio.run(post(sent(f"{{{MANY}}}"), sandbox))
    assert answer.status == 201
    assert sandbox.functions == [PARSE]


def test_a_body_with_few_values_is_not():
    sandbox = Recording()
    assert asyncio.run(post(sent(json.dumps({"text": "x" * 500_000})), sandbox)).status == 201
    assert sandbox.functions == []


@pytest.mark.parametrize(
    ("wrong", "status", "code", "path"),
    [
        ('"b": 1, "b": 2', 422, "duplicate_key", "input.b"),
        ('"b": "\\u0000"', 422, "null_character", "input.b"),
        ('"b": NaN', 422, "not_finite", "input.b"),
        ('"b": 9999999999999999999999', 422, "number_too_large", "input.b"),
        ('"b": ' + "[" * 100 + "]" * 100, 422, "too_deep", ""),
        ('"b": ', 400, "not_json", ""),
        ('"b": "' + "1,:" * 400_000 + '"', 201, "", ""),
    ],
)
def test_what_is_wrong_in_a_large_body_is_told_as_in_a_small_one(
    wrong: str, status: int, code: str, path: str
):
    small, large = (
        asyncio.run(post(sent(f"{{{prefix}{wrong}}}"), Recording())) for prefix in ("", f"{MANY},")
    )
    assert small.status == large.status == status
    if code:
        assert small.json["code"] == large.json["code"] == code
        assert large.json["problems"][0]["path"].startswith(path)
        assert (
            small.json["problems"][0]["message"][:20] == large.json["problems"][0]["message"][:20]
        )


def test_a_body_that_goes_over_the_limits_is_refused():
    answer = asyncio.run(
        post(sent(f"{{{MANY}}}"), Recording(overrun="it needed more than 384 MiB of memory"))
    )
    assert (answer.status, answer.code) == (422, "too_large")
    assert "it needed more than 384 MiB" in answer.json["detail"]


PATTERN = {"properties": {"s": {"pattern": "^((a|b|c|d)+)+(a*)*y$"}}}


@pytest.mark.parametrize(
    "schema", [PATTERN, {"properties": {"s": {"pattern": "^[a-z]{1,9000}y$"}}}]
)
def test_a_large_input_is_checked_against_its_schema_beside_the_loop(schema: dict[str, Any]):
    sandbox = Recording()
    answer = asyncio.run(
        post(sent(json.dumps({"s": "abcd" * 40_000}), input_schema=schema), sandbox)
    )
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert sandbox.functions == [CHECK]


def test_a_schema_that_takes_long_to_compile_is_compiled_beside_the_loop():
    sandbox = Recording()
    schema = {"properties": {"s": {"pattern": "^[a-z]{1,9000}y$"}}}
    answer = asyncio.run(post(sent('{"s": "a"}', input_schema=schema), sandbox))
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert sandbox.functions == [CHECK]


def test_a_small_input_is_checked_at_once():
    sandbox = Recording()
    assert asyncio.run(post(sent('{"s": "ay"}', input_schema=PATTERN), sandbox)).status == 201
    assert (
        asyncio.run(post(sent('{"s": "a"}', input_schema=PATTERN), sandbox)).code == "invalid_input"
    )
    assert sandbox.functions == []


def test_an_input_that_takes_too_long_to_check_does_not_fit():
    sandbox = Recording(overrun="it took more than 2 s of computing time")
    answer = asyncio.run(
        post(sent(json.dumps({"s": "abcd" * 40_000}), input_schema=PATTERN), sandbox)
    )
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert "it can't be checked against its schema: it took more than 2 s" in answer.json["detail"]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON_VALUES, st.sampled_from([None, 1]), st.booleans())
def test_pieces_give_what_the_whole_gives(value: Any, indent: int | None, ascii_only: bool):  # noqa: FBT001
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode(
        "utf-8", "surrogatepass"
    )
    with patch("penstock.definition.parse.PIECE_BYTES", 8):
        assert decode_in_pieces(text) == value


@given(JSON_VALUES)
def test_a_document_is_written_and_hashed_as_before(value: Any):

    sorted_text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert content_hash(value) == sha256(sorted_text.encode("utf-8", "surrogatepass")).hexdigest()
    assert dump_document(value) == json.dumps(value, ensure_ascii=False).encode()
