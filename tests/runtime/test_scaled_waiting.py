"""Nodes that wait, on Redis and PostgreSQL: at every moment, and through a loss of Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

import redis.asyncio

from penstock import Registry, handler
from penstock.config import Settings
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.runtime import open_scaled, run_orchestrator, run_worker, service_over
from penstock.service import Service
from penstock.service.approvals import Decider
from penstock.service.submissions import StartRequest
from tests.servers import database_url, redis_url
from tests.sizes import explored, size
from tests.waiting import until

ROUNDS = size(short=30, full=10_000)
TOGETHER = 10
MILLISECONDS = 5


def registry() -> Registry:
    """A handler that takes a few milliseconds."""
    mine = Registry()

    @handler("before", registry=mine)
    async def before() -> str:
        await asyncio.sleep(MILLISECONDS / 1000)
        return "done"

    return mine


@asynccontextmanager
async def role(run: Any, *what: Any, **fields: Any) -> AsyncIterator[None]:
    stop = asyncio.Event()
    ready = asyncio.Event()
    running = asyncio.create_task(run(*what, stop=stop, on_ready=lambda _: ready.set(), **fields))
    await until(lambda: ready.is_set() or running.done())
    try:
        yield
    finally:
        stop.set()
        await running


def on_redis(scenario: Callable[[Service, Settings], Awaitable[None]], **times: float) -> None:
    """`times` are those of the orchestrator."""

    async def main() -> None:
        settings = Settings(
            store=redis_url(),
            database=database_url(2),
            shutdown_grace_seconds=1.0,
            lease_seconds=1.0,
        )
        handlers = registry()
        async with AsyncExitStack() as stack:
            stores = await stack.enter_async_context(open_scaled(settings))
            timing = replace(OrchestratorTiming.of(settings), **times)
            deciding = role(run_orchestrator, settings, registry=Registry(), timing=timing)
            await stack.enter_async_context(deciding)
            await stack.enter_async_context(role(run_worker, settings, handlers, ()))
            service = service_over(stores, settings, handlers)
            stack.push_async_callback(service.close)
            await scenario(service, settings)

    asyncio.run(main())


async def start(service: Service, *nodes: dict[str, Any]) -> str:
    request = StartRequest(workflow={"name": "waits", "nodes": list(nodes)})
    return (await service.submissions.submit(request)).execution_id


def waits(name: str, *dependencies: str, **config: Any) -> dict[str, Any]:
    return {
        "id": name,
        "handler": "signal",
        "depends_on": list(dependencies),
        "config": {"name": "go", **config},
    }


async def until_waiting(service: Service, execution_id: str, node_id: str) -> None:
    async def is_waiting() -> bool:
        run = (await service.executions.stored(execution_id)).runs.get(node_id)
        return run is not None and run.state == "WAITING"

    await until(is_waiting)


@explored
def test_a_signal_at_any_moment_around_the_beginning_of_its_wait_is_taken_once() -> None:
    """One goes to the execution, one to its correlation."""
    random = Random(17)

    async def scenario(service: Service, _settings: Settings) -> None:
        turns = asyncio.Semaphore(TOGETHER)

        async def race(number: int) -> None:
            async with turns:
                before = {"id": "before", "handler": "before"}
                key = f"order-{number}"
                second = waits("second", "before", correlation=key)
                second["config"]["name"] = "post"
                execution_id = await start(service, before, waits("first", "before"), second)
                await asyncio.sleep(random.uniform(0, 2 * MILLISECONDS / 1000))
                await service.signals.send(execution_id, "go", number)
                await service.signals.post("post", key, number)
                ended = await service.executions.end(execution_id, 60)
                assert ended is not None
                assert ended.record.state == "COMPLETED"
                items = await service.signals.listed(execution_id)
                takers = sorted(str(item.node_id) for item in items)
                assert takers == ["first", "second"], "each is taken by one"

        await asyncio.gather(*(race(number) for number in range(ROUNDS)))

    on_redis(scenario)


def test_waits_and_signals_survive_the_loss_of_all_data_in_redis() -> None:
    async def scenario(service: Service, settings: Settings) -> None:
        nap = {"id": "nap", "handler": "wait", "config": {"seconds": 3}}
        late = waits("late", "nap")
        ask = {"id": "ask", "handler": "approval", "config": {"title": "Go on?"}}
        execution_id = await start(service, nap, late, ask)
        await until_waiting(service, execution_id, "ask")
        await service.signals.send(execution_id, "go", "early")

        client = redis.asyncio.from_url(settings.store)
        await client.flushdb()
        await client.aclose()

        async def is_back() -> bool:
            stored = await service.executions.stored(execution_id)
            return stored.record.generation > 1

        await until(is_back, seconds=60)
        await until_waiting(service, execution_id, "ask")

        async def is_listed() -> bool:
            items, _ = await service.approvals.inbox(Decider())
            return [item.execution_id for item in items] == [execution_id]

        await until(is_listed)
        await service.approvals.decide(execution_id, "ask", "approved", Decider("Ada"))
        ended = await service.executions.end(execution_id, 60)
        assert ended is not None
        assert ended.record.state == "COMPLETED"
        (item,) = await service.signals.listed(execution_id)
        assert (item.node_id, item.state) == ("late", "taken")

    on_redis(scenario)
