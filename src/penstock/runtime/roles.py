"""The roles orchestrator and worker as processes, from their start to a clean stop.

The roles with an API are in `serving`: these here need no web framework.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack

from penstock.config import Settings
from penstock.errors import StoreError
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.runtime.background import orchestrator_services, run_all, worker_services
from penstock.runtime.health import Health
from penstock.runtime.opening import handlers_of, open_scaled, registry_of
from penstock.sandbox import sandbox_of
from penstock.service import Service
from penstock.service.scheduler import Scheduler
from penstock.stores.handlers import register_handlers
from penstock.stores.plan_cache import LEARN_SECONDS, PlanCache
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.outcomes import OutcomeLog
from penstock.worker.registry import Registry
from penstock.worker.runtime import Worker
from penstock.worker.timing import WorkerTiming

log = logging.getLogger("penstock.runtime")

OnReady = Callable[[str], None]
"""Called once, with the name of what has started."""


def _ignore(_name: str) -> None:
    pass


async def run_orchestrator(  # noqa: PLR0913 -- what it is made of
    settings: Settings,
    stop: asyncio.Event,
    *,
    registry: Registry | None = None,
    health: tuple[str, int] | None = None,
    on_ready: OnReady = _ignore,
    timing: OrchestratorTiming | None = None,
    learn_seconds: float = LEARN_SECONDS,
) -> None:
    """Run an orchestrator until `stop` is set, and then hand its partitions over at once.

    `registry` has handlers whose retries, timeouts and queues it should know before a worker has
    registered them. `health` is the address for health checks and metrics. `timing` and
    `learn_seconds` are for tests: by default the times are those of the settings.
    """
    metrics = Metrics()
    timing = timing or OrchestratorTiming.of(settings)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_scaled(settings))
        plans = PlanCache(
            stores.cold,
            handlers_of(settings, registry),
            learn_seconds=learn_seconds,
            items_max=settings.map_items_max,
        )
        sandbox = sandbox_of(settings)
        stack.push_async_callback(sandbox.close)
        orchestrator = Orchestrator(
            stores,
            plans,
            inline_max_bytes=settings.inline_max_bytes,
            sandbox=sandbox,
            metrics=metrics,
            outcome_log=OutcomeLog(),
            timing=timing,
        )

        service = Service(
            stores,
            plans,
            settings,
            handlers_of(settings, registry),
            stores.commit_feed,
            sandbox=sandbox,
            metrics=metrics,
        )
        stack.push_async_callback(service.close)
        scheduler = Scheduler(stores, service.firing, lambda: orchestrator.owned)

        if health is not None:
            await stack.enter_async_context(Health(*health, stores.hot.check_open, metrics))
        orchestrator.start()
        stack.push_async_callback(orchestrator.stop)
        services = orchestrator_services(stores, orchestrator, scheduler, plans, settings)
        await stack.enter_async_context(run_all(services))

        on_ready(orchestrator.name)
        await stop.wait()

        log.info(
            "%s stops: it hands over %d partitions", orchestrator.name, len(orchestrator.owned)
        )


async def run_worker(  # noqa: PLR0913 -- what it is made of
    settings: Settings,
    registry: Registry | None,
    queues: Collection[str],
    stop: asyncio.Event,
    *,
    health: tuple[str, int] | None = None,
    on_ready: OnReady = _ignore,
) -> None:
    """Run a worker until `stop` is set.

    Then it takes no more tasks, finishes within the grace period and hands back the rest.
    """
    metrics = Metrics()
    timing = WorkerTiming.of(settings)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_scaled(settings))
        sandbox = sandbox_of(settings)
        handlers = registry_of(settings, registry, sandbox)
        await register_handlers(stores.cold.definitions, handlers.defaults())
        served = set(queues) or queues_of(handlers)
        worker = Worker(
            stores.queue,
            stores.blobs,
            handlers,
            settings,
            queues=served,
            metrics=metrics,
            outcome_log=OutcomeLog(),
            sandbox=sandbox,
            timing=timing,
        )

        if health is not None:
            await stack.enter_async_context(Health(*health, stores.hot.check_open, metrics))
        worker.guard_loop(settings.store)
        worker.start()
        await stack.enter_async_context(run_all(worker_services()))
        on_ready(worker.worker_id)
        await stop.wait()

        grace = settings.shutdown_grace_seconds
        log.info("%s stops: %d attempts have %g s to end", worker.worker_id, worker.running, grace)
        try:
            await worker.stop()
        except StoreError as error:
            log.warning(
                "%s couldn't hand back its tasks (%s); an orchestrator will take them back",
                worker.worker_id,
                error,
            )


def queues_of(handlers: Registry) -> set[str]:
    """The queues of handlers, and their names.

    An orchestrator may have dispatched tasks to a queue with the handler's name, before any worker
    registered the handler's own queue.
    """
    queues: set[str] = set()
    for handler in handlers:
        queues.add(handler.name)
        if handler.defaults.queue:
            queues.add(handler.defaults.queue)
    return queues
