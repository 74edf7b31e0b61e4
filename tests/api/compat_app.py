"""The compatible routes over a real engine, called without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.applications import Starlette

from penstock import Context, Engine
from penstock.api.access import CALLER, Caller
from penstock.api.compat import compat_routes
from penstock.api.problems import install
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.service import Service
from penstock.stores.records import DeadLetterSearch, Search
from penstock.worker.registry import Handler, Registry
from tests.waiting import until

PREFIXES = ("", "/api", "/v1", "/api/v1")
ENDS = ("COMPLETED", "FAILED", "CANCELLED")
ONCE = {"retry": {"max_attempts": 1}}


class Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


class Client:
    def __init__(self, app: Starlette, service: Service) -> None:
        self.app = app
        self.service = service
        self.gate = asyncio.Event()
        """What the handler `gated` waits for."""
        self.broken: set[str] = set()
        """Nodes whose handler `fragile` fails."""
        self.ran: list[str] = []

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: str = "",
        caller: Caller | None = None,
    ) -> Answer:
        """`body` as it is if it is bytes, else as JSON."""
        sent: list[Any] = []
        data = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )

        async def receive() -> Any:
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("utf-8", "replace"),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(b"content-type", b"application/json")],
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
            CALLER: caller,
        }
        await self.app(scope, receive, send)
        headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        text = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], json.loads(text) if text else None, headers)

    async def get(self, path: str, query: str = "") -> Any:
        answer = await self.call("GET", path, query=query)
        assert answer.status == 200, answer
        return answer.body

    async def submit(self, *nodes: Mapping[str, Any], prefix: str = "", **fields: Any) -> str:
        answer = await self.call(
            "POST", f"{prefix}/workflow", {"name": "flow", "dag": {"nodes": list(nodes)}, **fields}
        )
        assert answer.status == 201, answer
        return str(answer.body["execution_id"])

    async def trigger(self, execution_id: str, body: Any = None) -> Answer:
        return await self.call("POST", f"/workflow/trigger/{execution_id}", body)

    async def reach(self, execution_id: str, *states: str) -> dict[str, Any]:
        async def reached() -> dict[str, Any] | None:
            status: dict[str, Any] = await self.get(f"/workflow/{execution_id}")
            return status if status["status"] in (states or ENDS) else None

        final: dict[str, Any] = await until(reached, f"{execution_id} in {states or ENDS}")
        return final

    async def run(
        self, *nodes: Mapping[str, Any], body: Any = None, **fields: Any
    ) -> dict[str, Any]:
        execution_id = await self.submit(*nodes, **fields)
        answer = await self.trigger(execution_id, body)
        assert answer.status == 200, answer
        return await self.reach(execution_id)

    async def dead_letter(self) -> dict[str, Any]:
        [dead_letter] = (await self.get("/admin/dlq"))["items"]
        return dict(dead_letter)

    async def is_empty(self) -> bool:
        """Nothing was stored."""
        cold = self.service.stores.cold
        return not (
            await cold.definitions.workflows()
            or await cold.executions.search(Search())
            or await cold.dead_letters.dead_letters(DeadLetterSearch())
        )


def node(name: str, *parents: str, handler: str = "echo", **fields: Any) -> dict[str, Any]:
    return {"id": name, "handler": handler, "dependencies": list(parents), **fields}


@asynccontextmanager
async def serving(
    tmp_path, *, own: Iterable[Handler] = (), **settings: Any
) -> AsyncIterator[Client]:
    """`settings` are flags over the defaults, such as `mock_services=True`."""
    app = Starlette()

    async def gated(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await client.gate.wait()
        return config

    async def fragile(config: dict[str, Any], ctx: Context) -> dict[str, Any]:
        client.ran.append(ctx.node_id)
        if ctx.node_id in client.broken:
            raise RuntimeError(f"{ctx.node_id} is broken")
        return config

    registry = Registry([Handler("gated", gated), Handler("fragile", fragile), *own])
    async with Engine(
        __import__("penstock.stores.memory").stores.memory.MemoryStores(__import__("time").time),
        registry=registry,
        settings=Settings.load({"http_private": True, **settings}),
    ) as engine:
        client = Client(app, engine.service)
        install(app)
        app.routes.append(compat_routes(engine.service, ApiTiming()))
        try:
            yield client
        finally:
            client.gate.set()
