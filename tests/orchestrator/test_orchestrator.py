"""Orchestrators at work: several of them, and on stores that fail, in memory and on a file."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine, Registry
from penstock.config import Settings
from penstock.contract.facts import new_intent
from penstock.errors import StoreUnavailable
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.runtime.timing import EngineTiming
from penstock.stores.base import Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.memory import MemoryStores
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import Search
from penstock.stores.sqlite import SqliteStores
from penstock.worker.context import Context
from penstock.worker.registry import Handler
from tests.orchestrator.desk import QUICK, WORK, quick
from tests.waiting import PATIENCE_SECONDS, until

RETRY = {"max_attempts": 2, "initial_delay_seconds": 0, "jitter_seconds": 0}
DIAMOND = {
    "name": "diamond",
    "defaults": {"retry": RETRY},
    "nodes": [
        {"id": "a", "handler": "work"},
        {"id": "b", "handler": "work", "dependencies": ["a"]},
        {"id": "c", "handler": "work", "dependencies": ["a"]},
        {"id": "d", "handler": "work", "dependencies": ["b", "c"]},
    ],
}
Opened = Callable[[Path], Stores]
OPENED: dict[str, Opened] = {
    "memory": lambda _: MemoryStores(time.time),
    "memory with 8 partitions": lambda _: MemoryStores(time.time, 8),
    "sqlite": lambda folder: SqliteStores(folder / "store.db"),
}
on_stores = pytest.mark.parametrize("opened", list(OPENED.values()), ids=list(OPENED))


class Shop:
    """An engine, the calls that its handler saw, and the faults that its store's commits have."""

    def __init__(self, stores: Stores, timing: OrchestratorTiming) -> None:
        self.stores = stores
        self.calls: Counter[tuple[str, str, int]] = Counter()
        self.release = asyncio.Event()
        registry = Registry([Handler("work", self._work), Handler("linger", self._wait)])
        self.engine = Engine(
            stores,
            registry=registry,
            settings=Settings(),
            built_in=False,
            timing=EngineTiming(orchestrator=timing),
        )
        self.failed = 0
        self._commit = stores.hot.commit

    async def _work(self, _config: Any, ctx: Context) -> None:
        self.calls[ctx.execution_id, ctx.node_id, ctx.attempt] += 1

    async def _wait(self, _config: Any, ctx: Context) -> None:
        self.calls[ctx.execution_id, ctx.node_id, ctx.attempt] += 1
        await self.release.wait()

    def fail_commits(self, decide: Callable[[CommitPlan], str | None]) -> None:
        """`before`: it fails and nothing is done; `after`: it is done, and its answer gets lost."""

        async def fail(plan: CommitPlan) -> None:
            when = decide(plan)
            if when != "before":
                await self._commit(plan)
            if when is not None:
                self.failed += 1
                raise StoreUnavailable("no answer")

        self.stores.hot.commit = fail  # type: ignore[method-assign]

    def slow_down_commits(self, seconds: float) -> None:
        async def slow(plan: CommitPlan) -> None:
            await asyncio.sleep(seconds)
            await self._commit(plan)

        self.stores.hot.commit = slow  # type: ignore[method-assign]


@asynccontextmanager
async def _shop(stores: Stores, timing: OrchestratorTiming = QUICK) -> AsyncIterator[Shop]:
    shop = Shop(stores, timing)
    async with shop.engine:
        yield shop


@on_stores
@pytest.mark.parametrize("when", ["before", "after"])
def test_commits_that_fail_or_whose_answer_is_lost_cost_no_execution_and_no_second_call(
    opened: Opened, when: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _shop(opened(tmp_path)) as shop:
            turns = iter(range(10_000))
            shop.fail_commits(lambda _: when if next(turns) % 2 else None)
            started = [await shop.engine.start(DIAMOND) for _ in range(20)]
            async with asyncio.timeout(PATIENCE_SECONDS):
                results = await asyncio.gather(*(execution.result() for execution in started))
            assert {result.state for result in results} == {"COMPLETED"}
            assert shop.failed >= 2
            assert set(shop.calls.values()) == {1}
            assert len(shop.calls) == 4 * 20, "no attempt was lost either"

    asyncio.run(scenario())


@on_stores
def test_a_result_comes_even_if_the_answer_to_the_last_commit_was_lost(
    opened: Opened, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _shop(opened(tmp_path)) as shop:
            shop.fail_commits(lambda plan: "after" if plan.ended else None)
            execution = await shop.engine.start(DIAMOND)
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                assert (await execution.result()).state == "COMPLETED"
            assert shop.failed

    asyncio.run(scenario())


@on_stores
def test_a_handler_that_runs_while_the_owner_starts_again_keeps_its_attempt(
    opened: Opened, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _shop(opened(tmp_path)) as shop:
            document = {"name": "w", "nodes": [{"id": "a", "handler": "linger", "retry": RETRY}]}
            waiting = await shop.engine.start(document)

            async def is_running() -> bool:
                return bool((await waiting.status()).nodes["a"]["state"] == "RUNNING")

            await until(is_running)
            left = iter(["before"])
            shop.fail_commits(lambda _: next(left, None))
            other = await shop.engine.start(DIAMOND)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert (await other.result()).completed
                assert shop.failed == 1
                shop.release.set()
                result = await waiting.result()
            assert result.completed
            assert result.nodes["a"]["attempt"] == 1
            assert shop.calls[waiting.id, "a", 1] == 1
            assert sum(shop.calls.values()) == 5

    asyncio.run(scenario())


@on_stores
def test_an_owner_that_breaks_is_followed_by_another(
    opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with _shop(opened(tmp_path)) as shop:
            next_due = shop.stores.hot.next_due
            left = iter(range(3))

            async def breaks(partition: int) -> float | None:
                if next(left, None) is not None:
                    raise RuntimeError("a bug")
                return await next_due(partition)

            shop.stores.hot.next_due = breaks  # type: ignore[method-assign]
            execution = await shop.engine.start(DIAMOND)
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert (await execution.result()).completed

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "a bug" in caplog.text


def _orchestrator(stores: Stores, name: str, lease_seconds: float) -> Orchestrator:
    return Orchestrator(
        stores,
        PlanCache(stores.cold, lambda: WORK),
        inline_max_bytes=10_000,
        name=name,
        timing=quick(lease_seconds=lease_seconds),
    )


def test_every_partition_has_one_owner_and_all_are_taken_over_when_it_stops() -> None:
    async def scenario() -> None:
        stores = MemoryStores(time.time, 8)
        first, second = (_orchestrator(stores, name, 0.2) for name in ("first", "second"))
        first.start()
        await until(lambda: len(first.owned) == 8)
        second.start()
        await until(lambda: len(second.owned) == 4)
        assert len(first.owned) == 4
        assert not first.owned.keys() & second.owned.keys()
        await first.stop()
        await until(lambda: len(second.owned) == 8)
        assert not first.owned
        await second.stop()
        assert all(partition_state.lease is None for partition_state in stores.hot._partitions)

    asyncio.run(scenario())


def test_a_lease_is_kept_through_a_long_decision() -> None:
    async def scenario() -> None:
        stores = MemoryStores(time.time)
        orchestrator = _orchestrator(stores, "first", 0.1)
        orchestrator.start()
        await until(lambda: orchestrator.owned)
        owner = orchestrator.owned[0]
        end = time.time() + 0.4

        async def refused() -> bool:
            assert await stores.hot.acquire(0, "second", 1.0) is None
            return time.time() > end

        await until(refused)
        assert orchestrator.owned == {0: owner}
        await orchestrator.stop()

    asyncio.run(scenario())


def test_an_owner_that_lost_its_lease_ends_without_a_commit() -> None:
    async def scenario() -> None:
        stores = MemoryStores(time.time)
        orchestrator = _orchestrator(stores, "first", 0.1)
        orchestrator.start()
        await until(lambda: orchestrator.owned)
        stores.hot._partitions[0].lease = None
        thief = await stores.hot.acquire(0, "thief", 60.0)
        assert thief is not None
        await until(lambda: not orchestrator.owned)
        assert await stores.hot.renew(thief, 60.0), "it must not release what it doesn't hold"
        await orchestrator.stop()
        assert await stores.hot.renew(thief, 60.0)

    asyncio.run(scenario())


def test_two_orchestrators_share_the_work_and_one_that_dies_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dies: it neither renews nor releases anything any more."""

    async def scenario() -> None:
        stores = MemoryStores(time.time, 8)
        async with _shop(stores, quick(lease_seconds=0.2)) as shop:
            names = [(await shop.engine.start(DIAMOND)).id for _ in range(30)]
            other = _orchestrator(stores, "other", 0.2)
            other.start()
            await shop.engine.orchestrator.recovered.wait()
            for work in shop.engine.orchestrator._tasks:
                work.cancel()
            monkeypatch.setattr(stores.hot, "release", _nothing)

            async def are_all_over() -> bool:
                return len(await stores.cold.executions.search(Search(limit=1000))) == len(
                    names
                ) and not any(
                    [await stores.cold.executions.started(partition) for partition in range(8)]
                )

            await until(are_all_over)
            assert set(shop.calls.values()) == {1}
            assert len(shop.calls) == 4 * len(names)
            await other.stop()

    async def _nothing(_lease: Any) -> None: ...

    asyncio.run(scenario())


@on_stores
def test_an_accepted_execution_whose_start_was_lost_runs(opened: Opened, tmp_path: Path) -> None:
    async def scenario() -> None:
        stores = opened(tmp_path)
        if not stores.topology.tasks_are_durable:
            await _store_only(stores)
        async with _shop(stores, quick(reconcile_seconds=0.02)) as shop:
            if stores.topology.tasks_are_durable:
                await shop.engine.orchestrator.recovered.wait()
                await _store_only(stores)

            async def is_over() -> bool:
                stored = await stores.cold.executions.execution("e1")
                return stored is not None and stored.record.state == "COMPLETED"

            await until(is_over)

    async def _store_only(stores: Stores) -> None:
        document = b'{"name": "report", "nodes": [{"id": "a", "handler": "work"}]}'
        await stores.cold.definitions.put_workflow("report", "hash", document, 1.0)
        await stores.cold.executions.record_intents([new_intent("e1")])

    asyncio.run(scenario())


def test_what_finishes_within_the_grace_period_of_a_clean_stop_is_recorded(tmp_path: Path) -> None:
    """The handler has run and its outcome was reported.

    The next process must not run it again.
    """

    async def stop_while_it_runs() -> list[str]:
        shop = Shop(SqliteStores(tmp_path / "store.db"), QUICK)
        async with shop.engine:
            last = {"id": "b", "handler": "work", "dependencies": ["a"]}
            document = {"name": "w", "nodes": [{"id": "a", "handler": "linger"}, last]}
            names = [(await shop.engine.start(document)).id for _ in range(20)]
            await until(lambda: len(shop.calls) == 20)
            shop.slow_down_commits(0.1)
            asyncio.get_running_loop().call_later(0.05, shop.release.set)
        return names

    async def look(names: list[str]) -> None:
        stores = SqliteStores(tmp_path / "store.db")
        loaded = await stores.hot.load(names)
        states = Counter(str(stored.runs["a"].state) for stored in loaded.values())
        orphans = set(stores.queue.orphans())
        await stores.close()
        assert states == {"COMPLETED": 20}
        assert orphans == set()

    asyncio.run(look(asyncio.run(stop_while_it_runs())))
