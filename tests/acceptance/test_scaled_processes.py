"""Many processes on Redis and PostgreSQL, killed and frozen at will (G1, G2, G4, G5)."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from typing import Any

import aiohttp
import pytest

from tests.acceptance import regions, works
from tests.acceptance.people import people
from tests.acceptance.plant import (
    END_SECONDS,
    SOON_DEAD,
    START_SECONDS,
    Client,
    Plant,
    Role,
    open_plant,
    pass_time,
)
from tests.acceptance.plant_judge import LOST, Verdict, judge
from tests.faults.table import REDELIVERY_SECONDS, TAKEOVER_SECONDS, Fault
from tests.waiting import until

SHORT_ROUNDS, ROUNDS = 10, 20
ROUND_SECONDS = 1.0
SHORT_ASLEEP, ASLEEP = (1.0, 8.0), (4.0, 12.0)
"""From when to when an orchestrator sleeps: longer than its lease."""
NAPS = 6
FULL_SECONDS = 600
PARENTS, JOINS_AT_ONCE = 100, 10
PER_ROUND = 50
ORDERS = 5
"""Of these, so many come over HTTP."""
FLOWS = [
    works.diamond(),
    works.diamond(),
    works.chain(20),
    *(works.any_dag(seed) for seed in range(6)),
    *regions.DOCUMENTS,
]
FAN = works.fan(100)
PAUSES = works.chain(4, "work_pause", config={"seconds": 0.5})
"""Its tasks take so long that some worker that is killed has one."""
STRIKES = {"worker": 1.0, "orchestrator": 2.0, "api": 1.0}
"""At full size: how many seconds apart; else any process, every second."""


class Submitter:
    """Clients of API processes that come and go.

    Each start request has a key and is repeated until it is answered.
    """

    def __init__(self, plant: Plant, session: aiohttp.ClientSession) -> None:
        self._plant = plant
        self._session = session
        self.answered: dict[str, str] = {}
        self.repeated = 0
        self.changed: list[str] = []
        """Keys that were answered with two ids."""

    async def order(self, key: str) -> None:
        """Twice: the second answer must be the first one's."""
        for _ in range(2):
            execution_id = await self._until_answered(key)
            if self.answered.setdefault(key, execution_id) != execution_id:
                self.changed.append(key)

    async def _until_answered(self, key: str) -> str:
        body = {"definition": works.diamond(), "labels": {"key": key}}
        while True:
            address = random.choice(
                await until(self._addresses, "an API is there", seconds=START_SECONDS)
            )
            try:
                async with self._session.post(
                    f"{address}/api/v1/executions", json=body, headers={"Idempotency-Key": key}
                ) as answer:
                    if answer.status == 201:
                        return str((await answer.json())["execution_id"])
                    assert answer.status in (429, 503), f"{answer.status} {await answer.text()}"
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                self.repeated += 1

    def _addresses(self) -> list[str]:
        return [role.address for role in self._plant.running("api") if role.address]


def _replace(plant: Plant, role: Role) -> None:
    role.kill()
    plant.start(role.kind, ready=False)


def _strikes(rounds: int, seconds: float) -> int:
    """How often, so many seconds apart."""
    return int(rounds * ROUND_SECONDS / seconds)


async def _strike(
    plant: Plant, choose: random.Random, kind: str, rounds: int, seconds: float, spared: Role
) -> None:
    """One that is ready, again and again; then another takes its place.

    One that only starts would show nothing.
    """

    def victims() -> list[Role]:
        return [role for role in plant.running(kind) if role is not spared and role.address]

    for _ in range(_strikes(rounds, seconds)):
        await pass_time(seconds)
        victim = choose.choice(await until(victims, f"a {kind} is ready", seconds=START_SECONDS))
        await asyncio.to_thread(_replace, plant, victim)


async def _sleep(zombie: Role, begin: float, end: float) -> None:
    """An orchestrator sleeps through a part of it."""
    await pass_time(begin)
    zombie.freeze()
    await pass_time(end - begin)
    zombie.thaw()


async def _submit(client: Client, submitter: Submitter, choose: random.Random, rounds: int) -> None:
    """A part in each round, so that kills meet executions in all states."""
    waiting: list[asyncio.Task[None]] = []
    for number in range(rounds):
        waiting += [
            asyncio.create_task(submitter.order(f"order-{number}-{n}")) for n in range(ORDERS)
        ]
        documents = [FAN, PAUSES, *choose.choices(FLOWS, k=PER_ROUND - ORDERS - 2)]
        for document in documents:
            await client.submit(document)
        await pass_time(ROUND_SECONDS / 2)
    await asyncio.gather(*waiting)


def _assert_once(plant: Plant, submitter: Submitter) -> None:
    """One execution for each key, and it is the one that was answered."""
    with plant.connect() as connection:
        rows = connection.execute(
            "SELECT labels::json ->> 'key', id FROM executions WHERE labels IS NOT NULL"
        ).fetchall()
    assert sorted(rows) == sorted(submitter.answered.items())
    assert submitter.changed == []


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "processes",
    "kill -9 of a worker each 1 s, an orchestrator each 2 s, the API each 1 s; one orchestrator "
    "asleep",
)
def test_nothing_is_lost_or_done_twice_while_a_process_is_killed_every_second(fault: Fault) -> None:
    strikes = STRIKES if fault.is_full else {"": ROUND_SECONDS}
    rounds, asleep = fault.size(SHORT_ROUNDS, ROUNDS), ASLEEP if fault.is_full else SHORT_ASLEEP

    async def main(plant: Plant, choose: random.Random) -> tuple[dict[str, Any], Submitter]:
        async with (
            plant.client() as client,
            aiohttp.ClientSession() as session,
            people(client.service),
        ):
            submitter, zombie = Submitter(plant, session), plant.one("orchestrator")
            killing = [
                _strike(plant, choose, kind, rounds, seconds, zombie)
                for kind, seconds in strikes.items()
            ]
            await asyncio.gather(
                _submit(client, submitter, choose, rounds), _sleep(zombie, *asleep), *killing
            )
            client.accepted.update(dict.fromkeys(submitter.answered.values(), works.diamond()))
            await client.until_ended(seconds=fault.size(short=int(END_SECONDS), full=FULL_SECONDS))
            return client.accepted, submitter

    with open_plant(environ={} if fault.is_full else SOON_DEAD) as plant:
        plant.staff(orchestrators=3, workers=4, apis=fault.size(short=2, full=3))
        accepted, submitter = asyncio.run(main(plant, fault.choices()))
        verdict = judge(plant, accepted, slots=fault.is_full).assert_guarantees()
        _assert_once(plant, submitter)
        assert verdict.states() == {"COMPLETED": rounds * PER_ROUND}
        assert plant.kills == sum(_strikes(rounds, seconds) for seconds in strikes.values())
        assert [role for role in plant.roles if not (role.runs or role.was_killed)] == [], (
            "some ended by themselves"
        )
        assert verdict.redelivered() > 0, "no kill hit a task"
        fault.shows(
            **{f"{kind}s_killed": count for kind, count in sorted(plant.killed().items())},
            **verdict.figures(),
            orders=len(submitter.answered),
            orders_repeated=submitter.repeated,
            two_for_a_key=len(submitter.changed),
        )
        fault.promises(
            REDELIVERY_SECONDS, slowest_redelivery_seconds=_slowest_redelivery(plant, verdict)
        )


def _slowest_redelivery(plant: Plant, verdict: Verdict) -> float:
    """Seconds from a worker's death to the decision that its task is lost.

    If an owner that watched the worker died too, from the last such death.
    """
    pids = {(call.execution_id, call.node, call.attempt): call.pid for call in plant.calls()}
    deaths = {role.pid: role.killed_at for role in plant.roles if role.was_killed}
    owners = [
        role.killed_at for role in plant.roles if role.was_killed and role.kind == "orchestrator"
    ]
    delays = [0.0]
    for name, stored in verdict.executions.items():
        for line in stored.history:
            pid = pids.get((name, line.node_id, line.attempt))
            if line.reason == LOST and pid in deaths:
                since = [at for at in (deaths[pid], *owners) if at <= line.at]
                delays.append(line.at - max(since, default=line.at))
    return max(delays)


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "zombies", "SIGSTOP of an orchestrator past its lease, SIGCONT when others have its partitions"
)
def test_what_an_orchestrator_decides_that_slept_past_its_lease_is_refused(fault: Fault) -> None:
    enough = fault.size(short=1, full=NAPS)
    naps = []

    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client, people(client.service):
            zombie = plant.one("orchestrator")
            for _ in range(NAPS):
                await plant.until_owned(3)
                calls_before = len(plant.calls())
                await client.submit(works.chain(20), 150)
                for document in regions.DOCUMENTS:
                    await client.submit(document, 10)
                await _until_busy(plant, calls_before)
                zombie.freeze()
                naps.append(await _until_taken(plant, zombie, "a frozen orchestrator's"))
                zombie.thaw()
                await client.until_ended()
                if plant.fenced and len(naps) >= enough:
                    break
            await plant.until_owned(3)
            return client.accepted

    with open_plant() as plant:
        plant.staff(orchestrators=3, workers=2)
        verdict = judge(plant, asyncio.run(main(plant)), slots=fault.is_full).assert_guarantees()
        assert set(verdict.states()) == {"COMPLETED"}
        assert plant.fenced > 0, "it was always told that its lease had gone before it could write"
        fault.shows(stops=len(naps), **verdict.figures(), stale_writes=0)
        fault.promises(TAKEOVER_SECONDS, slowest_takeover_seconds=max(naps))


async def _until_busy(plant: Plant, calls_before: int) -> None:
    await until(lambda: len(plant.calls()) > calls_before + 300, "there is work")


async def _until_taken(plant: Plant, role: Role, whose: str) -> float:
    """Its partitions have other owners: after how many seconds."""
    begun, name = time.monotonic(), role.ready()
    await until(
        lambda: name not in plant.owners() and None not in plant.owners(),
        "its partitions are taken",
    )
    seconds = time.monotonic() - begun
    print(f"{whose} partitions were taken after {seconds:.1f} s")  # noqa: T201
    return seconds


@pytest.mark.timeout(240)
@pytest.mark.fault("processes", "an orchestrator joins, one leaves, one is killed")
def test_orchestrators_that_come_and_go_share_the_partitions(fault: Fault) -> None:
    count = fault.size(short=120, full=300)

    async def main(plant: Plant) -> tuple[dict[str, Any], float]:
        async with plant.client() as client:
            await plant.until_owned(2)
            await client.submit(works.chain(20), count)
            (joining,) = plant.start("orchestrator")
            await plant.until_owned(3)
            leaving, dying = plant.running("orchestrator")[:2]
            await client.submit(works.chain(20), count)
            leaving.terminate()
            assert await asyncio.to_thread(leaving.ends) == 0
            assert leaving.ready() not in plant.owners(), (
                "it hands over before it ends, not when its leases run out"
            )
            await plant.until_owned(2)
            await client.submit(works.chain(20), count)
            dying.kill()
            seconds = await _until_taken(plant, dying, "a dead orchestrator's")
            assert set(plant.owners()) == {joining.ready()}
            await client.until_ended()
            return client.accepted, seconds

    with open_plant() as plant:
        plant.staff(orchestrators=2, workers=2)
        accepted, seconds = asyncio.run(main(plant))
        verdict = judge(plant, accepted, slots=fault.is_full).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 3 * count}
        assert verdict.redelivered() == 0, "no worker was touched"
        fault.shows(**verdict.figures(), redelivered=0)
        fault.promises(TAKEOVER_SECONDS, takeover_seconds=seconds)


@pytest.mark.timeout(240)
@pytest.mark.fault("fan-in", "100 parents that finish together, 3 orchestrators")
def test_a_join_of_a_hundred_parents_starts_once_a_thousand_times(fault: Fault) -> None:
    """The parents of an execution finish together.

    One worker has all of them, and lets them go on when the last of them has begun.
    """
    joins = fault.size(short=100, full=1000)

    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            await plant.until_owned(3)
            for _ in range(joins // JOINS_AT_ONCE):
                fan = works.fan(PARENTS, "work_gate", config={"parties": PARENTS})
                await client.until_ended(*await client.submit(fan, JOINS_AT_ONCE))
            return client.accepted

    with open_plant() as plant:
        plant.start("worker", "--concurrency", str(PARENTS * JOINS_AT_ONCE), ready=False)
        plant.staff(orchestrators=3, workers=0)
        verdict = judge(plant, asyncio.run(main(plant)), slots=fault.is_full).assert_guarantees()
        assert verdict.states() == {"COMPLETED": joins}
        starts = [(call.execution_id, call.node) for call in plant.calls() if call.event == "begun"]
        assert len(starts) == len(set(starts)) == joins
        together = works.spreads(plant.works)
        assert len(together) == joins
        median = statistics.median(together)
        fault.shows(
            **verdict.figures(), joins=joins, starts=len(starts), median_spread_milliseconds=median
        )
