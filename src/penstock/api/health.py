"""Health checks: how this process and what it needs are doing."""

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
from penstock.service.outages import shown_outage
from penstock.service.waiting import Waiting
from penstock.stores.base import Stores
from penstock.stores.topology import topology_of

READY_SECONDS = 2.0
NOBODY = "-"
"""No workflow has this name with a version 0: looking for it costs as little as a read can."""

QUEUES_MAX = 20
"""Queues that are shown."""

Check = dict[str, Any]
Checks = dict[str, Callable[[], Awaitable[Check]]]


def health_routes(service: Service, fleet: Fleet, version: str) -> APIRouter:
    """The routes of health checks, without a prefix."""
    router = APIRouter(tags=["health"])

    @router.get("/health/live", **operation("live", "The process answers", {200: schemas.Health}))
    async def live() -> Response:
        return answer({"status": "ok"})

    @router.get(
        "/health/ready",
        **operation("ready", "Everything that it needs answers", {200: schemas.Health}),
    )
    async def ready() -> Response:
        # who runs in other processes isn't needed for that: what is accepted now is run when they
        # are there
        alone = not topology_of(service.stores).is_tiered
        checks = await (
            _all(_needed(service.stores, fleet)) if alone else store_checks(service.stores)
        )
        fine = all(check["ok"] for check in checks.values())
        return answer({"status": "ok" if fine else "unavailable"}, 200 if fine else 503)

    @router.get("/health", **operation("health", "How each part is", {200: None}))
    async def health() -> Response:
        """`degraded`: it answers and accepts, but something waits that nobody will run as things are."""
        needed = _needed(service.stores, fleet)
        checks = await _all({**needed, **_working(fleet, service.executions.waiting)})
        status = "ok" if all(check["ok"] for check in checks.values()) else "degraded"
        if not all(checks[name]["ok"] for name in needed):
            status = "unavailable"
        reasons = [check["detail"] for check in checks.values() if not check["ok"]]
        now = time_text(service.stores.hot.now())
        shown: dict[str, Any] = {
            "status": status,
            "version": version,
            "time": now,
            "reasons": reasons,
            "checks": checks,
        }
        is_up = status != "unavailable"
        shown |= {"healthy": is_up, "ok": is_up}  # what clients of other implementations look for
        return answer(shown, 200 if is_up else 503)

    return router


def _needed(stores: Stores, fleet: Fleet) -> Checks:
    """The checks without which nothing goes on."""

    async def orchestrator() -> Check:
        if any(each["partitions"] for each in await fleet.orchestrators()):
            return {"ok": True}
        return {
            "ok": False,
            "detail": "no orchestrator owns a partition; start one with 'penstock orchestrator'",
        }

    return {**_store_checks(stores), "orchestrator": orchestrator}


def _working(fleet: Fleet, waiting: Waiting) -> Checks:
    """The checks whether what is accepted is run."""

    async def workers() -> Check:
        count = len(await fleet.workers())
        if count:
            return {"ok": True, "count": count}
        return {
            "ok": False,
            "count": 0,
            "detail": "no worker is alive: nothing runs until one is ('penstock worker')",
        }

    async def queues() -> Check:
        untaken = await waiting.untaken()
        if not untaken:
            return {"ok": True}
        shown = [each._asdict() for each in untaken]
        texts = [
            f"{each.waiting} tasks wait in the queue {each.queue!r}: {each.text}"
            for each in untaken[:QUEUES_MAX]
        ]
        more = [f"and {len(untaken) - QUEUES_MAX} more"] if len(untaken) > QUEUES_MAX else []
        return {"ok": False, "detail": "; ".join([*texts, *more]), "untaken": shown[:QUEUES_MAX]}

    return {"workers": workers, "queues": queues}


async def store_checks(stores: Stores) -> dict[str, Check]:
    return await _all(_store_checks(stores))


async def _all(checks: Checks) -> dict[str, Check]:
    found = await asyncio.gather(*(_within_time(check) for check in checks.values()))
    return dict(zip(checks, found, strict=True))


def _store_checks(stores: Stores) -> Checks:
    async def hot() -> Check:
        stores.hot.check_open()
        end = await stores.cold.commits_end()
        return {"ok": True, "position": end[0] if len(end) == 1 else list(end)}

    async def cold() -> Check:
        await stores.cold.get_workflow(NOBODY, 0)
        return {"ok": True}

    if topology_of(stores).is_tiered:
        return {"redis": hot, "database": cold}
    return {"store": hot}


async def _within_time(check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        async with asyncio.timeout(READY_SECONDS):
            return await check()
    except Exception as error:  # noqa: BLE001 -- whatever it is, this part doesn't answer
        return {"ok": False, "detail": shown_outage(error)}
