"""The ASGI application: routes over a service, and the middleware that requests pass before."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.applications import Starlette
from starlette.responses import Response

from penstock.api import (
    approval_page,
    approvals,
    bulk,
    compat,
    dead_letters,
    docs_page,
    events,
    execution_details,
    executions,
    failures,
    health,
    hooks,
    items,
    middleware,
    problems,
    schedules,
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
from penstock.api.describing import openapi_document
from penstock.api.rate_limit import RateLimitStorage
from penstock.api.routing import Router
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
) -> Starlette:
    timing = timing or ApiTiming()
    bodies = Bodies(service.workflows.limits, service.sandbox)
    router = Router()

    # first, as their paths are narrower than the main API's
    router.include(compat.compat_routes(service, timing))
    for routes in (
        # before the workflows, whose names may contain slashes
        statistics.routes(service, fleet),
        workflows.routes(service, bodies),
        events.events_routes(service.live_events, service.item_events, timing),
        items.routes(service),
        executions.routes(service, bodies),
        execution_details.routes(service),
        schedules.routes(service, bodies),
        signals.routes(service, bodies),
        hooks.routes(service, bodies),
        approvals.routes(service, bodies),
        value_search.routes(service),
        bulk.routes(service, bodies),
        dead_letters.routes(service, bodies),
        failures.routes(service),
        system.routes(service, fleet),
        system.key_routes(service, bodies),
    ):
        router.include(routes, prefix=PREFIX)
    router.include(health.health_routes(service, fleet, version, timing))
    router.include(hooks.request_routes(service, rate_limit_storage))
    _add_front(router, service, metrics, version)

    app = Starlette(routes=[router])
    problems.install(app)
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
    router: Router,
    service: Service,
    metrics: Callable[[], Awaitable[bytes]] | None,
    version: str,
) -> None:
    @router.get("/metrics")
    async def show_metrics() -> Response:
        return Response(await metrics() if metrics else b"", media_type=CONTENT_TYPE)

    document_schema_text = json.dumps(document_schema(), ensure_ascii=False).encode()

    @router.get("/schema.json")
    async def show_schema() -> Response:
        return Response(document_schema_text, media_type="application/schema+json")

    router.include(approval_page.routes(service))
    router.include(ui_files.page_routes())
    router.include(docs_page.docs_routes(partial(openapi_document, router.routes, version)))
