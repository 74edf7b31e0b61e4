"""Request bodies: a limit on the size, strict JSON, then a check against a JSON Schema.

It is the schema that the OpenAPI document shows, so the description and the check can't disagree.
Unlike parameters, which are text, bodies are read strictly: `"1"` isn't 1.
"""

from __future__ import annotations

import asyncio
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from penstock.api.problems import Refused
from penstock.definition.parse import FUNCTION, Limits, decode_in_pieces, parse
from penstock.definition.problems import Problem
from penstock.definition.schema import compile_schema
from penstock.errors import InvalidWorkflow
from penstock.sandbox import Job, Overrun, Sandbox, call

MIB = 1024 * 1024
ROOM_BYTES = 6 * MIB
"""How much larger than the largest document a body may be.

So a document that is too large gets its own error.
"""
LARGE_BYTES = 256 * 1024
"""A body of this size is parsed in a thread, as it would block the event loop."""
MANY_VALUES = 20_000
"""A large body with more values is checked in the sandbox.

`json` lets no other thread run until it is done.
"""
VET_SECONDS = 20.0
MALFORMED = ("malformed_json", "not_utf8")


class Bodies:
    """Reads and checks request bodies."""

    def __init__(self, limits: Limits, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._bytes_max = limits.max_bytes + ROOM_BYTES
        self._whole = Limits(self._bytes_max, limits.max_nodes, limits.max_depth + 4)
        """The limits of a whole body."""
        self._large_turn = asyncio.Lock()
        """Large bodies are parsed one after another.

        So the event loop shares the interpreter with one thread only.
        """
        self._validators: dict[str, Any] = {}

    async def read(
        self, request: Request, schema: Mapping[str, Any] | None = None, *, empty: Any = None
    ) -> Any:
        """The body as JSON; if there is none, `empty`, unless that is None. Raises `Refused`."""
        value, _ = await self.read_with_text(request, schema, empty=empty)
        return value

    async def read_with_text(
        self, request: Request, schema: Mapping[str, Any] | None = None, *, empty: Any = None
    ) -> tuple[Any, bytes]:
        """The body as JSON, as `read` has it, and its text."""
        try:
            data = await self._bytes(request)
        except ClientDisconnect:
            # nobody reads the answer, but metrics and the audit log have it
            raise Refused(
                400, "incomplete_body", "the connection ended before the body was complete"
            ) from None
        if not data and empty is not None:
            return empty, data
        try:
            value = await self._parse(data, request)
        except InvalidWorkflow as error:
            raise refused(error) from None
        if schema is not None:
            self.check(value, schema)
        return value, data

    async def _parse(self, data: bytes, request: Request) -> Any:
        """The body as JSON. Raises `InvalidWorkflow`."""
        if len(data) < LARGE_BYTES:
            return parse(data, limits=self._whole)
        if data.count(b",") + data.count(b":") < MANY_VALUES:
            async with self._large_turn:
                return await asyncio.to_thread(parse, data, limits=self._whole)
        await self._vet(data, request)
        async with self._large_turn:
            return await asyncio.to_thread(decode_in_pieces, data.removeprefix(BOM_UTF8))

    async def _vet(self, data: bytes, request: Request) -> None:
        caller = request.scope.get("penstock.caller")
        turn = caller.key_id if caller else ""
        limits = msgspec.msgpack.encode(self._whole)
        job = Job(FUNCTION, [data, limits], turn=turn, seconds=VET_SECONDS)
        try:
            result = await call(self._sandbox, job)
            problems = msgspec.msgpack.decode(result, type=list[Problem])
        except Overrun as error:
            message = f"the body has {len(data):,} bytes and can't be read: {error}"
            problems = [Problem("too_large", "", message)]
        if problems:
            raise InvalidWorkflow(problems)

    async def _bytes(self, request: Request) -> bytes:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._bytes_max:
            self._too_large()

        parts: list[bytes] = []
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > self._bytes_max:
                self._too_large()
            parts.append(part)
        return b"".join(parts)

    def _too_large(self) -> None:
        raise Refused(
            413,
            "body_too_large",
            f"the body has more than {self._bytes_max:,} bytes, which is the limit",
        )

    def check(self, value: Any, schema: Mapping[str, Any]) -> None:
        """Check a body against its schema. Raises `Refused` with every mistake."""
        validator = self._validators.get(schema["title"])
        if validator is None:
            validator = self._validators[schema["title"]] = compile_schema(schema)
        if validator.is_valid(value):
            return
        mistakes = validator.explain(value)
        raise invalid_request((_path(mistake.path), mistake.message) for mistake in mistakes)


def refused(error: InvalidWorkflow) -> Refused:
    """The refusal of a body that isn't JSON, or has values that can't be stored."""
    first = error.problems[0]
    problems = list(error.problems)
    if first.code in MALFORMED:
        return Refused(400, "not_json", first.message, problems=problems)
    return Refused(422, first.code, first.message, problems=problems)


def invalid_request(errors: Iterable[tuple[str, str]]) -> Refused:
    """The refusal of a request with these mistakes, each a path and a message."""
    problems = [Problem("invalid_request", path, message[:500]) for path, message in errors]
    texts = [f"{problem.path or 'the body'}: {problem.message}" for problem in problems[:3]]
    return Refused(422, "invalid_request", "; ".join(texts), problems=problems)


def _path(steps: Iterable[Any]) -> str:
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    return "".join(parts).lstrip(".")


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    body = msgspec.json.encode(value)
    return Response(body, status, dict(headers) if headers else None, "application/json")
