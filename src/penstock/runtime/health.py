"""Health checks and metrics of a process without an API.

    GET /health/live   200 while the process can answer at all
    GET /health/ready  200 while the store has answered lately, else 503
    GET /metrics       for Prometheus

It is plain HTTP on asyncio, so that a worker needn't import a web framework.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Self

from penstock.errors import SettingsError, StoreError
from penstock.service.outages import shown_outage
from penstock.telemetry.exposition import CONTENT_TYPE, Exposition
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.runtime")

REQUEST_SECONDS = 5.0
REQUEST_BYTES = 16 * 1024
Answer = tuple[int, str, bytes]


class Health:
    """A server for health checks and metrics, which listens while it is entered.

    `port` 0 takes a free one, which `address` then has. `check` raises `StoreError` if the store
    hasn't answered lately.
    """

    def __init__(self, host: str, port: int, check: Callable[[], None], metrics: Metrics) -> None:
        self._host = host
        self._port = port
        self._check = check
        self._exposition = Exposition(metrics)
        self._server: asyncio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self._port, limit=REQUEST_BYTES
            )
        except OSError as error:
            raise SettingsError(
                f"can't listen on {self._host}:{self._port}: {error.strerror}; "
                "choose another port with --health-port"
            ) from None

        host, port = self._server.sockets[0].getsockname()[:2]
        if ":" in host:
            host = f"[{host}]"
        self.address = f"http://{host}:{port}"
        log.info("health and metrics at %s", self.address)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path = [*head.decode("latin-1").split(" ", 2), "", ""][:2]
                status, kind, body = await self._answer(method, path.partition("?")[0])

                lines = [
                    f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
                    f"Content-Type: {kind}",
                    f"Content-Length: {len(body)}",
                    "Connection: close",
                    "",
                    "",
                ]
                answer = "\r\n".join(lines).encode()
                if method != "HEAD":
                    answer += body
                writer.write(answer)
                await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            log.debug("a health check was not a valid request: %s", error)
        finally:
            writer.close()

    async def _answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return _json(405, {"status": "only GET is allowed here"})
        if path == "/metrics":
            return 200, CONTENT_TYPE, await self._exposition.render()
        if path == "/health/live":
            return _json(200, {"status": "ok"})
        if path in ("/health/ready", "/health"):
            return self._ready()
        return _json(404, {"status": "there are /health/live, /health/ready and /metrics"})

    def _ready(self) -> Answer:
        try:
            self._check()
        except StoreError as error:
            return _json(503, {"status": "unavailable", "detail": shown_outage(error)})
        return _json(200, {"status": "ok"})


def _json(status: int, value: dict[str, Any]) -> Answer:
    return status, "application/json", json.dumps(value).encode()
