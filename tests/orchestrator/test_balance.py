"""Partitions are shared out evenly among the orchestrators that live."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.engine.events import Continued
from penstock.errors import StoreUnavailable
from penstock.orchestrator import balance
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.reaper import Reaper
from penstock.stores.base import Lease
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from tests.orchestrator.desk import WORK, quick
from tests.waiting import let_others_run, until


@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_shares_are_even_and_make_up_the_whole(partitions: int, count: int) -> None:
    names = [f"o{number}" for number in range(count)]
    shares = [balance.share(partitions, names, name) for name in names]
    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_what_each_prefers_is_as_much_as_its_share_and_nobody_elses(count: int) -> None:
    names = [f"o{number}" for number in range(count)]
    first = [
        tuple(balance.by_preference(range(8), names, name)[: balance.share(8, names, name)])
        for name in names
    ]
    assert sorted(partition for partitions in first for partition in partitions) == list(range(8))


class Fleet:
    """Orchestrators on one store, and how often a partition was given to somebody."""

    def __init__(self, lease_seconds: float = 0.25) -> None:
        self._timing = quick(lease_seconds=lease_seconds)
        self.stores = MemoryStores(time.time, 8)
        self.members: list[Orchestrator] = []
        self.given = 0
        acquire = self.stores.hot.acquire

        async def counted(partition: int, owner: str, seconds: float) -> Lease | None:
            lease = await acquire(partition, owner, seconds)
            self.given += lease is not None
            return lease

        self.stores.hot.acquire = counted  # type: ignore[method-assign]

    def join(self, name: str) -> Orchestrator:
        plans = PlanCache(self.stores.cold, lambda: WORK)
        orchestrator = Orchestrator(
            self.stores, plans, inline_max_bytes=10_000, name=name, timing=self._timing
        )
        self.members.append(orchestrator)
        orchestrator.start()
        return orchestrator

    def shares(self) -> list[int]:
        return [len(member.owned) for member in self.members]

    async def is_shared(self, *shares: int) -> None:
        await until(lambda: self.shares() == list(shares), f"{shares}")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        yield
        for member in self.members:
            await member.stop()


def test_one_that_joins_gets_its_share_and_one_that_leaves_gives_it_back() -> None:
    async def scenario() -> None:
        fleet = Fleet()
        async with fleet.open():
            fleet.join("b")
            await fleet.is_shared(8)
            fleet.join("c")
            await fleet.is_shared(4, 4)
            fleet.join("a")
            await fleet.is_shared(3, 2, 3)
            await fleet.members[0].stop()
            await fleet.is_shared(0, 4, 4)

    asyncio.run(scenario())


def test_the_only_one_has_everything_after_its_first_look() -> None:
    async def scenario() -> None:
        stores = MemoryStores(time.time, 8)
        plans = PlanCache(stores.cold, lambda: WORK)
        orchestrator = Orchestrator(stores, plans, inline_max_bytes=10_000)
        orchestrator.start()
        await let_others_run()
        assert len(orchestrator.owned) == 8
        await orchestrator.stop()

    asyncio.run(scenario())


def test_those_that_begin_together_move_no_partition_more_than_once() -> None:
    async def scenario() -> None:
        fleet = Fleet()
        async with fleet.open():
            for name in ("a", "b", "c"):
                fleet.join(name)
            await fleet.is_shared(3, 3, 2)
            moves = fleet.given
            assert moves <= 16
            end = time.time() + 0.6
            await until(lambda: time.time() > end)
            assert fleet.given == moves, "they go back and forth"
            assert fleet.shares() == [3, 3, 2]

    asyncio.run(scenario())


def test_a_dead_ones_partitions_are_shared_out_among_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        fleet = Fleet()
        async with fleet.open():
            dead = fleet.join("a")
            fleet.join("b")
            fleet.join("c")
            await fleet.is_shared(3, 3, 2)
            release = fleet.stores.hot.release

            async def none_of_the_dead(lease: Lease) -> None:
                if lease.owner != "a":
                    await release(lease)

            monkeypatch.setattr(fleet.stores.hot, "release", none_of_the_dead)
            for task in dead._tasks:
                task.cancel()
            await fleet.is_shared(0, 4, 4)
            assert fleet.stores.hot.fenced == 0

    asyncio.run(scenario())


def test_a_partition_is_given_up_only_after_its_commit_has_landed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or the commit would be refused, and everything in it decided once more."""

    async def scenario() -> None:
        fleet = Fleet(lease_seconds=1.0)
        commit = fleet.stores.hot.commit
        may_land = asyncio.Event()
        under_way = 0

        async def slow(plan: CommitPlan) -> None:
            nonlocal under_way
            under_way += 1
            await may_land.wait()
            await commit(plan)

        monkeypatch.setattr(fleet.stores.hot, "commit", slow)
        async with fleet.open():
            first = fleet.join("a")
            await fleet.is_shared(8)
            for partition_state in fleet.stores.hot._partitions:
                partition_state.inbox.append([Continued("nobody")])
            await until(lambda: under_way == 8)
            fleet.join("b")
            await until(lambda: len(first._leaving) == 4)
            await let_others_run()
            assert fleet.shares() == [8, 0]
            may_land.set()
            await fleet.is_shared(4, 4)
            assert fleet.stores.hot.fenced == 0

    asyncio.run(scenario())


def test_an_orchestrator_that_cannot_reach_the_store_owns_nothing_when_its_leases_have_ended() -> (
    None
):
    async def scenario() -> None:
        fleet = Fleet(lease_seconds=0.1)
        async with fleet.open():
            lost = fleet.join("a")
            await fleet.is_shared(8)
            with pytest.MonkeyPatch.context() as outage:
                for name in ("renew", "announce", "acquire"):
                    outage.setattr(fleet.stores.hot, name, _unreachable)
                await until(lambda: not lost.owned)
            await fleet.is_shared(8)

    asyncio.run(scenario())


def test_a_store_that_does_not_answer_is_as_good_as_none() -> None:
    async def scenario() -> None:
        fleet = Fleet(lease_seconds=0.1)
        async with fleet.open():
            lost = fleet.join("a")
            await fleet.is_shared(8)
            with pytest.MonkeyPatch.context() as outage:
                outage.setattr(fleet.stores.hot, "renew", _silent)
                outage.setattr(fleet.stores.hot, "acquire", _unreachable)
                await until(lambda: not lost.owned)
            await fleet.is_shared(8)

    asyncio.run(scenario())


def test_a_part_of_an_owner_that_goes_on_when_it_is_to_end_keeps_no_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def goes_on(_self: Reaper) -> None:
        """As one does that takes its end for a failure of its own, and tries again."""
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def scenario() -> None:
        monkeypatch.setattr(Reaper, "run", goes_on)
        fleet = Fleet(lease_seconds=0.1)
        async with fleet.open():
            fleet.join("a")
            await fleet.is_shared(8)
            fleet.join("b")
            await fleet.is_shared(4, 4)

    asyncio.run(scenario())


async def _unreachable(*_: object) -> None:
    raise StoreUnavailable("no answer")


async def _silent(*_: object) -> None:
    await asyncio.Event().wait()
