"""Workers and orchestrators with other times than the defaults, and with different ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest

from penstock.config import Settings
from penstock.contract.facts import hand_out
from penstock.errors import SettingsError
from penstock.orchestrator.reaper import Reaper
from penstock.orchestrator.routing import Routing, live
from penstock.runtime import Engine
from penstock.stores.base import Offer
from penstock.stores.redis.queue import RedisTaskQueue
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import Desk, TieredDesk, look, node, quick
from tests.redis.stores_under_test import open_stores
from tests.waiting import until

ECHO = {"echo"}


def _offer(heartbeat_seconds: float, silent_seconds: float = 0.0) -> Offer:
    return Offer(
        "worker-1", ECHO, None, silent_seconds=silent_seconds, heartbeat_seconds=heartbeat_seconds
    )


def _reaped(dead_seconds: float, announced: float, silences: Sequence[float]) -> list[int]:
    """How many tasks were taken back after each of these further silences."""
    counts: list[int] = []

    async def scenario() -> None:
        stores = Desk().stores
        owner, _ = await hand_out(stores, "a")
        await stores.queue.fetch("worker-1", ECHO, 10)
        reaper = Reaper(
            stores.queue,
            owner.lease,
            timing=quick(worker_dead_seconds=dead_seconds),
            announced=lambda: {"worker-1": announced},
        )
        await look(reaper, 0.0)
        for seconds in silences:
            await look(reaper, seconds)
            counts.append(reaper.reaped)

    asyncio.run(scenario())
    return counts


def test_a_worker_is_dead_after_the_time_that_is_set() -> None:
    assert _reaped(1.0, 0.2, [0.9, 0.2]) == [0, 1]


def test_a_worker_that_announces_slow_heartbeats_is_given_three_of_them() -> None:
    assert _reaped(15.0, 10.0, [15.0, 14.0, 1.0]) == [0, 0, 1]


def test_a_worker_that_announces_slow_heartbeats_is_shown_as_live_for_as_long() -> None:
    assert live([_offer(10.0, silent_seconds=29.0)], 15.0)
    assert not live([_offer(10.0, silent_seconds=30.0)], 15.0)
    assert not live([_offer(0.0, silent_seconds=1.0)], 1.0)


def test_a_worker_whose_settings_disagree_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    offers = [_offer(5.0)]

    class Queue:
        async def offers(self) -> list[Offer]:
            return offers

    async def scenario() -> None:
        routing = Routing(Queue(), quick(worker_dead_seconds=15.0))  # type: ignore[arg-type]
        await routing.look()
        assert not caplog.records
        offers[:] = [_offer(10.0)]
        await routing.look()
        await routing.look()
        assert routing.announced == {"worker-1": 10.0}

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    (line,) = caplog.records
    assert line.getMessage() == (
        "the worker worker-1 sends a heartbeat every 10 s, "
        "and PENSTOCK_WORKER_DEAD_SECONDS is "
        "15 here: it is given "
        "30 s; give workers and orchestrators the same settings"
    )


def test_an_orchestrator_copies_and_archives_as_often_as_is_set() -> None:
    async def scenario() -> None:
        timing = quick(
            checkpoint_seconds=0.01, archive_seconds=0.01, lease_seconds=1.0, reconcile_seconds=0.05
        )
        desk = TieredDesk(timing=timing)
        metrics = Metrics()
        orchestrator = desk.orchestrator(metrics=metrics)
        orchestrator.start()
        name = await desk.start([node("a")])
        await until(desk.stores.queue.depth)
        await until(lambda: desk.row(name).record.state == "RUNNING")
        (lease_term,) = orchestrator._lease_terms.values()
        assert lease_term._timing is timing
        assert lease_term._tiering is not None
        assert lease_term._tiering._archiver._timing is timing
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(name).record.state == "COMPLETED")
        assert metrics.checkpointed
        await orchestrator.stop()

    asyncio.run(scenario())


def test_a_worker_on_redis_announces_its_heartbeats() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            await RedisTaskQueue(stores.server, 1, 2.5).heartbeat("worker-1", ECHO, [])
            await RedisTaskQueue(stores.server, 1).heartbeat("worker-2", ECHO, [])
            offers = await stores.queue.offers()
            announced = {offer.worker_id: offer.heartbeat_seconds for offer in offers}
            assert announced == {"worker-1": 2.5, "worker-2": 0.0}

    asyncio.run(scenario())


def test_an_engine_refuses_times_that_do_not_go_together() -> None:
    async def scenario() -> None:
        async with Engine("memory://", settings=Settings(lease_seconds=0.1)):
            pass

    with pytest.raises(SettingsError, match=r"lease_seconds is 0\.1, and must be at least 1"):
        asyncio.run(scenario())
