"""A process that serves: the engine, the API and uvicorn on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version

import uvicorn

from penstock.api.app import create_app
from penstock.api.auditing import Trail
from penstock.api.auth import require_keys
from penstock.config import Settings
from penstock.embedded.engine import Engine
from penstock.errors import SettingsError
from penstock.service.fleet import EmbeddedFleet
from penstock.telemetry.exposition import Exposition
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.api")

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


class Server(uvicorn.Server):
    """Leaves signals to us, and ends streams first: they would never end by themselves."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]  # noqa: ANN201 -- uvicorn's
        yield


def bind(host: str, port: int) -> socket.socket:
    """Bound before anything else starts, so that a port in use is a clear error and port 0 is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SettingsError(f"can't listen on {host}:{port}: {error.strerror}; choose another with --port") from None
    listening.listen(BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 -- its only argument
    return listening


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.asynccontextmanager
async def serving(engine: Engine, settings: Settings, listening: socket.socket) -> AsyncIterator[Server]:
    """The API over an open engine, for as long as the block lasts."""
    await require_keys(settings, engine.service.keys)
    fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
    trail = Trail(engine.stores.cold)
    metrics = Exposition(engine.metrics).render if engine.metrics else None
    app = create_app(engine.service, fleet, settings, version=version("penstock"), trail=trail, metrics=metrics)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, proxy_headers=False, server_header=False, date_header=False,
        http="httptools", lifespan="off", timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.shutdown_grace_seconds) or 1,
    )  # fmt: skip
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # that it starts and stops is ours to say
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await server.ready.wait()
        yield server
    finally:
        engine.service.feed.close()
        engine.service.executions.give_up()  # who waits for an end is told how far it is
        server.should_exit = True
        await task
        await trail.drain()


async def serve(
    settings: Settings, *, stop: asyncio.Event, on_ready: Callable[[str], None], store: str | None = None
) -> None:
    """Everything in one process, until `stop` is set."""
    with bind(settings.host, settings.port) as listening:
        async with Engine(store, settings=settings, metrics=Metrics()) as engine, serving(engine, settings, listening):
            on_ready(address_of(listening))
            await stop.wait()
