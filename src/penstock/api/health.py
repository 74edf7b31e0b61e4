"""How this process and what it needs are doing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from penstock.api import schemas
from penstock.api.bodies import answer
from penstock.api.describing import operation
from penstock.orchestrator.view import time_text
from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.stores.base import Stores

READY_SECONDS = 2.0
NOBODY = "-"
"""No workflow has this name with a version 0: looking for it costs as little as a read can."""

Check = dict[str, Any]


def health_routes(service: Service, fleet: Fleet, version: str) -> APIRouter:
    """Without a prefix."""
    router = APIRouter(tags=["health"])

    @router.get("/health/live", **operation("live", "The process answers", {200: schemas.Health}))
    async def live() -> Response:
        return answer({"status": "ok"})

    @router.get("/health/ready", **operation("ready", "Everything that it needs answers", {200: schemas.Health}))
    async def ready() -> Response:
        # who runs in other processes isn't needed for that: what is accepted now is run when they are there
        alone = service.stores.split is None
        checks = await (_checks(service.stores, fleet) if alone else store_checks(service.stores))
        fine = all(check["ok"] for check in checks.values())
        return answer({"status": "ok" if fine else "unavailable"}, 200 if fine else 503)

    @router.get("/health", **operation("health", "How each part is", {200: None}))
    async def health() -> Response:
        checks = await _checks(service.stores, fleet)
        fine = all(check["ok"] for check in checks.values())
        now = time_text(service.stores.hot.now())
        shown: dict[str, Any] = {
            "status": "ok" if fine else "unavailable",
            "version": version,
            "time": now,
            "checks": checks,
        }
        shown |= {"healthy": fine, "ok": fine}  # what clients of other implementations look for
        return answer(shown, 200 if fine else 503)

    return router


async def _checks(stores: Stores, fleet: Fleet) -> dict[str, Check]:
    """All at once, each within its time."""

    async def orchestrator() -> Check:
        return {"ok": any(each["partitions"] for each in await fleet.orchestrators())}

    async def workers() -> Check:
        return {"ok": True, "count": len(await fleet.workers())}

    return await _all({**_store_checks(stores), "orchestrator": orchestrator, "workers": workers})


async def store_checks(stores: Stores) -> dict[str, Check]:
    return await _all(_store_checks(stores))


async def _all(checks: dict[str, Callable[[], Awaitable[Check]]]) -> dict[str, Check]:
    found = await asyncio.gather(*(_within_time(check) for check in checks.values()))
    return dict(zip(checks, found, strict=True))


def _store_checks(stores: Stores) -> dict[str, Callable[[], Awaitable[Check]]]:
    async def hot() -> Check:
        stores.hot.check_open()
        end = await stores.cold.feed_end()
        return {"ok": True, "position": end[0] if len(end) == 1 else list(end)}

    async def cold() -> Check:
        await stores.cold.get_workflow(NOBODY, 0)
        return {"ok": True}

    return {"store": hot} if stores.split is None else {"redis": hot, "database": cold}


async def _within_time(check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        async with asyncio.timeout(READY_SECONDS):
            return await check()
    except Exception as error:  # noqa: BLE001 -- whatever it is, this part doesn't answer
        return {"ok": False, "detail": f"{type(error).__name__}: {error}"}
