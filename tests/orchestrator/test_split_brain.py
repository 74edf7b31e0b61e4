"""Two servers of the hot store, each with an owner for the same partition: only one counts."""

import asyncio
import logging
from dataclasses import replace

import pytest

from penstock.errors import Fenced
from penstock.stores.tiering import CLAIM_SECONDS
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import HOUR, TieredDesk, node, quick
from tests.waiting import let_others_run, until

TIMING = quick(
    claim_wait_seconds=0.01,
    claim_wait_seconds_max=0.02,
    claim_renew_seconds=0.02,
    rebuild_pause_seconds=0.0,
    checkpoint_seconds=1000.0,
)


def promoted(desk: TieredDesk) -> TieredDesk:
    """A replica of its hot store that is a master now, beside the same cold store."""
    other = TieredDesk(timing=desk.timing)
    other.stores.hot.become(desk.stores.hot.image())
    other.stores.hot.server_id = "server-2"
    other.stores.rows = desk.stores.rows
    other.stores.cold = desk.stores.cold
    other.stores.tiering.cold = desk.stores.tiering.cold
    other.plans = desk.plans
    return other


def test_an_owner_on_a_second_master_waits_and_builds_nothing_while_the_first_one_lives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=TIMING)
        owner = await desk.own("orchestrator-1")
        await desk.build(owner)
        await desk.start([node("a"), node("b", "a")])
        await desk.drain(owner)
        other = promoted(desk)
        await desk.succeed(await desk.fetch())
        await desk.drain(owner)
        await desk.checkpoint(owner)  # so that the other one is behind: it looks like time travel
        before = desk.stores.rows.rebuilds
        other.now = desk.now + 2 * HOUR  # its leases have run out there
        second = await other.own("orchestrator-2")
        building = asyncio.create_task(other.build(second))
        await until(lambda: "two masters" in caplog.text)
        assert not building.done()
        assert desk.stores.rows.rebuilds == before
        desk.now += CLAIM_SECONDS + 1
        assert await building == 1
        assert desk.stores.rows.rebuilds == before + 1
        with pytest.raises(Fenced):
            await desk.checkpoint(owner)

    with caplog.at_level(logging.WARNING, "penstock.orchestrator"):
        asyncio.run(scenario())


def test_orchestrators_on_two_masters_do_not_build_in_turns() -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=TIMING)
        metrics = Metrics()
        first = desk.orchestrator("one", metrics)
        first.start()
        ended = await desk.start([node("a")])
        name = await desk.start([node("a"), node("b", "a")])
        await until(lambda: desk.stores.queue.depth() == 2)
        other = promoted(desk)
        tasks = {task.execution_id: task for task in await desk.fetch()}
        await desk.succeed([tasks[ended]])
        await until(
            lambda: desk.row(ended).record.state == "COMPLETED",
            "the second master is behind the cold store",
        )
        other.now = desk.now + 2 * HOUR
        two = other.orchestrator("two", metrics)
        two.start()
        await until(lambda: 0 in two._lease_terms, "the other one has the lease there")
        await desk.succeed([tasks[name]])
        await until(lambda: desk.stores.queue.depth() or metrics.rebuilds > 1)
        await desk.succeed(await desk.fetch())
        await until(lambda: desk.row(name).record.state == "COMPLETED" or metrics.rebuilds > 1)
        await let_others_run()
        assert metrics.rebuilds == 1, "the first, of a new store"
        await first.stop()
        await until(lambda: metrics.rebuilds == 2, "the one that is left notices that it is behind")
        await two.stop()
        assert metrics.rebuilds == 2
        assert desk.row(name).record.state == "COMPLETED"

    asyncio.run(scenario())


def test_an_owner_whose_claim_was_taken_ends_though_it_has_nothing_to_copy() -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=TIMING)
        metrics = Metrics()
        orchestrator = desk.orchestrator("one", metrics)
        orchestrator.start()
        await orchestrator.recovered.wait()
        rows = desk.stores.rows
        rows.terms[0] += 1
        rows._holders[0] = ("two", "server-2", desk.now)
        await until(lambda: metrics.fenced == 1)
        desk.now += CLAIM_SECONDS + 1
        await until(
            lambda: rows._holders[0][0] == "one",
            "it has the partition again when the other one is gone",
        )
        await orchestrator.stop()

    asyncio.run(scenario())


def test_rebuilds_on_two_servers_are_some_time_apart() -> None:
    async def scenario() -> None:
        desk = TieredDesk(timing=replace(TIMING, rebuild_pause_seconds=1000.0))
        await desk.build(await desk.own("orchestrator-1"))
        other = promoted(desk)
        other.stores.hot._partitions[0].commit_number -= 1
        again = asyncio.create_task(other.build(await other.own("orchestrator-1")))
        await let_others_run()
        assert desk.stores.rows.rebuilds == 1
        again.cancel()
        desk.now += 1001.0
        await other.build(await other.own("orchestrator-1"))
        assert desk.stores.rows.rebuilds == 2

    asyncio.run(scenario())
