"""A web server on loopback for one test."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from penstock.worker.context import Context

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers every request with `answer`, and keeps what came in."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request, web.Request)
        self.requests.append(request)
        self.bodies.append(await request.read())
        return await self._answer(request)


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    server = Server(answer)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()


def always(**response: Any) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(**response)

    return answer


def redirects(*targets: str, status: int = 302, then: str = "arrived") -> Answer:
    """The n-th request is sent on to the n-th target; the last one is answered."""
    left = list(targets)

    async def answer(_: web.Request) -> web.StreamResponse:
        if left:
            return web.Response(status=status, headers={"Location": left.pop(0)})
        return web.Response(text=then)

    return answer


class FakeDns:
    """Gives the n-th answer to the n-th question, and the last one from then on."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.questions: list[str] = []

    async def __call__(self, host: str, port: int) -> list[tuple[Any, ...]]:
        self.questions.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        await asyncio.sleep(0)
        return [_entry(address, port) for address in answer]


def _entry(address: str, port: int) -> tuple[Any, ...]:
    if ":" in address:
        return socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0)
    return socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)


def context(**fields: Any) -> Context:
    return Context(**{"execution_id": "e1", "node_id": "n1", "idempotency_key": "e1:n1", **fields})
