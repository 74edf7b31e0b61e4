"""A process is killed at every point where it writes (G1, G2, G4).

Before the write, and after it was answered. Real roles on a real Redis and PostgreSQL. One at a
time is made to die at one point, beside others that are well, which take over what it had claimed
and half done. Everything is judged together at the end, and each point by whether its kill has
happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import aiohttp
import pytest

from penstock.errors import StoreUnavailable
from penstock.service.submissions import StartRequest
from tests.acceptance import regions, works
from tests.acceptance.outside import begin, flush
from tests.acceptance.people import people
from tests.acceptance.plant import SOON_DEAD, Client, Plant, Role, open_plant, pass_time
from tests.acceptance.plant_judge import judge
from tests.faults import points, touring
from tests.faults.launching import HANDLERS, launch
from tests.faults.points import Point, points_of
from tests.faults.table import Fault
from tests.faults.touring import Tour
from tests.waiting import until

PATIENCE_SECONDS = 120.0
LARGE = {"size": 300_000}
"""More than what travels with an event or a task: it becomes a blob."""
GOOD = [
    works.diamond(),
    works.fan(6),
    works.single("failing", "work_fail", config={"times": 2}),
    works.document(
        "large",
        works.node("a", (), "work_large", config={**LARGE, "seconds": 1.5}),
        works.node("b", "a", config={"text": "{{ a.text }}"}),
    ),
    regions.MAPPED,
    regions.WAITS,
]
KILLED = 137


def test_every_write_of_the_protocols_is_a_point() -> None:
    tables = (points.UNDER_WORK, points.AT_THE_END, points.AFTER_A_LOSS, points.IN_A_REBUILD)
    named = {write for table in tables for writes in table.values() for write in writes}
    assert {*named, *points.BY_NO_ROLE} - {points.REPLY} == set(points.writes())


def _sample(fault: Fault) -> list[Point]:
    """Every point in a full run; else one of each role that needs nothing out of the ordinary."""
    ordinary = points_of(points.UNDER_WORK)
    if fault.is_full:
        return ordinary + points_of(points.AT_THE_END, points.AFTER_A_LOSS)
    choose = fault.choices()
    return [
        choose.choice([point for point in ordinary if point.role == role])
        for role in points.UNDER_WORK
    ]


async def _submit(client: Client, document: dict[str, Any], count: int) -> None:
    """Retry until the start is accepted.

    With so many processes beside it, this one may not hear from Redis for seconds.
    """

    async def is_taken() -> bool:
        try:
            await client.submit(document, count)
        except StoreUnavailable:
            return False
        return True

    await until(is_taken, "an order is taken", seconds=60)


async def _is_killed(client: Client, victim: Role, point: Point) -> None:
    """There is work until it dies."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while victim.runs and asyncio.get_running_loop().time() < deadline:
        for document in GOOD:
            await _submit(client, document, 2)
        await pass_time(0.5)
    _assert_died(victim, point)


def _assert_died(victim: Role, point: Point) -> None:
    said = victim.said()
    assert victim.code == KILLED, f"{point.role} didn't die at {point}: {victim}\n{said}"
    assert f"dies {point.side} {point.write}\n" in said, f"it died of something else: {said}"
    victim.was_killed = True


async def _serves(plant: Plant, victim: Role) -> None:
    """Or is dead already: some points are passed by whoever starts."""

    def is_there() -> bool:
        if not victim.runs:
            return True
        if victim.kind != "orchestrator":
            return bool(victim.address)
        # both: an owner has its lease a moment before its claim
        return victim.address in plant.owners() and victim.address in plant.claim_holders()

    await until(is_there, f"{victim} has its share of the work", seconds=60)


async def _strike(plant: Plant, client: Client, point: Point) -> None:
    new = _new_handler(plant) if point.write == "Definitions.remember_handlers" else ()
    victim = launch(plant, point.role, {"die_at": str(point)}, *new)
    await _serves(plant, victim)
    if point.role == "api":
        await _tour(plant, client, victim, point)
        return
    if point.write == "TaskQueue.reap":
        await _lose_a_worker(plant, client)
    elif point.write == "HotStore.append":
        await _lose_starts(client)
    elif point in points_of(points.AT_THE_END):
        await _submit(client, GOOD[0], 20)
        victim.terminate()
    await _is_killed(client, victim, point)


def _new_handler(plant: Plant) -> tuple[str, str]:
    """A worker tells only what nobody has told before."""
    name = f"new_{len(plant.roles)}"
    file = plant.folder / f"{name}.py"
    file.write_text(
        f"import penstock\n\n@penstock.handler({name!r})\ndef new(config, ctx):\n    return 1\n"
    )
    return "--handlers", str(file)


async def _lose_starts(client: Client) -> None:
    """Do what an API does that dies between its two writes.

    The intents are stored, and the inbox has no event.
    """
    plan = await client.service.workflows.plan(GOOD[0])
    intents = [
        await client.service.submissions.prepare(StartRequest(workflow=plan)) for _ in range(40)
    ]
    await client.stores.cold.executions.record_intents(intents)
    client.accepted.update(
        dict.fromkeys((intent.record.execution_id for intent in intents), GOOD[0])
    )


async def _lose_a_worker(plant: Plant, client: Client) -> None:
    """With tasks of every partition in its hands."""
    (worker,) = plant.start("worker", "--queues", "doomed", *HANDLERS)
    long = works.single("doomed", "work_pause", queue="doomed", config={"until": "saved"})
    await _submit(client, long, 40)
    ids = {name for name, document in client.accepted.items() if document is long}
    await until(
        lambda: {call.execution_id for call in plant.calls()} >= ids,
        "it has all of them",
        seconds=60,
    )
    worker.kill()
    plant.release("saved")
    plant.start("worker", "--queues", "doomed", *HANDLERS, ready=False)


async def _tour(plant: Plant, client: Client, victim: Role, point: Point) -> None:
    healthy = next(role for role in plant.running("api") if role is not victim)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        tour = Tour(session, f"{point}", victim.address or healthy.address, healthy.address)
        await tour.go()
    client.accepted.update(tour.accepted)
    await until(lambda: not victim.runs, f"the API dies at {point}", seconds=10)
    _assert_died(victim, point)
    with plant.connect() as connection:
        rows = connection.execute(
            "SELECT labels::json ->> 'key', count(*), min(id) FROM executions "
            "WHERE labels IS NOT NULL "
            "AND retry_of IS NULL GROUP BY 1"
        ).fetchall()
    stored = {key: (count, name) for key, count, name in rows if key in tour.keys}
    assert stored == {key: (1, name) for key, name in tour.keys.items()}, (
        "one execution for each key"
    )


async def _cancel_strays(client: Client) -> None:
    """Executions that wait for a trigger, and whose ids no client knows.

    The response was cut off.
    """
    rows = await client.stores.cold.database.rows(
        "SELECT id FROM executions WHERE phase = 'waiting'", ()
    )
    for (name,) in rows:
        if name not in client.accepted:
            await client.request_control(str(name), "cancel")
            client.accepted[str(name)] = touring.WAITING


async def _strike_all(plant: Plant, chosen: Iterable[Point]) -> dict[str, dict[str, Any]]:
    async with plant.client() as client, people(client.service):
        for number, point in enumerate(chosen):
            often = point.write in ("HotStore.commit", "TaskQueue.fetch", "TaskQueue.report")
            await _strike(plant, client, point._replace(passing=1 + number % 5) if often else point)
        await _cancel_strays(client)
        await client.until_ended(seconds=PATIENCE_SECONDS)
        return client.accepted


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "failpoints",
    "a kill before and after each write and reply of a role that works, stops or recovers",
)
def test_no_write_is_a_bad_moment_to_die(fault: Fault) -> None:
    chosen = _sample(fault)
    with open_plant(environ={} if fault.is_full else SOON_DEAD) as plant:
        plant.start("worker", *HANDLERS, count=2, ready=False)
        begin(plant, orchestrators=1, workers=0, apis=1)
        accepted = asyncio.run(_strike_all(plant, chosen))
        verdict = judge(plant, accepted, touring.FLOWS).assert_guarantees()
        assert plant.killed().keys() >= {point.role for point in chosen}
        assert plant.kills >= len(chosen)
        fault.shows(
            points=len(chosen),
            kills=plant.kills,
            executions=len(verdict.executions),
            redelivered=verdict.redelivered(),
            fenced=plant.fenced,
            violations=len(verdict.problems),
        )


async def _die_rebuilding(plant: Plant, client: Client, point: Point, held: str) -> None:
    await _stopped(plant)
    victim = launch(plant, point.role, {"die_at": str(point)})
    await _serves(plant, victim)
    await _submit(client, works.single("held", "work_pause", config={"until": held}), 40)
    await until(
        lambda: not victim.runs or set(plant.owners()) == {victim.address},
        "it has all of them",
        seconds=60,
    )
    flush(plant)
    await until(lambda: not victim.runs, f"it dies at {point}", seconds=PATIENCE_SECONDS)
    _assert_died(victim, point)
    plant.start("orchestrator")
    plant.release(held)
    await client.until_ended(seconds=PATIENCE_SECONDS)


async def _stopped(plant: Plant) -> None:
    """The orchestrator that is well: beside it the other might have nothing to build."""
    for role in plant.running("orchestrator"):
        role.terminate()
        await asyncio.to_thread(role.ends)


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "failpoints", "a kill before and after each write of an owner that rebuilds an empty Redis"
)
def test_no_write_of_a_rebuild_is_a_bad_moment_to_die(fault: Fault) -> None:
    every = points_of(points.IN_A_REBUILD)
    chosen = every if fault.is_full else fault.choices().sample(every, 1)

    async def main(plant: Plant) -> dict[str, dict[str, Any]]:
        async with plant.client() as client:
            for number, point in enumerate(chosen):
                await _die_rebuilding(plant, client, point, f"held-{number}")
            return client.accepted

    with open_plant() as plant:
        plant.start("worker", *HANDLERS, ready=False)
        begin(plant, orchestrators=1, workers=0)
        verdict = judge(plant, asyncio.run(main(plant)), lossy=True).assert_guarantees()
        rebuilt = sum(stored.record.generation > 1 for stored in verdict.executions.values())
        assert rebuilt > 0, "nothing had to be built again"
        fault.shows(
            points=len(chosen),
            kills=plant.kills,
            executions=len(verdict.executions),
            rebuilt=rebuilt,
            violations=len(verdict.problems),
        )
