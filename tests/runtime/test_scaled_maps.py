"""Maps and loops on Redis and PostgreSQL: they run, survive a new owner, and can be retried."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from penstock.config import Settings
from penstock.service.submissions import StartRequest
from penstock.views.executions import Execution
from penstock.worker.context import Context
from penstock.worker.registry import Handler, Registry
from tests.runtime.test_scaled_handler_defaults import Site
from tests.servers import database_url, redis_url


async def end_of(site: Site, execution_id: str) -> Execution:
    ended = await site.service.executions.end(execution_id, seconds=20)
    assert ended is not None, "it hasn't ended"
    return await site.service.executions.view(execution_id)


def test_maps_and_loops_run_on_redis_and_postgresql() -> None:
    broke = {2}

    async def pay(_config: Any, ctx: Context) -> dict[str, int]:
        if ctx.item in broke:
            raise RuntimeError("broke")
        return {"paid": ctx.item}

    body = [
        {"id": "pay", "handler": "pay", "retry": {"max_attempts": 1}},
        {
            "id": "large",
            "handler": "echo",
            "config": {"text": "x" * 300_000, "n": "{{ pay.paid }}"},
        },
    ]
    each = {"id": "each", "for_each": [1, 2, 3], "on_item_failure": "continue", "nodes": body}
    each["collect"] = "{{ large.n }}"
    count = {"handler": "transform", "config": {"expression": "round"}}
    loop = {"id": "loop", **count, "repeat": {"until": "loop.result == 3", "max_rounds": 5}}
    document = {"name": "scaled-map", "on_failure": "continue", "nodes": [each, loop]}

    async def scenario(site: Site) -> None:
        request = StartRequest(workflow=document)
        async with site.worker(Registry([Handler("pay", pay)])):
            started = await site.service.submissions.submit(request)
            view = await end_of(site, started.execution_id)
            assert view.state == "FAILED"
            assert view.output == {"loop": {"result": 3, "rounds": 3}}
            broke.clear()
            retry_id, plan = await site.service.retries.retry(started.execution_id)
            assert len(plan.items) == 2
            view = await end_of(site, retry_id)
            assert view.state == "COMPLETED"
            assert view.output["each"] == [1, 2, 3]

    async def main() -> None:
        settings = Settings(store=redis_url(), database=database_url(2), shutdown_grace_seconds=1.0)
        async with AsyncExitStack() as stack:
            site = Site(stack, settings)
            await site.open()
            await scenario(site)

    asyncio.run(main())
