"""Stand-ins for the two handlers that call out (`PENSTOCK_MOCK_SERVICES=1`, `--mock`), marked `"mock": true`.

They check the config as the real ones do, call nothing, and give the same answer for the same config. An HTTP answer's
`data` has the fields that documents usually ask for (id, name, title, status, items, ...), and over them whatever the
call itself sent in `params`, `json` or an object as `body`. An LLM's answer repeats the start of the prompt; with
`response_schema` it is a small value that fits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.errors import Retryable, Terminal
from penstock.worker.context import Context
from penstock.worker.handlers import http, llm
from penstock.worker.handlers.http_exchange import shown_url
from penstock.worker.handlers.samples import sample

EXCERPT_CHARACTERS = 200


async def mock_http(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
    request = http.read_config(config, ctx)
    return {
        "status_code": min(request.expect, default=200),
        "headers": {"content-type": "application/json"},
        "data": _data(config, request.method),
        "url": shown_url(request.url),
        "elapsed_ms": 0,
        "mock": True,
    }


def _data(config: Mapping[str, Any], method: str) -> dict[str, Any]:
    number = _number(config)
    item = {"id": number % 1000 + 1, "name": f"Mock {number % 1000 + 1}", "value": number % 100}
    data = {
        **item,
        "title": f"Mock title {item['id']}",
        "description": "A stand-in, not a real answer",
        "status": "ok",
        "success": True,
        "type": "mock",
        "email": f"mock{item['id']}@example.com",
        "message": f"mock answer to {method}",
        "text": "mock text",
        "content": "mock content",
        "result": "mock result",
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


async def mock_llm(config: dict[str, Any], ctx: Context) -> dict[str, Any]:  # noqa: ARG001 -- as every handler
    call = llm.read_config(config)
    prompt = str(call.messages[-1]["content"])
    response, parsed = f"Mock answer to: {prompt[:EXCERPT_CHARACTERS]}", None
    if call.schema is not None:
        response, parsed = _fitting(call.schema)
    used = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(response.split())}
    return {
        "response": response,
        "model": call.model or "mock",
        "usage": {**used, "total_tokens": sum(used.values())},
        "finish_reason": "stop",
        "parsed": parsed,
        "mock": True,
    }


def _fitting(schema: bytes) -> tuple[str, Any]:
    try:
        text = msgspec.json.encode(sample(msgspec.json.decode(schema))).decode()
        return text, llm.parsed(text, schema)
    except Retryable as error:
        hint = "give the schema a `default` or `examples` where a simple value doesn't fit"
        raise Terminal(f"no mock for this response_schema: {error}; {hint}", category="mock") from None


def _number(config: Mapping[str, Any]) -> int:
    text = msgspec.json.encode(config, order="sorted")
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "big")
