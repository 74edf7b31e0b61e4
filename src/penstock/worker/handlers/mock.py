"""Mocks of the two handlers that call other services (`PENSTOCK_MOCK_SERVICES=1`, `--mock`).

Their outputs are marked `"mock": true`. They check the config as the real handlers do, call
nothing, and give the same answer for the same config. What a real call needs (`url`, `prompt`) may
be missing: documents that were only ever tried with mocks leave it out. A host called `fail`, or
whose name begins with `fail-`, answers 503, so that failures can be tried too.
`PENSTOCK_MOCK_SECONDS` makes each call take that long.

An HTTP answer's `data` has the fields that documents usually ask for (id, name, title, status,
items, ...), and over them whatever the call itself sent in `params`, `json` or an object as `body`.
An LLM's answer repeats the start of the prompt; with `response_schema` it is a small value that
fits. With `tools` it calls the first of them, or the one that `tool_choice` names, with small
arguments that fit; once the messages end with a tool's answer, it is a text.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from penstock.definition.llm_messages import function_name
from penstock.engine.reasons import ErrorCategory
from penstock.errors import Terminal
from penstock.worker.context import Context
from penstock.worker.handlers import http
from penstock.worker.handlers.http_exchange import Request, Response, failure, shown_url
from penstock.worker.handlers.llm_reply import WrongReply, checked
from penstock.worker.handlers.llm_request import Call, as_text, read_config
from penstock.worker.handlers.samples import sample

EXCERPT_CHARACTERS = 200
NO_URL = "http://mock.invalid/"
_FAILING = re.compile(r"[a-z]+://([^/?#@]*@)?fail([-.:/?#]|$)", re.IGNORECASE)

Handler: TypeAlias = Callable[[dict[str, Any], Context], Awaitable[Any]]


def slowed(handler: Handler, seconds: float) -> Handler:
    """The same mock, taking as long as a real call would."""
    if not seconds:
        return handler

    async def call(config: dict[str, Any], ctx: Context) -> Any:
        await asyncio.sleep(seconds)
        return await handler(config, ctx)

    return call


async def mock_http(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if config.get("url") is None:
        ctx.log.warning("the config has no url; a real call needs one")
        config = {**config, "url": NO_URL}
    request = http.read_config(config, ctx)

    status = min(request.expect, default=200)
    if _FAILING.match(request.url):
        status = 503
    response = Response(
        status_code=status,
        headers={"content-type": "application/json"},
        body=b"",
        url=shown_url(request.url),
        content_type="",
        charset=None,
        elapsed_ms=0,
    )
    if not request.accepts(status):
        raise failure(request, response, " (a mock: hosts named fail answer this)")

    return {
        "status_code": status,
        "headers": response.headers,
        "data": _data(config, request),
        "url": response.url,
        "elapsed_ms": 0,
        "mock": True,
    }


def _data(config: Mapping[str, Any], request: Request) -> dict[str, Any]:
    number = _number_of(config)
    item_id = number % 1000 + 1
    item = {"id": item_id, "name": f"Mock {item_id}", "value": number % 100}
    data = {
        **item,
        "title": f"Mock title {item_id}",
        "description": "A stand-in, not a real answer",
        "status": "ok",
        "success": True,
        "type": "mock",
        "email": f"mock{item_id}@example.com",
        "message": f"mock answer to {request.method}",
        "text": "mock text",
        "content": "mock content",
        "result": f"Mock response from {shown_url(request.url)}",
        "count": 1,
        "total": 1,
        "created_at": "2024-01-01T00:00:00Z",
        "items": [item],
        "results": [item],
    }
    for part in ("params", "body", "json"):
        if isinstance(config.get(part), Mapping):
            data |= config[part]
    return data


async def mock_llm(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if config.get("prompt") is None and config.get("messages") is None:
        ctx.log.warning("the config has no prompt; a real call needs one")
        config = {**config, "prompt": ""}
    call = read_config(config, ctx)
    prompt = _prompt_of(call)

    response = ""
    parsed = None
    tool_calls = _mock_calls(call)
    if call.expected.schema is not None and not tool_calls:
        response, parsed = _fitting(call.expected.schema, "response_schema")
    elif not tool_calls:
        response = f"Mock LLM response to: {prompt[:EXCERPT_CHARACTERS]}"

    prompt_tokens = len(prompt.split())
    completion_tokens = len(response.split()) + len(tool_calls)
    return {
        "response": response,
        "model": call.model or "mock",
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
        "finish_reason": "tool_calls" if tool_calls else "stop",
        "parsed": parsed,
        "tool_calls": tool_calls,
        "mock": True,
    }


def _prompt_of(call: Call) -> str:
    """The text of the last message."""
    content = call.messages[-1]["content"]
    if isinstance(content, list):
        return " ".join(part["text"] for part in content if part["type"] == "text")
    return "" if content is None else as_text(content)


def _mock_calls(call: Call) -> list[dict[str, Any]]:
    tools = call.options.get("tools", [])
    choice = call.options.get("tool_choice")
    has_answer = call.messages[-1]["role"] == "tool"
    if not tools or choice == "none" or has_answer:
        return []
    name = function_name(choice if isinstance(choice, Mapping) else tools[0])
    schema = call.expected.tools.get(name)
    arguments = None if schema is None else _fitting(schema, f"parameters of {name!r}")[1]
    return [{"id": "call_mock_1", "name": name, "arguments": arguments or {}}]


def _fitting(schema: bytes, subject: str) -> tuple[str, Any]:
    """A reply that fits the schema, as text and as a value."""
    try:
        text = msgspec.json.encode(sample(msgspec.json.decode(schema))).decode()
        return text, checked(text, schema, "the reply", subject)
    except WrongReply as error:
        hint = "give the schema a `default` or `examples` where a simple value doesn't fit"
        raise Terminal(
            f"no mock for the {subject}: {error}; {hint}", category=ErrorCategory.MOCK
        ) from None


def _number_of(config: Mapping[str, Any]) -> int:
    """A number that is the same for the same config."""
    text = msgspec.json.encode(config, order="sorted")
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "big")
