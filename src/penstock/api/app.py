"""The ASGI application: routes over a service, and the middleware that requests pass before."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.responses import Response

from penstock.api import (
    approval_page,
    approvals,
    bulk,
    compat,
    dead_letters,
    describing,
    docs_page,
    events,
    execution_details,
    executions,
    failures,
    health,
    items,
    middleware,
    problems,
    signals,
    statistics,
    system,
    ui_files,
    value_search,
    workflows,
)
from penstock.api.audit_log import AuditLog
from penstock.api.auth import Authorize
from penstock.api.bodies import Bodies
from penstock.api.rate_limit import RateLimitStorage
from penstock.api.shortcut import Shortcut
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.definition.document_schema import document_schema
from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.telemetry.exposition import CONTENT_TYPE

PREFIX = "/api/v1"


def create_app(  # noqa: PLR0913 -- the parts that it is built of
    service: Service,
    fleet: Fleet,
    settings: Settings,
    *,
    version: str,
    audit_log: AuditLog | None = None,
    metrics: Callable[[], Awaitable[bytes]] | None = None,
    rate_limit_storage: RateLimitStorage | None = None,
    timing: ApiTiming | None = None,
    authorize: Authorize | None = None,
) -> FastAPI:
    timing = timing or ApiTiming()
    app = FastAPI(
        title="Penstock",
        version=version,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # `docs_page` has it
    )
    bodies = Bodies(service.workflows.limits, service.sandbox)
    problems.install(app)

    # first, as their paths are narrower than the main API's
    app.include_router(compat.compat_routes(service, timing))
    for router in (
        # before the workflows, whose names may contain slashes
        statistics.routes(service, fleet),
        workflows.routes(service, bodies),
        events.events_routes(service.live_events, timing),
        items.routes(service),
        executions.routes(service, bodies),
        execution_details.routes(service),
        signals.routes(service, bodies),
        approvals.routes(service, bodies),
        value_search.routes(service),
        bulk.routes(service, bodies),
        dead_letters.routes(service, bodies),
        failures.routes(service),
        system.routes(service, fleet),
        system.key_routes(service, bodies),
    ):
        app.include_router(router, prefix=PREFIX)
    app.include_router(health.health_routes(service, fleet, version, timing))
    _add_front(app, service, metrics)
    describing.describe(app, version)

    # the first that is added is the last that a request passes
    app.add_middleware(Shortcut, service=service, bodies=bodies)
    audit_log = audit_log or AuditLog(service.stores.cold.audit_log, timing)
    middleware.install_middleware(
        app,
        settings=settings,
        keys=service.keys,
        audit_log=audit_log,
        rate_limit_storage=rate_limit_storage,
        authorize=authorize,
    )
    return app


def _add_front(
    app: FastAPI, service: Service, metrics: Callable[[], Awaitable[bytes]] | None
) -> None:
    @app.get("/metrics", include_in_schema=False)
    async def show_metrics() -> Response:
        return Response(await metrics() if metrics else b"", media_type=CONTENT_TYPE)

    document_schema_text = json.dumps(document_schema(), ensure_ascii=False).encode()

    @app.get("/schema.json", include_in_schema=False)
    async def show_schema() -> Response:
        return Response(document_schema_text, media_type="application/schema+json")

    app.include_router(approval_page.routes(service))
    app.include_router(ui_files.page_routes())
    # a lambda, as `describe` replaces `app.openapi` later
    app.include_router(docs_page.docs_routes(lambda: app.openapi()))  # noqa: PLW0108
