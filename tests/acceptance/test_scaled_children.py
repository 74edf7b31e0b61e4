"""Parents and children in real processes, of which each owner is killed at its writes (G1, G2)."""

from __future__ import annotations

import asyncio

import pytest

from penstock.stores.base import Stored, partition_of
from tests.acceptance import works
from tests.acceptance.outside import flush
from tests.acceptance.plant import PARTITIONS, SOON_DEAD, Client, Plant, open_plant, pass_time
from tests.faults.launching import launch
from tests.sizes import explored, size
from tests.waiting import until

CHILDREN = 8
KILLED = 137
POINTS = [
    "Executions.record_intents:after:1",
    "HotStore.append:after:2",
    "HotTier.acknowledge_outbox:before:2",
    "HotStore.commit:after:3",
    "Executions.record_intents:before:1",
    "HotStore.append:before:2",
    "ColdTier.put_copies:after:2",
    "HotTier.acknowledge_outbox:after:2",
]
"""Of these, `make test` has the first three."""
CHILD = works.document(
    "billing",
    works.node("pay", (), config={"n": "{{ input.n }}"}),
    works.node("note", ["pay"]),
)
PARENT = works.document(
    "order",
    {
        "id": "each",
        "for_each": list(range(CHILDREN)),
        "handler": "workflow",
        "config": {"workflow": "billing", "input": {"n": "{{ item }}"}},
    },
)


async def _stored(client: Client) -> list[Stored]:
    rows = await client.stores.cold.database.rows("SELECT id FROM executions", ())
    found = [await client.stores.cold.executions.execution(row[0]) for row in rows]
    return [stored for stored in found if stored is not None]


async def _judge(client: Client, parents: list[str]) -> None:
    """Each item has one child, which has completed; and no other child was ever made."""
    by_parent: dict[tuple[str, str], list[Stored]] = {}
    for stored in await _stored(client):
        parent = stored.record.parent
        if parent is not None:
            by_parent.setdefault((parent.execution_id, parent.node_id), []).append(stored)
    expected = {(parent, f"each[{n}]") for parent in parents for n in range(CHILDREN)}
    assert set(by_parent) == expected
    for children in by_parent.values():
        assert [child.record.state for child in children] == ["COMPLETED"]
    for parent_id in parents:
        stored = await client.service.executions.stored(parent_id)
        assert stored.record.state == "COMPLETED", stored.record.error
        lines = [line for line in stored.history if line.after == "COMPLETED" and line.node_id]
        assert len(lines) == len({line.node_id for line in lines}), "each end counts once"
    places = {
        partition_of(child.record.execution_id, PARTITIONS)
        for children in by_parent.values()
        for child in children
    }
    assert len(places) > 1


async def _strike(plant: Plant, client: Client, point: str, parents: list[str]) -> None:
    """There are parents and children until the owner dies at the point."""
    victim = launch(plant, "orchestrator", {"die_at": point})

    def has_its_share() -> bool:
        return not victim.runs or bool(victim.address and victim.address in plant.owners())

    await until(has_its_share, f"{victim} has partitions", seconds=60)
    for _ in range(60):
        if not victim.runs:
            break
        parents += await client.submit(PARENT, 2)
        await pass_time(0.3)
    assert victim.code == KILLED, f"it didn't die at {point}: {victim.said()}"
    victim.was_killed = True


@explored
@pytest.mark.parametrize("loses_redis", [False, True], ids=["killed", "and Redis lost"])
def test_children_of_owners_that_are_killed_end_once_and_their_parents_hear_of_it(
    *, loses_redis: bool
) -> None:
    async def scenario(plant: Plant) -> None:
        plant.staff(orchestrators=1, workers=2)
        async with plant.client() as client:
            await client.service.workflows.put(CHILD)
            parents: list[str] = []
            for point in POINTS[: size(short=3, full=len(POINTS))]:
                await _strike(plant, client, point, parents)
            if loses_redis:
                parents += await client.submit(PARENT, 4)
                flush(plant)
            await client.until_ended(*parents)
            await client.until_all_ended()
            await _judge(client, parents)

    with open_plant(environ=SOON_DEAD) as plant:
        asyncio.run(scenario(plant))
