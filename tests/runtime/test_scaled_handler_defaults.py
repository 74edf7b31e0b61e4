"""Only workers import handlers; what a handler asks for counts in every process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from penstock import Context, Registry, Retry, handler
from penstock.config import Settings
from penstock.errors import InvalidWorkflow
from penstock.runtime import open_scaled, run_orchestrator, run_worker, service_over
from penstock.service.submissions import StartRequest
from penstock.views.executions import Execution
from tests.servers import database_url, redis_url
from tests.waiting import until

LEARN_SECONDS = 0.01
AT_ONCE: Any = {"initial_delay_seconds": 0.0, "jitter_seconds": 0.0}


class Site:
    """An API and an orchestrator that know no handlers; workers come and go."""

    def __init__(self, stack: AsyncExitStack, settings: Settings) -> None:
        self.stack = stack
        self.settings = settings

    async def open(self) -> None:
        stores = await self.stack.enter_async_context(open_scaled(self.settings))
        self.service = service_over(stores, self.settings, Registry())
        self.stack.push_async_callback(self.service.close)
        await self.stack.enter_async_context(
            self._role(
                run_orchestrator,
                self.settings,
                registry=Registry(),
                learn_seconds=LEARN_SECONDS,
            )
        )

    def worker(self, registry: Registry, queues: Collection[str] = ()) -> Any:
        return self._role(run_worker, self.settings, registry, queues)

    @asynccontextmanager
    async def _role(self, run: Any, *what: Any, **fields: Any) -> AsyncIterator[None]:
        stop = asyncio.Event()
        ready = asyncio.Event()
        running = asyncio.create_task(
            run(*what, stop=stop, on_ready=lambda _: ready.set(), **fields)
        )
        await until(lambda: ready.is_set() or running.done())
        try:
            yield
        finally:
            stop.set()
            await running

    async def start(self, name: str) -> str:
        workflow = {"name": name, "nodes": [{"id": "a", "handler": name}]}
        return (await self.service.submissions.submit(StartRequest(workflow=workflow))).execution_id

    async def end(self, execution_id: str) -> Execution:
        ended = await self.service.executions.end(execution_id, seconds=20)
        assert ended is not None, "it hasn't ended"
        return await self.service.executions.view(execution_id)


def on_site(scenario: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        settings = Settings(store=redis_url(), database=database_url(2), shutdown_grace_seconds=1.0)
        async with AsyncExitStack() as stack:
            site = Site(stack, settings)
            await site.open()
            await scenario(site)

    asyncio.run(main())


def shaky(calls: Counter[str], **defaults: Any) -> Registry:
    """One handler, which never manages."""
    registry = Registry()

    @handler("shaky", registry=registry, **defaults)
    async def never(_config: Any, context: Context) -> None:
        calls[context.execution_id] += 1
        raise RuntimeError("no")

    return registry


def test_its_queue_retries_and_time_out_count_where_nobody_has_imported_it() -> None:
    calls: Counter[str] = Counter()
    registry = shaky(calls, queue="gpu", retry=Retry(max_attempts=6, **AT_ONCE))

    @handler(
        "slow", registry=registry, queue="gpu", retry=Retry(max_attempts=1), timeout_seconds=0.05
    )
    async def slow() -> None:
        await asyncio.Event().wait()

    async def scenario(site: Site) -> None:
        # under its name nobody would take the task
        async with site.worker(registry, {"gpu"}):
            failed = await site.start("shaky")
            assert (await site.end(failed)).state == "FAILED"
            assert calls == {failed: 6}
            error = (await site.end(await site.start("slow"))).error
            assert error is not None
            assert error.category == "timeout"

    on_site(scenario)


def test_what_was_queued_before_anybody_knew_its_queue_is_taken_too() -> None:
    calls: Counter[str] = Counter()

    async def scenario(site: Site) -> None:
        with pytest.raises(InvalidWorkflow, match="shaky"):
            await site.start("shaky")
        document = {"name": "shaky", "nodes": [{"id": "a", "handler": "shaky"}]}
        await site.service.workflows.put(document, allow_unknown_handlers=True)
        early = (await site.service.submissions.submit(StartRequest(workflow="shaky"))).execution_id

        async def is_queued() -> bool:
            stored = await site.service.stores.cold.executions.execution(early)
            return stored is not None and "a" in stored.runs

        await until(is_queued)
        async with site.worker(shaky(calls, queue="gpu")):
            await until(lambda: calls[early])

    on_site(scenario)


def test_what_it_asks_for_later_counts_for_what_starts_later() -> None:
    calls: Counter[str] = Counter()

    async def scenario(site: Site) -> None:
        async with site.worker(shaky(calls, queue="gpu", retry=Retry(max_attempts=2, **AT_ONCE))):
            first = await site.start("shaky")
            await site.end(first)
            assert calls[first] == 2

        async def is_learned() -> bool:
            await site.start("shaky")
            return 3 in calls.values()

        async with site.worker(
            shaky(calls, queue="tpu", retry=Retry(max_attempts=3, **AT_ONCE)), {"tpu"}
        ):
            await until(is_learned)
            last = await site.start("shaky")
            await site.end(last)
            assert calls[last] == 3

    on_site(scenario)
