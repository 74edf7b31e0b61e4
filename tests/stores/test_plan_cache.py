"""Plans are compiled once, and again only when the defaults of their handlers change."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.definition.model import HandlerDefaults, Retry
from penstock.definition.plan import Plan, compile_document
from penstock.errors import StoreUnavailable
from penstock.stores import plan_cache as module
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from tests.waiting import until

GPU = HandlerDefaults(Retry(max_attempts=7), 12.0, "gpu")
CPU = HandlerDefaults(queue="cpu")


def document(handler: str, **fields: Any) -> dict[str, Any]:
    return {"name": handler, "nodes": [{"id": "a", "handler": handler, **fields}]}


class Desk:
    def __init__(self, **known_here: HandlerDefaults) -> None:
        self.cold: Any = MemoryStores(lambda: 1000.0).cold
        self.plans = PlanCache(self.cold, lambda: known_here, learn_seconds=0.0)

    async def put(self, handler: str, **fields: Any) -> None:
        text = json.dumps(document(handler, **fields)).encode()
        await self.cold.definitions.put_workflow(handler, "hash", text, 1000.0)

    async def plan(self, name: str) -> Plan:
        return await self.plans.need(name, 1)


def at_a_desk(scenario: Callable[[Desk], Awaitable[None]], **known_here: HandlerDefaults) -> None:
    async def main() -> None:
        desk = Desk(**known_here)
        for name in ("resize", "other"):
            await desk.put(name)
        await scenario(desk)

    asyncio.run(main())


def asked_by(plan: Plan) -> HandlerDefaults:
    (node,) = plan.nodes
    return HandlerDefaults(node.retry, node.timeout_seconds, node.queue)


USUAL = HandlerDefaults(Retry(), 300.0, "resize")


def test_a_plan_has_what_workers_told_the_store() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.cold.definitions.remember_handlers({"resize": GPU})
        assert asked_by(await desk.plan("resize")) == GPU

    at_a_desk(scenario)


def test_what_the_document_says_goes_before() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.cold.definitions.remember_handlers({"mine": GPU})
        await desk.put("mine", queue="special", retry={"max_attempts": 1}, timeout_seconds=3)
        (node,) = (await desk.plan("mine")).nodes
        assert (node.queue, node.retry.max_attempts, node.timeout_seconds) == ("special", 1, 3)

    at_a_desk(scenario)


def test_the_store_knows_better_than_a_process_and_a_process_better_than_nobody() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.cold.definitions.remember_handlers({"resize": GPU})
        assert asked_by(await desk.plan("resize")) == GPU
        assert (await desk.plan("other")).nodes[0].queue == "cpu"

    at_a_desk(scenario, resize=CPU, other=CPU)


def test_a_worker_that_came_after_the_last_plan_is_known_to_the_next() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.plan("other")
        await desk.cold.definitions.remember_handlers({"resize": GPU})
        assert asked_by(await desk.plan("resize")) == GPU

    at_a_desk(scenario)


def test_only_plans_whose_handlers_ask_for_something_else_are_compiled_again() -> None:
    async def scenario(desk: Desk) -> None:
        old = await desk.plan("resize")
        other = await desk.plan("other")
        await desk.cold.definitions.remember_handlers({"resize": GPU})
        assert await desk.plan("resize") is old  # nothing is read for an execution
        await desk.plans.learn()
        assert asked_by(await desk.plan("resize")) == GPU
        assert asked_by(old) == USUAL
        assert await desk.plan("other") is other
        new = await desk.plan("resize")
        await desk.cold.definitions.remember_handlers({"unused": CPU})
        await desk.plans.learn()
        assert await desk.plan("resize") is new

    at_a_desk(scenario)


def test_plans_of_large_documents_make_room_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLANS_BYTES_MAX", 1000)

    async def scenario(desk: Desk) -> None:
        small = await desk.plan("other")
        assert await desk.plan("other") is small
        for name in ("large-1", "large-2"):
            large = compile_document(document(name), allow_unknown_handlers=True).plan
            large.version = 1
            desk.plans.put(large, 2000)
            assert desk.plans.cached(name, 1) is large  # however large it is
        assert desk.plans.cached("other", 1) is None
        assert desk.plans.cached("large-1", 1) is None
        assert await desk.plan("other") is not small
        assert desk.plans.cached("large-2", 1) is None

    at_a_desk(scenario)


def test_a_plan_that_was_compiled_elsewhere_is_looked_at_once() -> None:
    async def scenario(desk: Desk) -> None:
        compiled = compile_document(document("resize"), allow_unknown_handlers=True).plan
        compiled.version = 1
        desk.plans.put(compiled)
        await desk.cold.definitions.remember_handlers({"resize": GPU})
        await desk.plans.learn()
        new = await desk.plan("resize")
        assert asked_by(new) == GPU
        await desk.plans.learn()
        assert await desk.plan("resize") is new

    at_a_desk(scenario)


def test_while_the_store_is_away_plans_stay_and_learning_goes_on_afterwards() -> None:
    async def scenario(desk: Desk) -> None:
        old = await desk.plan("resize")
        await desk.cold.definitions.remember_handlers({"resize": GPU})
        real = desk.cold.definitions.known_handlers
        refused: list[Exception] = []

        async def away() -> Any:
            refused.append(
                StoreUnavailable("PostgreSQL is away")
                if len(refused) % 2
                else RuntimeError("a bug")
            )
            raise refused[-1]

        desk.cold.definitions.known_handlers = away
        learning = asyncio.create_task(desk.plans.run_learning())
        await until(lambda: len(refused) > 3)
        assert await desk.plan("resize") is old
        desk.cold.definitions.known_handlers = real

        async def is_new() -> bool:
            return asked_by(await desk.plan("resize")) == GPU

        await until(is_new)
        learning.cancel()
        await asyncio.gather(learning, return_exceptions=True)

    at_a_desk(scenario)
