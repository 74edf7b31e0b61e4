"""The routes of events behind a real uvicorn, and a strict Server-Sent Events client."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import aiohttp
import uvicorn
from starlette.applications import Starlette

from penstock.api import problems
from penstock.api.events import events_routes
from penstock.api.routing import Router
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.service.executions import Executions
from penstock.service.item_events import ItemEvents
from penstock.service.live_events import LiveEvents
from penstock.service.timing import ServiceTiming
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from tests.waiting import until

SMALL_BUFFER = 4096


class Served:
    def __init__(
        self,
        live_events: LiveEvents,
        server: uvicorn.Server,
        port: int,
        running: asyncio.Task[None],
    ) -> None:
        self.feed = live_events
        self.server = server
        self.port = port
        self._running = running

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Stop as a process does that gets SIGTERM.

        Streams are ended first, or uvicorn would wait for them.
        """
        self.feed.close()
        self.server.should_exit = True
        await self._running


def item_events_of(live_events: LiveEvents) -> ItemEvents:
    """Counts of items, which the executions of a chronicle don't have."""
    stores = MemoryStores(time.time)
    plans = PlanCache(stores.cold, dict)
    executions = Executions(stores, plans, nullcontext, ServiceTiming.of(Settings()))
    return ItemEvents(executions, live_events)


@asynccontextmanager
async def served(live_events: LiveEvents, **times: float) -> AsyncIterator[Served]:
    router = Router()
    routes = events_routes(live_events, item_events_of(live_events), ApiTiming(**times))
    router.include(routes, prefix="/api/v1")
    app = Starlette(routes=[router])
    problems.install(app)
    async with served_app(app, live_events) as events_server:
        yield events_server


@asynccontextmanager
async def served_app(app: Starlette, live_events: LiveEvents) -> AsyncIterator[Served]:
    # what the kernel keeps for a client that doesn't read is the same on every machine
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve([listener]))
    await until(lambda: server.started or running.done(), "the server listens")
    events_server = Served(live_events, server, listener.getsockname()[1], running)
    try:
        yield events_server
    finally:
        await events_server.stop()


class Events:
    """What a client has read."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        self._lines = lines
        self.comments = 0
        self.retry: int | None = None

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        fields: dict[str, str] = {}
        async for line in self._lines:
            text = line.decode().removesuffix("\n")
            name, _, value = text.partition(": ")
            if not text and "data" in fields:
                yield {
                    "id": fields.get("id", ""),
                    "event": fields["event"],
                    "data": json.loads(fields["data"]),
                }
            if not text:
                fields = {}
            elif not name:
                self.comments += 1
            elif name == "retry":
                self.retry = int(value)
            else:
                assert name in {"id", "event", "data"}
                assert name not in fields
                fields[name] = value

    async def take(self, count: int) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        async for event in self:
            events.append(event)
            if len(events) == count:
                return events
        return events


@asynccontextmanager
async def connected(
    served: Served, path: str, last_event_id: str | None = None
) -> AsyncIterator[tuple[aiohttp.ClientResponse, Events]]:
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"{served.url}/api/v1{path}", headers=headers) as response,
    ):
        yield response, Events(aiter(response.content))


async def read_all(
    served: Served, path: str, last_event_id: str | None = None
) -> list[dict[str, Any]]:
    """Until the server ends the stream."""
    async with connected(served, path, last_event_id) as (response, events):
        assert response.status == 200
        return [event async for event in events]


async def refusal(
    served: Served, path: str, last_event_id: str | None = None
) -> tuple[int, dict[str, Any], Any]:
    async with connected(served, path, last_event_id) as (response, _):
        return (
            response.status,
            await response.json(content_type="application/problem+json"),
            response.headers,
        )
