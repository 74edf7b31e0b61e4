"""The roles with an API: `penstock api`, and `penstock serve`, which runs all in one process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version

from starlette.applications import Starlette

from penstock.api.app import create_app
from penstock.api.audit_log import AuditLog
from penstock.api.auth import Authorize, require_keys
from penstock.api.rate_limit import RateLimitStorage
from penstock.config import Settings, is_redis
from penstock.runtime.background import api_services, run_all
from penstock.runtime.engine import Engine
from penstock.runtime.http_server import HttpServer, address_of, bind
from penstock.runtime.opening import open_scaled, service_over
from penstock.runtime.roles import OnReady
from penstock.service import Service
from penstock.service.fleet import Fleet, ScaledFleet
from penstock.stores.base import Stores
from penstock.telemetry.exposition import Exposition
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.outcomes import OutcomeLog


async def run_api(settings: Settings, stop: asyncio.Event, *, on_ready: OnReady) -> None:
    """Run an API until `stop` is set. Orchestrators and workers are other processes."""
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(bind(settings.host, settings.port))
        stores = await stack.enter_async_context(open_scaled(settings))
        service = service_over(stores, settings)
        stack.push_async_callback(service.close)
        rate_limit_storage = await stack.enter_async_context(shared_rate_limit(stores, settings))
        fleet = ScaledFleet(stores, settings.worker_dead_seconds)
        api = _serving_over(service, fleet, settings, listening, Metrics(), rate_limit_storage)
        await stack.enter_async_context(api)
        on_ready(f"the API at {address_of(listening)}")
        await stop.wait()


async def run_all_in_one(settings: Settings, stop: asyncio.Event, *, on_ready: OnReady) -> None:
    """Run API, orchestrator and worker in this process until `stop` is set.

    `on_ready` gets the address of the API.
    """
    with bind(settings.host, settings.port) as listening:
        async with (
            Engine(settings=settings, metrics=Metrics(), outcome_log=OutcomeLog()) as engine,
            serving(engine, settings, listening),
        ):
            on_ready(address_of(listening))
            await stop.wait()


@asynccontextmanager
async def serving(
    engine: Engine, settings: Settings, listening: socket.socket
) -> AsyncIterator[None]:
    """The API over an open engine, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        rate_limit_storage = await stack.enter_async_context(
            shared_rate_limit(engine.stores, settings)
        )
        api = _serving_over(
            engine.service, engine.fleet, settings, listening, engine.metrics, rate_limit_storage
        )
        await stack.enter_async_context(api)
        yield


@asynccontextmanager
async def shared_rate_limit(
    stores: Stores, settings: Settings
) -> AsyncIterator[RateLimitStorage | None]:
    """The rate limit's storage in the Redis of the store, which other processes may use too.

    None on other stores: then each process counts by itself.
    """
    if not stores.topology.is_shared or not is_redis(settings.store):
        yield None
        return

    # imported here, as it needs redis, an extra
    from penstock.api.redis_rate_limit import RedisRateLimitStorage  # noqa: PLC0415

    rate_limit_storage = RedisRateLimitStorage.at(settings.store)
    try:
        yield rate_limit_storage
    finally:
        await rate_limit_storage.close()


@asynccontextmanager
async def _serving_over(  # noqa: PLR0913, PLR0917 -- the parts that it is built of
    service: Service,
    fleet: Fleet,
    settings: Settings,
    listening: socket.socket,
    measured: Metrics | None,
    rate_limit_storage: RateLimitStorage | None = None,
) -> AsyncIterator[None]:
    """The API over a service, for as long as the block lasts.

    `rate_limit_storage` is given if other processes share it.
    """
    async with application(
        service, fleet, settings, measured=measured, rate_limit_storage=rate_limit_storage
    ) as app:
        server = HttpServer(app, settings.shutdown_grace_seconds)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await server.ready.wait()
            async with run_all(api_services(service.stores, settings)):
                yield
        finally:
            end_waiting(service)
            server.should_exit = True
            await serving


@asynccontextmanager
async def application(  # noqa: PLR0913 -- the parts that it is built of
    service: Service,
    fleet: Fleet,
    settings: Settings,
    *,
    measured: Metrics | None = None,
    rate_limit_storage: RateLimitStorage | None = None,
    authorize: Authorize | None = None,
) -> AsyncIterator[Starlette]:
    """The ASGI application over a service.

    Leaving the block waits for its lines of the audit log.
    """
    if authorize is None:
        await require_keys(settings, service.keys)
    await service.keys.exist()  # so that the answer is known if the store becomes unavailable
    audit_log = AuditLog(service.stores.cold.audit_log)
    app = create_app(
        service,
        fleet,
        settings,
        version=version("penstock"),
        audit_log=audit_log,
        metrics=Exposition(measured).render if measured else None,
        rate_limit_storage=rate_limit_storage,
        authorize=authorize,
    )
    try:
        yield app
    finally:
        await audit_log.drain()


def end_waiting(service: Service) -> None:
    """End the requests that would never end by themselves, before a server waits for them."""
    service.live_events.close()
    service.executions.give_up()  # a caller that waits for an end gets the current state
