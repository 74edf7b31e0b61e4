"""A real service for one test: an engine in memory, the API on a free port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import penstock
from penstock.config import Settings
from penstock.runtime.http_server import address_of, bind
from penstock.runtime.serving import serving


@asynccontextmanager
async def service(store: str = "memory://", port: int = 0, **flags: object) -> AsyncIterator[str]:
    settings = Settings.load({"http_private": True, "shutdown_grace_seconds": 1, **flags}, {})
    with bind("127.0.0.1", port) as listening:
        async with (
            penstock.Engine(store, settings=settings) as engine,
            serving(engine, settings, listening),
        ):
            yield address_of(listening)


def one(handler: str = "noop", name: str = "one", **fields: object) -> dict[str, object]:
    return {"name": name, "nodes": [{"id": "a", "handler": handler, **fields}]}


NAP: dict[str, object] = one("sleep", "nap", config={"seconds": 3600})
FAIL: dict[str, object] = {
    "name": "doomed",
    "nodes": [
        {"id": "first", "handler": "echo", "config": {"x": "{{ input.x }}"}},
        {
            "id": "a/b c",
            "handler": "fail",
            "dependencies": ["first"],
            "config": {"message": "no luck"},
            "retry": {"max_attempts": 2, "initial_delay_seconds": 0},
        },
        {"id": "last", "handler": "noop", "dependencies": ["a/b c"]},
    ],
}
