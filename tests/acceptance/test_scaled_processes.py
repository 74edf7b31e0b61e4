"""Many processes on Redis and PostgreSQL, killed and frozen at will (G1, G2, G4, G5)."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import aiohttp
import pytest

from tests.acceptance import works
from tests.acceptance.plant import START_SECONDS, Client, Plant, Role, pass_time, plant
from tests.acceptance.plant_judge import judge
from tests.waiting import until

ROUNDS = 20
ROUND_SECONDS = 1.0
ASLEEP = range(4, 12)
NAPS = 6
PER_ROUND = 50
ORDERS = 5
"""Of these, so many come over HTTP."""
FLOWS = [works.diamond(), works.diamond(), works.chain(20), *(works.any_dag(seed) for seed in range(6))]
FAN = works.fan(100)


class Orders:
    """Clients of API processes that come and go. Each order has a key and is repeated until it is answered."""

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
            address = random.choice(await until(self._addresses, "an API is there", seconds=START_SECONDS))
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


async def _strike(it: Plant, choose: random.Random) -> None:
    """A random process, every second; then another takes its place. One orchestrator sleeps through a part of it."""
    zombie = it.one("orchestrator")
    for number in range(ROUNDS):
        await pass_time(ROUND_SECONDS)
        if number == ASLEEP.start:
            zombie.freeze()
        elif number == ASLEEP.stop:
            zombie.thaw()
        victim = choose.choice([role for role in it.running() if role is not zombie])
        await asyncio.to_thread(_replace, it, victim)


async def _submit(client: Client, orders: Orders, choose: random.Random) -> None:
    """A part in each round, so that kills meet executions in all states."""
    waiting: list[asyncio.Task[None]] = []
    for number in range(ROUNDS):
        waiting += [asyncio.create_task(orders.order(f"order-{number}-{n}")) for n in range(ORDERS)]
        documents = [FAN, *choose.choices(FLOWS, k=PER_ROUND - ORDERS - 1)]
        for document in documents:
            await client.submit(document)
        await pass_time(ROUND_SECONDS / 2)
    await asyncio.gather(*waiting)


def _assert_once(it: Plant, orders: Orders) -> None:
    """One execution for each key, and it is the one that was answered."""
    with it.connect() as connection:
        rows = connection.execute(
            "SELECT labels::json ->> 'key', id FROM executions WHERE labels IS NOT NULL"
        ).fetchall()
    assert sorted(rows) == sorted(orders.answered.items())
    assert orders.changed == []


@pytest.mark.timeout(240)
def test_nothing_is_lost_or_done_twice_while_a_process_is_killed_every_second() -> None:
    async def main(it: Plant, choose: random.Random) -> tuple[dict[str, Any], Orders]:
        async with it.client() as client, aiohttp.ClientSession() as session:
            orders = Orders(it, session)
            await asyncio.gather(_submit(client, orders, choose), _strike(it, choose))
            client.accepted.update(dict.fromkeys(orders.answered.values(), works.diamond()))
            await client.until_ended()
            return client.accepted, orders

    seed = time.time_ns() % 1_000_000
    with plant() as it:
        it.staff(orchestrators=3, workers=4, apis=2)
        accepted, orders = asyncio.run(main(it, random.Random(seed)))
        verdict = judge(it, accepted).assert_kept()
        print(f"seed {seed}, killed {it.killed()}, orders {len(orders.answered)} repeated {orders.repeated}")  # noqa: T201
        _assert_once(it, orders)
        assert verdict.states() == {"COMPLETED": ROUNDS * PER_ROUND}
        assert it.kills == ROUNDS
        assert [role for role in it.roles if not (role.runs or role.was_killed)] == [], "some ended by themselves"
        assert verdict.redelivered() > 0, "no kill hit a task"


def test_what_an_orchestrator_decides_that_slept_past_its_lease_is_refused() -> None:
    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            zombie = it.one("orchestrator")
            for _ in range(NAPS):
                await it.until_owned(3)
                await client.submit(works.chain(20), 200)
                await _until_busy(it)
                zombie.freeze()
                await _until_taken(it, zombie, "a frozen orchestrator's")
                zombie.thaw()
                await client.until_ended()
                if it.fenced:
                    break
            await it.until_owned(3)
            return client.accepted

    with plant() as it:
        it.staff(orchestrators=3, workers=2)
        verdict = judge(it, asyncio.run(main(it))).assert_kept()
        assert set(verdict.states()) == {"COMPLETED"}
        assert it.fenced > 0, "it was always told that its lease had gone before it could write"


async def _until_busy(it: Plant) -> None:
    before = len(it.calls())
    await until(lambda: len(it.calls()) > before + 300, "there is work")


async def _until_taken(it: Plant, role: Role, whose: str) -> None:
    """Its partitions have other owners."""
    begun, name = time.monotonic(), role.ready()
    await until(lambda: name not in it.owners() and None not in it.owners(), "its partitions are taken")
    print(f"{whose} partitions were taken after {time.monotonic() - begun:.1f} s")  # noqa: T201


def test_orchestrators_that_come_and_go_share_the_partitions() -> None:
    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            await it.until_owned(2)
            await client.submit(works.chain(20), 300)
            (joining,) = it.start("orchestrator")
            await it.until_owned(3)
            leaving, dying = it.running("orchestrator")[:2]
            await client.submit(works.chain(20), 300)
            leaving.terminate()
            assert await asyncio.to_thread(leaving.ends) == 0
            assert leaving.ready() not in it.owners(), "it hands over before it ends, not when its leases run out"
            await it.until_owned(2)
            await client.submit(works.chain(20), 300)
            dying.kill()
            await _until_taken(it, dying, "a dead orchestrator's")
            assert set(it.owners()) == {joining.ready()}
            await client.until_ended()
            return client.accepted

    with plant() as it:
        it.staff(orchestrators=2, workers=2)
        verdict = judge(it, asyncio.run(main(it))).assert_kept()
        assert verdict.states() == {"COMPLETED": 900}
        assert verdict.redelivered() == 0, "no worker was touched"


def test_a_join_of_a_hundred_parents_starts_once_a_thousand_times() -> None:
    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            await it.until_owned(3)
            begun = time.monotonic()
            await client.submit(works.fan(100, "noop"), 1000)
            await client.until_ended()
            print(f"\n101,000 tasks in {time.monotonic() - begun:.1f} s")  # noqa: T201
            return client.accepted

    with plant() as it:
        it.staff(orchestrators=3, workers=2)
        verdict = judge(it, asyncio.run(main(it))).assert_kept()
        assert verdict.states() == {"COMPLETED": 1000}
        starts = [(call.execution_id, call.node) for call in it.calls() if call.event == "begun"]
        assert len(starts) == len(set(starts)) == 1000
