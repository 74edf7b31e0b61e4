"""Many processes on Redis and PostgreSQL, killed and frozen at will (G1, G2, G4, G5)."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from typing import Any

import aiohttp
import pytest

from tests.acceptance import works
from tests.acceptance.plant import (
    END_SECONDS,
    SOON_DEAD,
    START_SECONDS,
    Client,
    Plant,
    Role,
    pass_time,
    plant,
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
]
FAN = works.fan(100)
STRIKES = {"worker": 1.0, "orchestrator": 2.0, "api": 1.0}
"""At full size: how many seconds apart; else any process, every second."""


class Submitter:
    """Clients of API processes that come and go.

    Each start request has a key and is repeated until it is answered.
    """

    def __init__(self, it: Plant, session: aiohttp.ClientSession) -> None:
        self._plant, self._session = it, session
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


def _replace(it: Plant, role: Role) -> None:
    role.kill()
    it.start(role.kind, ready=False)


def _strikes(rounds: int, seconds: float) -> int:
    """How often, so many seconds apart."""
    return int(rounds * ROUND_SECONDS / seconds)


async def _strike(
    it: Plant, choose: random.Random, kind: str, rounds: int, seconds: float, spared: Role
) -> None:
    """One that is ready, again and again; then another takes its place.

    One that only starts would show nothing.
    """

    def victims() -> list[Role]:
        return [role for role in it.running(kind) if role is not spared and role.address]

    for _ in range(_strikes(rounds, seconds)):
        await pass_time(seconds)
        victim = choose.choice(await until(victims, f"a {kind} is ready", seconds=START_SECONDS))
        await asyncio.to_thread(_replace, it, victim)


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
        documents = [FAN, *choose.choices(FLOWS, k=PER_ROUND - ORDERS - 1)]
        for document in documents:
            await client.submit(document)
        await pass_time(ROUND_SECONDS / 2)
    await asyncio.gather(*waiting)


def _assert_once(it: Plant, submitter: Submitter) -> None:
    """One execution for each key, and it is the one that was answered."""
    with it.connect() as connection:
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

    async def main(it: Plant, choose: random.Random) -> tuple[dict[str, Any], Submitter]:
        async with it.client() as client, aiohttp.ClientSession() as session:
            submitter, zombie = Submitter(it, session), it.one("orchestrator")
            killing = [
                _strike(it, choose, kind, rounds, seconds, zombie)
                for kind, seconds in strikes.items()
            ]
            await asyncio.gather(
                _submit(client, submitter, choose, rounds), _sleep(zombie, *asleep), *killing
            )
            client.accepted.update(dict.fromkeys(submitter.answered.values(), works.diamond()))
            await client.until_ended(seconds=fault.size(short=int(END_SECONDS), full=FULL_SECONDS))
            return client.accepted, submitter

    with plant(environ={} if fault.is_full else SOON_DEAD) as it:
        it.staff(orchestrators=3, workers=4, apis=fault.size(short=2, full=3))
        accepted, submitter = asyncio.run(main(it, fault.choices()))
        verdict = judge(it, accepted, slots=fault.is_full).assert_guarantees()
        _assert_once(it, submitter)
        assert verdict.states() == {"COMPLETED": rounds * PER_ROUND}
        assert it.kills == sum(_strikes(rounds, seconds) for seconds in strikes.values())
        assert [role for role in it.roles if not (role.runs or role.was_killed)] == [], (
            "some ended by themselves"
        )
        assert verdict.redelivered() > 0, "no kill hit a task"
        fault.shows(
            **{f"{kind}s_killed": count for kind, count in sorted(it.killed().items())},
            **verdict.figures(),
            orders=len(submitter.answered),
            orders_repeated=submitter.repeated,
            two_for_a_key=len(submitter.changed),
        )
        fault.promises(
            REDELIVERY_SECONDS, slowest_redelivery_seconds=_slowest_redelivery(it, verdict)
        )


def _slowest_redelivery(it: Plant, verdict: Verdict) -> float:
    """Seconds from a worker's death to the decision that its task is lost.

    If an owner that watched the worker died too, from the last such death.
    """
    pids = {(call.execution_id, call.node, call.attempt): call.pid for call in it.calls()}
    deaths = {role.pid: role.killed_at for role in it.roles if role.was_killed}
    owners = [
        role.killed_at for role in it.roles if role.was_killed and role.kind == "orchestrator"
    ]
    found = [0.0]
    for name, stored in verdict.executions.items():
        for line in stored.history:
            pid = pids.get((name, line.node_id, line.attempt))
            if line.reason == LOST and pid in deaths:
                since = [at for at in (deaths[pid], *owners) if at <= line.at]
                found.append(line.at - max(since, default=line.at))
    return max(found)


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "zombies", "SIGSTOP of an orchestrator past its lease, SIGCONT when others have its partitions"
)
def test_what_an_orchestrator_decides_that_slept_past_its_lease_is_refused(fault: Fault) -> None:
    enough = fault.size(short=1, full=NAPS)
    naps = []

    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            zombie = it.one("orchestrator")
            for _ in range(NAPS):
                await it.until_owned(3)
                await client.submit(works.chain(20), 200)
                await _until_busy(it)
                zombie.freeze()
                naps.append(await _until_taken(it, zombie, "a frozen orchestrator's"))
                zombie.thaw()
                await client.until_ended()
                if it.fenced and len(naps) >= enough:
                    break
            await it.until_owned(3)
            return client.accepted

    with plant() as it:
        it.staff(orchestrators=3, workers=2)
        verdict = judge(it, asyncio.run(main(it)), slots=fault.is_full).assert_guarantees()
        assert set(verdict.states()) == {"COMPLETED"}
        assert it.fenced > 0, "it was always told that its lease had gone before it could write"
        fault.shows(stops=len(naps), **verdict.figures(), stale_writes=0)
        fault.promises(TAKEOVER_SECONDS, slowest_takeover_seconds=max(naps))


async def _until_busy(it: Plant) -> None:
    before = len(it.calls())
    await until(lambda: len(it.calls()) > before + 300, "there is work")


async def _until_taken(it: Plant, role: Role, whose: str) -> float:
    """Its partitions have other owners: after how many seconds."""
    begun, name = time.monotonic(), role.ready()
    await until(
        lambda: name not in it.owners() and None not in it.owners(), "its partitions are taken"
    )
    seconds = time.monotonic() - begun
    print(f"{whose} partitions were taken after {seconds:.1f} s")  # noqa: T201
    return seconds


@pytest.mark.timeout(240)
@pytest.mark.fault("processes", "an orchestrator joins, one leaves, one is killed")
def test_orchestrators_that_come_and_go_share_the_partitions(fault: Fault) -> None:
    count = fault.size(short=120, full=300)

    async def main(it: Plant) -> tuple[dict[str, Any], float]:
        async with it.client() as client:
            await it.until_owned(2)
            await client.submit(works.chain(20), count)
            (joining,) = it.start("orchestrator")
            await it.until_owned(3)
            leaving, dying = it.running("orchestrator")[:2]
            await client.submit(works.chain(20), count)
            leaving.terminate()
            assert await asyncio.to_thread(leaving.ends) == 0
            assert leaving.ready() not in it.owners(), (
                "it hands over before it ends, not when its leases run out"
            )
            await it.until_owned(2)
            await client.submit(works.chain(20), count)
            dying.kill()
            seconds = await _until_taken(it, dying, "a dead orchestrator's")
            assert set(it.owners()) == {joining.ready()}
            await client.until_ended()
            return client.accepted, seconds

    with plant() as it:
        it.staff(orchestrators=2, workers=2)
        accepted, seconds = asyncio.run(main(it))
        verdict = judge(it, accepted, slots=fault.is_full).assert_guarantees()
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

    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            await it.until_owned(3)
            for _ in range(joins // JOINS_AT_ONCE):
                fan = works.fan(PARENTS, "work_gate", config={"parties": PARENTS})
                await client.until_ended(*await client.submit(fan, JOINS_AT_ONCE))
            return client.accepted

    with plant() as it:
        it.start("worker", "--concurrency", str(PARENTS * JOINS_AT_ONCE), ready=False)
        it.staff(orchestrators=3, workers=0)
        verdict = judge(it, asyncio.run(main(it)), slots=fault.is_full).assert_guarantees()
        assert verdict.states() == {"COMPLETED": joins}
        starts = [(call.execution_id, call.node) for call in it.calls() if call.event == "begun"]
        assert len(starts) == len(set(starts)) == joins
        together = works.spreads(it.works)
        assert len(together) == joins
        median = statistics.median(together)
        fault.shows(
            **verdict.figures(), joins=joins, starts=len(starts), median_spread_milliseconds=median
        )
