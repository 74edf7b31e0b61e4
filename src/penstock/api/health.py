"""Health checks of this process and of the parts that it needs."""

from __future__ import annotations

from starlette.responses import Response

from penstock.api.bodies import answer
from penstock.api.describing import operation
from penstock.api.routing import Router
from penstock.api.timing import ApiTiming
from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.service.health import (
    are_ok,
    health_report,
    needed_checks,
    run_checks,
    store_checks,
)
from penstock.views.health import Health, HealthReport


def health_routes(service: Service, fleet: Fleet, version: str, timing: ApiTiming) -> Router:
    """The routes of health checks, without a prefix."""
    router = Router(tags=["health"])

    @router.get("/health/live", **operation("live", "The process answers", {200: Health}))
    async def live() -> Response:
        return answer(Health("ok"))

    @router.get(
        "/health/ready",
        **operation("ready", "Everything that it needs answers", {200: Health}),
    )
    async def ready() -> Response:
        # orchestrators of other processes aren't needed: what is accepted now runs when they come
        if not service.stores.topology.is_tiered:
            needed = needed_checks(service.stores, fleet)
            checks = await run_checks(needed, timing.check_seconds)
        else:
            checks = await store_checks(service.stores, timing.check_seconds)
        fine = are_ok(checks.values())
        return answer(Health("ok" if fine else "unavailable"), 200 if fine else 503)

    @router.get(
        "/health",
        **operation("health", "How each part is", {200: HealthReport}),
        description="`degraded`: it answers and accepts,"
        " but something waits that nobody will run as things are.",
    )
    async def health() -> Response:
        report = await health_report(service, fleet, version, timing.check_seconds)
        return answer(report, 200 if report.ok else 503)

    return router
