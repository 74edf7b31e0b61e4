"""Statistics: how much is read for them, and how often."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, cast

import pytest

import penstock
from penstock.errors import NotFound, SchemaMismatch
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.owner import PartitionOwner
from penstock.service import statistics
from penstock.service.fleet import EmbeddedFleet, Fleet
from penstock.service.statistics import Statistics
from penstock.stores.base import Stored
from penstock.views.statistics import Stats
from penstock.worker.runtime import Worker
from tests.orchestrator.desk import Desk as OwnersDesk
from tests.orchestrator.desk import node

CHAIN = {
    "name": "chain",
    "nodes": [
        {"id": "a", "handler": "echo"},
        {"id": "b", "handler": "echo", "dependencies": ["a"]},
    ],
}


class Desk:
    """An engine, and which executions its store was asked for."""

    def __init__(self, engine: penstock.Engine) -> None:
        self.engine = engine
        self.statistics = fresh(engine)
        self.fleet: Fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
        self.read: list[str] = []
        self.unreadable: set[str] = set()
        self._real = engine.stores.cold.executions.execution
        engine.stores.cold.executions.execution = self._execution  # type: ignore[method-assign]

    async def _execution(self, execution_id: str) -> Stored | None:
        self.read.append(execution_id)
        if execution_id in self.unreadable:
            raise SchemaMismatch("from the future")
        return await self._real(execution_id)

    async def run(self, document: Any, count: int = 1) -> list[str]:
        handles = [await self.engine.start(document) for _ in range(count)]
        for handle in handles:
            await handle.result()
        self.read.clear()
        return [handle.id for handle in handles]

    async def overview(self, buckets: int = 60) -> Stats:
        """As one who asks after the last answer has grown old."""
        self.statistics._overviews._cached.clear()
        return await self.statistics.overview(3600, buckets, self.fleet)


def fresh(engine: penstock.Engine) -> Statistics:
    service = engine.service
    return Statistics(engine.stores.cold, engine.stores.hot.now, service.workflows, service.plans)


def with_desk(scenario: Any) -> None:
    async def main() -> None:
        async with penstock.Engine("memory://") as engine:
            await scenario(Desk(engine))

    asyncio.run(main())


def test_an_execution_is_read_once_for_its_hops() -> None:
    async def scenario(desk: Desk) -> None:
        await desk.run(CHAIN)
        first = await desk.overview()
        assert first.hops.samples == 2
        assert len(desk.read) == 1
        assert (await desk.overview()).hops.samples == 2
        assert len(desk.read) == 1

    with_desk(scenario)


def test_no_more_hops_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(desk: Desk) -> None:
        monkeypatch.setattr(statistics, "REMEMBERED_HOPS", 1)
        await desk.run(CHAIN)
        await desk.run({**CHAIN, "name": "other"})
        assert (await desk.overview()).hops.samples == 4
        assert len(desk.statistics._hops) == 1

    with_desk(scenario)


def test_large_executions_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(desk: Desk) -> None:
        monkeypatch.setattr(statistics, "HOP_RUNS", 2)
        monkeypatch.setattr(statistics, "READS_AT_ONCE", 1)
        for name in ("one", "two", "three"):
            await desk.run({**CHAIN, "name": name})
        samples = [(await desk.overview()).hops.samples for _ in range(4)]
        assert samples == [2, 4, 6, 6]
        assert len(desk.read) == 3

    with_desk(scenario)


def test_a_workflow_is_read_up_to_a_number_of_node_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(desk: Desk) -> None:
        monkeypatch.setattr(statistics, "WORKFLOW_RUNS", 4)
        monkeypatch.setattr(statistics, "READS_AT_ONCE", 1)
        names = await desk.run(CHAIN, 5)
        assert (await desk.statistics.workflow("chain", None, 5)).sampled == 2
        assert desk.read == names[:-3:-1], "the newest"

    with_desk(scenario)


def test_one_that_can_not_be_read_does_not_hide_the_others() -> None:
    async def scenario(desk: Desk) -> None:
        names = await desk.run(CHAIN, 3)
        desk.unreadable = {names[-1]}
        assert (await desk.statistics.workflow("chain", None, 10)).sampled == 2
        await desk.run({**CHAIN, "name": "other"})
        hops = (await desk.overview()).hops
        assert hops.samples >= 2

    with_desk(scenario)


def test_many_who_ask_at_once_cost_one_count() -> None:
    async def scenario(desk: Desk) -> None:
        real, counted = desk.engine.stores.cold.counts.count_created, 0

        async def counting(*arguments: Any) -> Any:
            nonlocal counted
            counted += 1
            return await real(*arguments)

        desk.engine.stores.cold.counts.count_created = counting  # type: ignore[method-assign,assignment]
        answers = await asyncio.gather(
            *(desk.statistics.overview(3600, 60, desk.fleet) for _ in range(50))
        )
        assert counted == 1
        assert all(answer is answers[0] for answer in answers)
        await desk.statistics.overview(3600, 30, desk.fleet)
        assert counted == 2

    with_desk(scenario)


def test_a_workflow_that_comes_later_is_found_then() -> None:
    async def scenario(desk: Desk) -> None:
        with pytest.raises(NotFound):
            await desk.statistics.workflow("chain", None, 10)
        await desk.run(CHAIN)
        assert (await desk.statistics.workflow("chain", None, 10)).sampled == 1

    with_desk(scenario)


def test_the_inbox_is_what_the_owners_have_not_committed() -> None:
    async def scenario() -> None:
        desk = OwnersDesk()
        owner = await desk.own()
        fleet = EmbeddedFleet(
            desk.stores, cast("Worker", None), cast("Orchestrator", Owning({0: owner}))
        )
        for _ in range(3):
            await desk.start([node("a")])
        assert await fleet.inbox() == 3
        await desk.drain(owner)
        assert await fleet.inbox() == 0

    asyncio.run(scenario())


class Owning(NamedTuple):
    owned: dict[int, PartitionOwner]
