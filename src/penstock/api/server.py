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
from penstock.api.audit_log import AuditLog, run_audit_retention
from penstock.api.auth import require_keys
from penstock.api.http_protocol import limited_protocol
from penstock.api.rate_limit import RateLimitStorage
from penstock.config import Settings, is_redis
from penstock.errors import SettingsError
from penstock.runtime.engine import Engine
from penstock.service import Service
from penstock.service.fleet import EmbeddedFleet, Fleet, ScaledFleet
from penstock.stores.topology import topology_of
from penstock.telemetry.exposition import Exposition
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("penstock.api")

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048


class Server(uvicorn.Server):
    """A uvicorn server that doesn't handle signals, and says when it is ready."""

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
    """The socket of the server, bound before anything else starts.

    So a port in use is a clear error, and the port that stands for port 0 is known.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol, asyncio doesn't set TCP_NODELAY on accepted connections, which inherit
    # it: an answer's body would then wait for the client's delayed acknowledgement of its head,
    # 40 ms each time.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"can't listen on {host}:{port}: {error.strerror}; choose another with --port"
        ) from None
    listening.listen(BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 -- its only argument
    return listening


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.asynccontextmanager
async def serving(
    engine: Engine, settings: Settings, listening: socket.socket
) -> AsyncIterator[Server]:
    """The API over an open engine, for as long as the block lasts."""
    stores = engine.stores
    async with contextlib.AsyncExitStack() as stack:
        fleet: Fleet = EmbeddedFleet(stores, engine.worker, engine.orchestrator)
        rate_limit_storage: RateLimitStorage | None = None
        if topology_of(stores).is_shared:  # other processes may use the same stores
            fleet = ScaledFleet(stores, settings.worker_dead_seconds)
            rate_limit_storage = await stack.enter_async_context(shared_rate_limit(settings))
        api = serving_over(
            engine.service, fleet, settings, listening, engine.metrics, rate_limit_storage
        )
        yield await stack.enter_async_context(api)


@contextlib.asynccontextmanager
async def shared_rate_limit(settings: Settings) -> AsyncIterator[RateLimitStorage | None]:
    """The rate limit's storage in the Redis of the store.

    None on other stores: then each process counts by itself.
    """
    if not is_redis(settings.store):
        yield None
        return

    # imported here, as it needs redis, an extra
    from penstock.api.redis_rate_limit import RedisRateLimitStorage  # noqa: PLC0415

    rate_limit_storage = RedisRateLimitStorage.at(settings.store)
    try:
        yield rate_limit_storage
    finally:
        await rate_limit_storage.close()


@contextlib.asynccontextmanager
async def serving_over(  # noqa: PLR0913, PLR0917 -- the parts that it is built of
    service: Service,
    fleet: Fleet,
    settings: Settings,
    listening: socket.socket,
    measured: Metrics | None,
    rate_limit_storage: RateLimitStorage | None = None,
) -> AsyncIterator[Server]:
    """The API over a service, for as long as the block lasts.

    `rate_limit_storage` is given if other processes share it.
    """
    await require_keys(settings, service.keys)
    await service.keys.exist()  # so that the answer is known if the store becomes unavailable
    audit_log = AuditLog(service.stores.cold.audit_log)
    metrics = Exposition(measured).render if measured else None
    app = create_app(
        service,
        fleet,
        settings,
        version=version("penstock"),
        audit_log=audit_log,
        metrics=metrics,
        rate_limit_storage=rate_limit_storage,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        http=limited_protocol(),
        ws="none",
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.shutdown_grace_seconds) or 1,
    )
    # we log ourselves that the server starts and stops
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))

    retention = asyncio.create_task(
        run_audit_retention(
            service.stores.cold.audit_log,
            settings.audit_retention_days,
            service.stores.hot.now,
            each_seconds=settings.retention_check_seconds,
        )
    )
    try:
        await server.ready.wait()
        yield server
    finally:
        retention.cancel()
        service.live_events.close()  # streams would never end by themselves
        service.executions.give_up()  # a caller that waits for an end gets the current state
        server.should_exit = True
        await task
        await asyncio.gather(retention, return_exceptions=True)
        await audit_log.drain()


async def serve(
    settings: Settings,
    *,
    stop: asyncio.Event,
    on_ready: Callable[[str], None],
    store: str | None = None,
) -> None:
    """Serve everything in one process, until `stop` is set."""
    with bind(settings.host, settings.port) as listening:
        async with (
            Engine(store, settings=settings, metrics=Metrics()) as engine,
            serving(engine, settings, listening),
        ):
            on_ready(address_of(listening))
            await stop.wait()
