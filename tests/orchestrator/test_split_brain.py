"""Two servers of the hot store, each with an owner for the same partition.

Only one of them counts.
"""

import asyncio
import logging

import pytest

from penstock.errors import Fenced
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.tiering import checkpointer, partition, rebuild
from penstock.stores.tiering import CLAIM_SECONDS
from penstock.telemetry.metrics import Metrics
from tests.orchestrator.desk import HOUR, TieredDesk, node
from tests.waiting import let_others_run, until


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(rebuild, "WAIT_SECONDS_MAX", 0.02)
    monkeypatch.setattr(rebuild, "BACK_OFF_SECONDS", 0.0)
    monkeypatch.setattr(partition, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(checkpointer, "CHECKPOINT_SECONDS", 1000.0)
    monkeypatch.setattr("penstock.orchestrator.orchestrator.RETRY_SECONDS", 0.01)


def promoted(desk: TieredDesk) -> TieredDesk:
    """A replica of its hot store that is a master now, beside the same cold store."""
    other = TieredDesk()
    other.stores.hot.become(desk.stores.hot.image())
    other.stores.hot.server_id = "server-2"
    other.stores.rows, other.stores.cold = desk.stores.rows, desk.stores.cold
    other.stores.tiering.cold, other.plans = desk.stores.tiering.cold, desk.plans
    return other


def test_an_owner_on_a_second_master_waits_and_builds_nothing_while_the_first_one_lives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        desk = TieredDesk()
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
        desk, metrics = TieredDesk(), Metrics()
        first = Orchestrator(
            desk.stores, desk.plans, inline_max_bytes=1000, name="one", metrics=metrics
        )
        first.start()
        ended, name = await desk.start([node("a")]), await desk.start([node("a"), node("b", "a")])
        await until(lambda: desk.stores.queue.depth() == 2)
        other = promoted(desk)
        tasks = {task.execution_id: task for task in await desk.fetch()}
        await desk.succeed([tasks[ended]])
        await until(
            lambda: desk.row(ended).record.state == "COMPLETED",
            "the second master is behind the cold store",
        )
        other.now = desk.now + 2 * HOUR
        two = Orchestrator(
            other.stores, other.plans, inline_max_bytes=1000, name="two", metrics=metrics
        )
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
        desk, metrics = TieredDesk(), Metrics()
        first = Orchestrator(
            desk.stores, desk.plans, inline_max_bytes=1000, name="one", metrics=metrics
        )
        first.start()
        await first.recovered.wait()
        rows = desk.stores.rows
        rows.terms[0] += 1
        rows._holders[0] = ("two", "server-2", desk.now)
        await until(lambda: metrics.fenced == 1)
        desk.now += CLAIM_SECONDS + 1
        await until(
            lambda: rows._holders[0][0] == "one",
            "it has the partition again when the other one is gone",
        )
        await first.stop()

    asyncio.run(scenario())


def test_rebuilds_on_two_servers_are_some_time_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "BACK_OFF_SECONDS", 1000.0)

    async def scenario() -> None:
        desk = TieredDesk()
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
