"""`penstock.asgi`: API and UI of an engine, as an ASGI app to mount in one's own web application.

Whoever opens the engine closes it. The outer application may do that, in its own lifespan; or it
passes the events of its lifespan on to this app, which then opens an engine that isn't open.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.api.auth import Authorize
from penstock.api.mounting import unmounted
from penstock.api.problems import answer_to, problem_response
from penstock.errors import PenstockError, SettingsError
from penstock.runtime.background import run_all, web_app_services
from penstock.runtime.engine import Engine
from penstock.runtime.serving import application, end_waiting, shared_rate_limit

log = logging.getLogger("penstock.runtime")

WATCH_SECONDS = 0.25
"""How often it is looked whether the server was told to stop, while requests are open."""
ENGINE_NOT_OPEN = (
    "the engine isn't open: open it in the lifespan of the application that this one is mounted in,"
    " or pass the events of that lifespan on"
)


def asgi(engine: Engine, *, authorize: Authorize | None = None) -> WebApp:
    """API and UI of an engine, as an ASGI app to mount under a path of another one.

        app = FastAPI(lifespan=lifespan)  # whose lifespan has: async with engine
        app.mount("/penstock", penstock.asgi(engine))

    `authorize` lets the outer application decide who may do what. It is called with the ASGI scope
    of a request, and returns `read`, `submit`, `operate` or `admin`, or None for a caller who may
    do nothing; or such a scope and a name for the audit log. It may be async. Without it the rules
    of `penstock serve` hold: requests from this machine need no key while there is none.
    """
    return WebApp(engine, authorize)


class WebApp:
    """API and UI of an engine, as an ASGI app that is built when the engine is open."""

    def __init__(self, engine: Engine, authorize: Authorize | None = None) -> None:
        self._engine = engine
        self._authorize = authorize
        self._app: ASGIApp | None = None
        self._building = asyncio.Lock()
        self._open_requests = 0
        self._watching: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            app = await self._ready_app()
            with self._watch_server():
                await app(unmounted(scope), receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Take part in the lifespan of the outer application."""
        await receive()
        opens = not self._engine.is_open
        try:
            if opens:
                await self._engine.open()
            await self._build()
        except Exception as error:
            log.exception("the engine can't be opened")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})

        await receive()
        try:
            if opens:
                await self._engine.close()
        except Exception as error:
            log.exception("the engine can't be closed cleanly")
            await send({"type": "lifespan.shutdown.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})

    async def _ready_app(self) -> ASGIApp:
        """The application, or the answer why there is none."""
        if not self._engine.is_open:
            return problem_response(
                503, "unavailable", ENGINE_NOT_OPEN, headers={"Retry-After": "1"}
            )
        try:
            return await self._build()
        except SettingsError as error:
            return problem_response(503, "unavailable", str(error))
        except PenstockError as error:
            return answer_to(error)

    async def _build(self) -> ASGIApp:
        """The application over the open engine, built once."""
        async with self._building:
            if self._app is None:
                self._app = await self._enter()
            return self._app

    async def _enter(self) -> ASGIApp:
        engine = self._engine
        async with AsyncExitStack() as stack:
            rate_limit_storage = await stack.enter_async_context(
                shared_rate_limit(engine.stores, engine.settings)
            )
            app = await stack.enter_async_context(
                application(
                    engine.service,
                    engine.fleet,
                    engine.settings,
                    measured=engine.metrics,
                    rate_limit_storage=rate_limit_storage,
                    authorize=self._authorize,
                )
            )
            services = web_app_services(engine.stores, engine.settings)
            await stack.enter_async_context(run_all(services))
            leave = stack.pop_all()

        async def end() -> None:
            self._app = None
            end_waiting(engine.service)
            await leave.aclose()

        engine.before_closing(end)
        return app

    @contextmanager
    def _watch_server(self) -> Iterator[None]:
        """Look whether the server was told to stop, while this request is open."""
        self._open_requests += 1
        if self._watching is None:
            self._watching = asyncio.create_task(self._end_requests_when_the_server_stops())
        try:
            yield
        finally:
            self._open_requests -= 1

    async def _end_requests_when_the_server_stops(self) -> None:
        """A server waits for open requests before it ends the lifespan; streams never end."""
        try:
            while self._open_requests:
                if server_stops() and self._engine.is_open:
                    self._engine.service.live_events.close()
                    self._engine.service.executions.end_limited_waits()
                    return
                await asyncio.sleep(WATCH_SECONDS)
        finally:
            self._watching = None


def server_stops() -> bool:
    """Whether a uvicorn that serves this process was told to stop.

    Its handler of the signal is a method of the server. ASGI has no event for this moment.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True
