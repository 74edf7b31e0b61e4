"""What only waits leaves the owner's memory, and comes back as it was decided."""

import asyncio
from collections.abc import Collection

import pytest

from penstock.orchestrator.owner import REST_NODES, PartitionOwner
from penstock.stores.base import Stored
from penstock.stores.commit_plan import CommitPlan
from tests.orchestrator.desk import Desk, diamond, node
from tests.waiting import let_others_run


async def _rest(desk: Desk, owner: PartitionOwner) -> None:
    for _ in range(2):
        desk.now += desk.timing.rest_seconds
        await owner._let_go_in_time()


def test_what_only_waits_leaves_memory_and_goes_on_with_its_next_event() -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await desk.start(diamond())
        await desk.drain(owner)
        (first,) = await desk.fetch()
        await _rest(desk, owner)
        assert not owner._cache
        assert not owner._resting
        await desk.succeed([first])
        assert [task.node_id for task in await desk.work(owner)] == ["b", "c", "d"]
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_what_goes_on_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await desk.start(diamond())
        await desk.drain(owner)
        loaded: list[str] = []
        load = desk.stores.hot.load

        async def noting(names: Collection[str]) -> dict[str, Stored]:
            loaded.extend(names)
            return await load(names)

        monkeypatch.setattr(desk.stores.hot, "load", noting)
        for _ in range(3):
            desk.now += desk.timing.rest_seconds
            await owner._let_go_in_time()
            await desk.succeed(await desk.fetch())
            await desk.drain(owner)
        assert loaded == []
        assert await desk.state(name) == "COMPLETED"

    asyncio.run(scenario())


def test_an_execution_of_many_nodes_stays_in_memory() -> None:
    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        name = await desk.start([node(f"n{n}") for n in range(REST_NODES + 1)])
        await desk.drain(owner)
        await _rest(desk, owner)
        assert list(owner._cache) == [name]

    asyncio.run(scenario())


def test_nothing_leaves_memory_before_what_was_decided_has_landed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or its next event would be decided from what the store had before."""

    async def scenario() -> None:
        desk = Desk()
        owner = await desk.own()
        may_land = asyncio.Semaphore(0)
        commit = desk.stores.hot.commit

        async def slow(plan: CommitPlan) -> None:
            await may_land.acquire()
            await commit(plan)

        monkeypatch.setattr(desk.stores.hot, "commit", slow)
        for _ in range(2):  # the second batch is decided while the first is being written
            await desk.start(diamond())
            await desk.start(diamond())
            await owner._advance()
        desk.now += desk.timing.rest_seconds
        resting = asyncio.create_task(owner._let_go_in_time())
        for landed in range(2):
            await let_others_run()
            assert len(desk.changes) == landed
            assert len(owner._cache) == 4
            may_land.release()
        await resting
        assert (len(desk.changes), len(owner._resting)) == (2, 4)

    asyncio.run(scenario())
