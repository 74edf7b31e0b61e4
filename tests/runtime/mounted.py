"""Web applications that an engine's app is mounted in, behind a real uvicorn."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

import penstock
from penstock.config import Settings
from penstock.contract.waiting import until

PREFIX = "/penstock"
START_SECONDS = 30.0


def engine_on(store: str = "memory://", **flags: Any) -> penstock.Engine:
    settings = Settings.load({"http_private": True, "shutdown_grace_seconds": 0.1, **flags}, {})
    return penstock.Engine(store, settings=settings)


def in_fastapi(engine: penstock.Engine, **options: Any) -> FastAPI:
    """An application that opens the engine in its own lifespan."""

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        async with engine:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/own")
    async def own() -> dict[str, str]:
        execution = await engine.start(
            {"name": "own", "nodes": [{"id": "a", "handler": "noop"}]}, wait=10
        )
        return {"state": execution.accepted["state"]}

    app.mount(PREFIX, penstock.asgi(engine, **options))
    return app


def in_starlette(engine: penstock.Engine, prefix: str = PREFIX) -> Starlette:
    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        async with engine:
            yield

    return Starlette(routes=[Mount(prefix, penstock.asgi(engine))], lifespan=lifespan)


def dispatching(engine: penstock.Engine) -> Any:
    """A plain ASGI app that passes its lifespan on, and opens nothing."""
    inner = penstock.asgi(engine)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await inner(scope, receive, send)
        elif scope["path"].startswith(PREFIX):
            await inner({**scope, "root_path": PREFIX}, receive, send)
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return app


@asynccontextmanager
async def serve(app: Any, **options: Any) -> AsyncIterator[str]:
    """The address of a uvicorn that serves the app."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, ws="none", lifespan="on", **options)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    await until(lambda: server.started or running.done(), "the server listens")
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        listener.close()


@contextmanager
def serving_in_a_thread(app: Any) -> Iterator[str]:
    """As `serve`, on an event loop in a thread of its own."""
    address: Future[str] = Future()
    stop = asyncio.Event()

    async def main() -> None:
        async with serve(app) as url:
            address.set_result(url)
            await stop.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    try:
        yield address.result(START_SECONDS)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(START_SECONDS)
        assert not thread.is_alive(), "the server didn't stop"
        loop.close()
