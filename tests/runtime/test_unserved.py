"""Tasks that nobody runs show in /health, on the node and in the list of queues, on every store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from penstock import Engine, Registry, handler
from penstock.api.app import create_app
from penstock.config import Settings
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.runtime import open_scaled, run_orchestrator, run_worker, service_over
from penstock.runtime.timing import EngineTiming
from penstock.service import Service
from penstock.service.fleet import EmbeddedFleet, Fleet, ScaledFleet
from penstock.service.timing import ServiceTiming
from tests.api.asgi import call
from tests.servers import database_url, redis_url
from tests.waiting import until

JSON = {"Content-Type": "application/json"}


SERVICE_TIMING = ServiceTiming(offers_fresh_seconds=0.0)
"""Nothing is read from a memory of a second ago."""


def quick(settings: Settings) -> OrchestratorTiming:
    """The owners look often."""
    return replace(
        OrchestratorTiming.of(settings),
        routing_seconds=0.05,
        backlog_seconds=0.05,
        untaken_seconds=0.04,
    )


def engine_on(address: str, settings: Settings, registry: Registry) -> Engine:
    timing = EngineTiming(orchestrator=quick(settings), service=SERVICE_TIMING)
    return Engine(address, settings=settings, registry=registry, timing=timing)


class Site:
    """An API; with Redis, an orchestrator that has no handlers of its own."""

    def __init__(self, service: Service, fleet: Fleet, settings: Settings) -> None:
        self.settings = settings
        self.service = service
        self._app = create_app(service, fleet, settings, version="1")

    async def get(self, target: str) -> Any:
        return (await call(self._app, "GET", target)).json

    async def health(self) -> tuple[int, dict[str, Any]]:
        answer = await call(self._app, "GET", "/health")
        return answer.status, answer.json

    async def start(self, name: str, **fields: Any) -> str:
        document = {"name": "flow", "nodes": [{"id": "a", "handler": name, **fields}]}
        await self.service.workflows.put(document, allow_unknown_handlers=True)
        body = json.dumps({"workflow": "flow"}).encode()
        return str(
            (await call(self._app, "POST", "/api/v1/executions", JSON, body=body)).json[
                "execution_id"
            ]
        )

    async def node(self, execution_id: str) -> Any:
        return (await self.get(f"/api/v1/executions/{execution_id}"))["nodes"]["a"]

    async def until_reason(self, execution_id: str, reason: str | None) -> Any:
        async def has() -> Any:
            node = await self.node(execution_id)
            return node if node["state"] == "QUEUED" and node["reason"] == reason else None

        return await until(has, f"the node to wait because of {reason}")

    async def until_status(self, status: str) -> Any:
        async def has() -> Any:
            _, health = await self.health()
            return health if health["status"] == status else None

        return await until(has, f"/health to say {status}")

    async def until_state(self, execution_id: str, state: str) -> Any:
        async def has() -> Any:
            execution = await self.get(f"/api/v1/executions/{execution_id}")
            return execution if execution["state"] == state else None

        return await until(has, f"the execution to be {state}")


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


def on_redis(scenario: Callable[[Site], Awaitable[None]], **settings: Any) -> None:
    async def main() -> None:
        chosen = Settings(
            store=redis_url(), database=database_url(2), shutdown_grace_seconds=1.0, **settings
        )
        async with AsyncExitStack() as stack:
            stores = await stack.enter_async_context(open_scaled(chosen))
            deciding = role(run_orchestrator, chosen, registry=Registry(), timing=quick(chosen))
            await stack.enter_async_context(deciding)
            service = service_over(stores, chosen, Registry(), timing=SERVICE_TIMING)
            stack.push_async_callback(service.close)
            fleet = ScaledFleet(stores, chosen.worker_dead_seconds)
            await scenario(Site(service, fleet, chosen))

    asyncio.run(main())


def registry_with(name: str, **defaults: Any) -> Registry:
    registry = Registry()

    @handler(name, registry=registry, **defaults)
    async def done() -> str:
        return "done"

    return registry


def worker(site: Site, registry: Registry, *queues: str) -> Any:
    return role(run_worker, site.settings, registry, queues)


def test_without_a_worker_the_service_is_ready_and_its_health_is_degraded() -> None:
    async def scenario(site: Site) -> None:
        health = await site.until_status("degraded")
        assert (await site.health())[0] == 200
        assert health["checks"]["workers"]["ok"] is False
        assert health["checks"]["queues"] == {"ok": True}
        assert any("no worker is alive" in reason for reason in health["reasons"])
        assert await site.get("/health/ready") == {"status": "ok"}
        async with worker(site, Registry()):
            health = await site.until_status("ok")
            assert health["reasons"] == []

    on_redis(scenario)


def test_a_queue_that_nobody_serves_shows_everywhere_until_somebody_does() -> None:
    async def scenario(site: Site) -> None:
        registry = registry_with("paint")
        async with worker(site, registry):
            await site.until_status("ok")
            execution_id = await site.start("paint", queue="gpu")
            node = await site.until_reason(execution_id, "no_worker")
            assert (
                node["reason_text"] == "no live worker serves the queue 'gpu'; start one that does"
            )
            health = await site.until_status("degraded")
            assert health["checks"]["workers"]["ok"]
            (untaken,) = health["checks"]["queues"]["untaken"]
            assert (untaken["queue"], untaken["waiting"], untaken["reason"]) == (
                "gpu",
                1,
                "no_worker",
            )
            queues = {
                queue["queue"]: queue for queue in (await site.get("/api/v1/queues"))["items"]
            }
            assert (queues["gpu"]["workers"], queues["gpu"]["reason"]) == (0, "no_worker")
            (graph,) = (await site.get(f"/api/v1/executions/{execution_id}/graph"))["nodes"]
            node_view = await site.get(f"/api/v1/executions/{execution_id}/nodes/a")
            assert graph["reason"] == node_view["reason"] == "no_worker"
            (alive,) = (await site.get("/api/v1/workers"))["items"]
            assert "paint" in alive["handlers"]
            async with worker(site, registry, "gpu"):
                await site.until_state(execution_id, "COMPLETED")
                await site.until_status("ok")
                assert (await site.node(execution_id))["reason"] is None

    on_redis(scenario)


def test_a_handler_that_nobody_of_the_queue_has_shows_and_ends_in_the_dead_letters() -> None:
    async def scenario(site: Site) -> None:
        async with worker(site, registry_with("draw"), "shared"):
            await site.until_status("ok")
            execution_id = await site.start("paint", queue="shared", retry={"max_attempts": 30})
            node = await site.until_reason(execution_id, "no_handler")
            assert (
                "no live worker of the queue 'shared' has the handler 'paint'"
                in node["reason_text"]
            )
            health = await site.until_status("degraded")
            assert "'paint'" in health["reasons"][0]
            ended = await site.until_state(execution_id, "FAILED")
            assert ended["error"]["category"] == "no_handler"
            assert ended["nodes"]["a"]["attempt"] == 1

            async def dead_letters() -> Any:
                return (await site.get("/api/v1/dead-letters"))["items"]

            (dead_letter,) = await until(dead_letters, "its dead letter to be archived")
            assert dead_letter["execution_id"] == execution_id
            await site.until_status("ok")

    on_redis(scenario, no_handler_seconds=1.0)


def test_a_worker_that_comes_in_time_takes_what_another_passed_over() -> None:
    async def scenario(site: Site) -> None:
        async with worker(site, registry_with("draw"), "shared"):
            execution_id = await site.start("paint", queue="shared", retry={"max_attempts": 1})
            await site.until_reason(execution_id, "no_handler")
            async with worker(site, registry_with("paint"), "shared"):
                ended = await site.until_state(execution_id, "COMPLETED")
                assert ended["nodes"]["a"]["attempt"] == 1

    on_redis(scenario)


def test_a_handler_that_moved_to_another_queue_takes_its_tasks_with_it() -> None:
    async def scenario(site: Site) -> None:
        async with worker(site, registry_with("paint", queue="old"), "elsewhere"):
            execution_id = await site.start("paint")
            await site.until_reason(execution_id, "no_worker")
        async with worker(site, registry_with("paint", queue="new"), "new"):
            assert (await site.until_state(execution_id, "COMPLETED"))["nodes"]["a"]["attempt"] == 1

    on_redis(scenario)


@pytest.mark.parametrize("store", ["memory://", "sqlite"])
def test_an_engine_without_the_handler_says_so_and_the_next_one_runs_it(
    store: str, tmp_path: Any
) -> None:
    """As a program that is deployed again, without its handler and then with it."""
    address = f"sqlite:///{tmp_path / 'work.db'}" if store == "sqlite" else store

    async def main() -> None:
        settings = Settings(shutdown_grace_seconds=1.0)
        async with engine_on(address, settings, registry_with("draw")) as engine:
            site = Site(
                engine.service,
                EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator),
                settings,
            )
            execution_id = await site.start("paint", retry={"max_attempts": 1})
            await site.until_reason(execution_id, "no_handler")
            health = await site.until_status("degraded")
            assert "'paint'" in health["reasons"][0]
            assert (await engine.status(execution_id)).nodes["a"]["reason"] == "no_handler"
            other = await engine.start({"name": "other", "nodes": [{"id": "a", "handler": "draw"}]})
            assert (await other.result()).completed
        if store == "sqlite":
            async with engine_on(address, settings, registry_with("paint")) as engine:
                result = await engine.execution(execution_id).result()
                assert (result.state, result.nodes["a"]["attempt"]) == ("COMPLETED", 1)

    asyncio.run(main())


def test_an_engine_that_never_gets_the_handler_fails_the_node_in_the_end() -> None:
    async def main() -> None:
        settings = Settings(no_handler_seconds=0.3)
        async with engine_on("memory://", settings, registry_with("draw")) as engine:
            document = {"name": "flow", "nodes": [{"id": "a", "handler": "paint"}]}
            await engine.service.workflows.put(document, allow_unknown_handlers=True)
            result = await (await engine.start("flow")).result()
            assert result.error is not None
            assert result.error["category"] == "no_handler"

    asyncio.run(main())
