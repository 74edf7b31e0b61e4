"""Health of a process and of the parts that it needs, as checks that run within a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec import UNSET

from penstock.service import Service
from penstock.service.fleet import Fleet
from penstock.service.outages import shown_outage
from penstock.service.waiting import Waiting
from penstock.stores.base import Stores
from penstock.views.health import Check, HealthReport
from penstock.views.times import time_text

NOBODY = "-"
"""No workflow has this name and a version 0: looking for it is the cheapest read."""
QUEUES_MAX = 20
"""Queues with untaken tasks that are listed."""

Checks = dict[str, Callable[[], Awaitable[Check]]]


async def health_report(
    service: Service, fleet: Fleet, version: str, check_seconds: float
) -> HealthReport:
    """The health of all parts.

    `degraded`: the service answers and accepts, but something waits that nobody will run as things
    are.
    """
    needed = needed_checks(service.stores, fleet)
    working = _working_checks(fleet, service.executions.waiting)
    checks = await run_checks({**needed, **working}, check_seconds)

    status = "ok" if are_ok(checks.values()) else "degraded"
    if not are_ok(checks[name] for name in needed):
        status = "unavailable"
    is_up = status != "unavailable"
    return HealthReport(
        status=status,
        version=version,
        time=time_text(service.stores.hot.now()),
        reasons=[check.detail for check in checks.values() if check.detail is not UNSET],
        checks=checks,
        healthy=is_up,
        ok=is_up,
    )


def are_ok(checks: Iterable[Check]) -> bool:
    return all(check.ok for check in checks)


def needed_checks(stores: Stores, fleet: Fleet) -> Checks:
    """The checks of the parts without which nothing runs."""

    async def orchestrator() -> Check:
        if any(view.partitions for view in await fleet.orchestrators()):
            return Check(ok=True)
        return Check(
            ok=False,
            detail="no orchestrator owns a partition; start one with 'penstock orchestrator'",
        )

    return {**_store_checks(stores), "orchestrator": orchestrator}


def _working_checks(fleet: Fleet, waiting: Waiting) -> Checks:
    """The checks whether accepted executions are run."""

    async def workers() -> Check:
        count = len(await fleet.workers())
        if count:
            return Check(ok=True, count=count)
        return Check(
            ok=False,
            count=0,
            detail="no worker is alive: nothing runs until one is ('penstock worker')",
        )

    async def queues() -> Check:
        untaken = await waiting.untaken()
        if not untaken:
            return Check(ok=True)

        listed = untaken[:QUEUES_MAX]
        texts = [
            f"{tasks.waiting} tasks wait in the queue {tasks.queue!r}: {tasks.text}"
            for tasks in listed
        ]
        if len(untaken) > QUEUES_MAX:
            texts.append(f"and {len(untaken) - QUEUES_MAX} more")
        return Check(
            ok=False,
            detail="; ".join(texts),
            untaken=listed,
        )

    return {"workers": workers, "queues": queues}


async def store_checks(stores: Stores, check_seconds: float) -> dict[str, Check]:
    return await run_checks(_store_checks(stores), check_seconds)


async def run_checks(checks: Checks, check_seconds: float) -> dict[str, Check]:
    """The results of checks that run at the same time, each within its time."""
    results = await asyncio.gather(
        *(_within_time(check, check_seconds) for check in checks.values())
    )
    return dict(zip(checks, results, strict=True))


def _store_checks(stores: Stores) -> Checks:
    async def hot() -> Check:
        stores.hot.check_open()
        end = await stores.cold.executions.commits_end()
        return Check(ok=True, position=end[0] if len(end) == 1 else list(end))

    async def cold() -> Check:
        await stores.cold.definitions.get_workflow(NOBODY, 0)
        return Check(ok=True)

    if stores.topology.is_tiered:
        return {"redis": hot, "database": cold}
    return {"store": hot}


async def _within_time(check: Callable[[], Awaitable[Check]], seconds: float) -> Check:
    try:
        async with asyncio.timeout(seconds):
            return await check()
    except Exception as error:  # noqa: BLE001 -- whatever it is, this part doesn't answer
        return Check(ok=False, detail=shown_outage(error))
