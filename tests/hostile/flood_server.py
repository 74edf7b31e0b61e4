"""A server that answers too much.

Large JSON, deep JSON, headers and bodies without end, and a gzip bomb.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.hostile.expressions import LONG_TEXT

MB = 1000 * 1000
ROW = b'{"a":1,"b":"xxxxxxxxxxxxxxxxxxxx"},'
PART = b"x" * MB


async def _json(request: web.Request) -> web.Response:
    rows = int(request.match_info["size"]) // len(ROW)
    return web.Response(body=b"[" + ROW * rows + b"1]", content_type="application/json")


async def _text(request: web.Request) -> web.Response:
    return web.Response(body=b"x" * int(request.match_info["size"]), content_type="text/plain")


async def _deep(request: web.Request) -> web.Response:
    return web.Response(body=b"[" * 20 * MB, content_type="application/json")


async def _gzip(request: web.Request) -> web.Response:
    body = await asyncio.to_thread(gzip.compress, b"[" + b"1," * 200 * MB + b"1]", 1)
    return web.Response(
        body=body, content_type="application/json", headers={"Content-Encoding": "gzip"}
    )


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(PART)


async def _headers(request: web.Request) -> web.Response:
    return web.Response(headers={f"x-{i}": "x" * 8000 for i in range(2000)})


async def _model(request: web.Request) -> web.Response:
    content = json.dumps({"s": LONG_TEXT, "l": [{"a": [i]} for i in range(30_000)]})
    message = {"role": "assistant", "content": content}
    return web.json_response(
        {"choices": [{"message": message, "finish_reason": "stop"}], "model": "m"}
    )


@asynccontextmanager
async def serve_too_much() -> AsyncIterator[str]:
    """Its address."""
    app = web.Application(client_max_size=64 * MB)
    app.router.add_get("/json/{size}", _json)
    app.router.add_get("/text/{size}", _text)
    app.router.add_get("/deep", _deep)
    app.router.add_get("/gzip", _gzip)
    app.router.add_get("/endless", _endless)
    app.router.add_get("/headers", _headers)
    app.router.add_post("/v1/chat/completions", _model)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
