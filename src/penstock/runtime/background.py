"""Background services: what a role runs beside its main loop, as one list per role.

`penstock serve` has the lists of the engine and of the API. A worker's own loops are its main loop
(`worker/runtime.py: Worker.start`). An embedded engine doesn't touch the memory of its program. Not
listed are parts that run only while somebody needs them, such as the subscription to commits, and
the port for health checks, which must be open before the role says that it is ready.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from penstock.config import Settings
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.runtime.memory import run_trimming
from penstock.runtime.retention import (
    run_audit_retention,
    run_hook_retention,
    run_retention,
    run_slot_retention,
)
from penstock.service.scheduler import Scheduler
from penstock.stores.base import Stores
from penstock.stores.plan_cache import PlanCache

log = logging.getLogger("penstock.runtime")


class BackgroundService(NamedTuple):
    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    """Runs until it is cancelled, or has nothing more to do."""


TRIMMING = BackgroundService("memory trimming", run_trimming)


def orchestrator_services(
    stores: Stores,
    orchestrator: Orchestrator,
    scheduler: Scheduler,
    plans: PlanCache,
    settings: Settings,
) -> list[BackgroundService]:
    return [
        BackgroundService("plan learning", plans.run_learning),
        *_owner_services(stores, orchestrator, scheduler, settings),
        TRIMMING,
    ]


def worker_services() -> list[BackgroundService]:
    return [TRIMMING]


def api_services(stores: Stores, settings: Settings) -> list[BackgroundService]:
    return [*web_app_services(stores, settings), TRIMMING]


def web_app_services(stores: Stores, settings: Settings) -> list[BackgroundService]:
    """The services of an API that is a part of a user's own program."""
    audit_retention = partial(
        run_audit_retention,
        stores.cold.audit_log,
        settings.audit_retention_days,
        stores.hot.now,
        each_seconds=settings.retention_check_seconds,
    )
    hook_retention = partial(
        run_hook_retention,
        stores.cold.hooks,
        stores.hot.now,
        each_seconds=settings.retention_check_seconds,
    )
    return [
        BackgroundService("audit retention", audit_retention),
        BackgroundService("hook retention", hook_retention),
    ]


def engine_services(
    stores: Stores, orchestrator: Orchestrator, scheduler: Scheduler, settings: Settings
) -> list[BackgroundService]:
    return _owner_services(stores, orchestrator, scheduler, settings)


def _owner_services(
    stores: Stores, orchestrator: Orchestrator, scheduler: Scheduler, settings: Settings
) -> list[BackgroundService]:
    """What the owner of partitions does for the whole store."""
    retention = partial(
        run_retention,
        stores,
        settings.retention_days,
        lambda: 0 in orchestrator.owned,
        each_seconds=settings.retention_check_seconds,
    )
    slot_retention = partial(
        run_slot_retention,
        stores,
        lambda: 0 in orchestrator.owned,
        each_seconds=settings.retention_check_seconds,
    )
    return [
        BackgroundService("retention", retention),
        BackgroundService("slot retention", slot_retention),
        BackgroundService("scheduler", scheduler.run),
    ]


@asynccontextmanager
async def run_all(services: Iterable[BackgroundService]) -> AsyncIterator[None]:
    """Run the services of a role for as long as the block lasts.

    They use the role's other parts: enter it after those have started, and leave it before they
    stop.
    """
    tasks = [asyncio.create_task(_run(service), name=service.name) for service in services]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(service: BackgroundService) -> None:
    try:
        await service.run()
    except Exception:
        log.exception(
            "the background service %r has failed, and doesn't run any more", service.name
        )
