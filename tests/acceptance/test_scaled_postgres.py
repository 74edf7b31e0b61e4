"""PostgreSQL fails under real processes (G1).

Running executions go on, and nothing is accepted that isn't stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.stores.postgres.migrating import migrate
from tests.acceptance import regions, works
from tests.acceptance.outside import Effort, active, say
from tests.acceptance.plant import PARTITIONS, Plant, open_plant
from tests.acceptance.scenes import (
    KILLED,
    PAUSED,
    SHORT_SECONDS,
    STOPPED,
    Scene,
    assert_all_guarantees,
    idle_meanwhile,
    pause,
    play,
    refused_meanwhile,
    take_away,
    taken_again,
)
from tests.faults.table import Fault
from tests.servers import postgres_server
from tests.waiting import until

POSTGRES_SECONDS = 30
"""How long it is away at full size."""


@contextmanager
def durable_plant() -> Iterator[Plant]:
    """Its PostgreSQL may be killed: what it has answered is on the disk."""
    with postgres_server(fsync=True) as server, open_plant() as plant:
        migrate(server.url, PARTITIONS)
        plant.database, plant._postgres = server.url, server
        yield plant


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "PostgreSQL", "stopped for 30 s; kill -9 and down for 30 s; submissions throughout"
)
def test_what_runs_goes_on_without_postgresql_and_is_archived_later(fault: Fault):
    async def act(scene: Scene) -> None:
        calls = scene.caller
        ordering = asyncio.create_task(calls.order_for_ever(scene.address, works.diamond()))
        for how in (STOPPED, KILLED):
            ids = await pause(scene, how)
            before = len(calls.accepted)
            await until(lambda: len(calls.accepted) > before + 5, "there are orders under way")  # noqa: B023
            for document in regions.DOCUMENTS:
                await scene.client.submit(document, 5)
            take_away(scene.plant.postgres, how)
            await go_on_meanwhile(scene, ids, how)
            await taken_again(scene, scene.plant.postgres.start)
        ordering.cancel()
        await asyncio.gather(ordering, return_exceptions=True)
        say(f"{len(calls.accepted)} orders were accepted, {calls.refused} refused")
        await assert_all_guarantees(scene)
        fault.shows(ran_on_without_it=2 * PAUSED)

    play(fault, durable_plant(), act)


async def go_on_meanwhile(scene: Scene, ids: list[str], word: str) -> None:
    """While PostgreSQL is away: what runs completes in Redis, and what is new is refused."""
    plant, calls = scene.plant, scene.caller
    effort = Effort(plant.running())
    refusal = await refused_meanwhile(scene)
    plant.release(word)
    await until(lambda: active(plant).isdisjoint(ids), "they complete without PostgreSQL")
    await idle_meanwhile(scene, effort, scene.fault.size(SHORT_SECONDS, POSTGRES_SECONDS))
    say(f"refused: {refusal.body['detail']}")
    assert (await calls.get(f"{scene.address}/health/live")).status == 200
    assert not plant.postgres.running
