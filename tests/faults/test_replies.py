"""Store calls that are done and not answered, or done late (G1, G2, G4).

A late call is done when its caller has long read again.

Every role talks to Redis and PostgreSQL through a proxy of its own, which cuts its connections in
the middle of calls; the judge asks the servers themselves.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from tests.acceptance import regions, works
from tests.acceptance.people import people
from tests.acceptance.plant import Plant, open_plant
from tests.acceptance.plant_judge import judge
from tests.faults.proxies import PostgresProxy, RedisProxy
from tests.faults.submitting import Submitter
from tests.faults.table import Fault
from tests.waiting import until

ROLES = ("orchestrator", "orchestrator", "worker", "worker", "api")
END_SECONDS = (90, 180)
"""How long until all has ended, in `make test` and in `make faults`.

In `make faults` there is more to do, and one call in ten breaks a connection.
"""
DOCUMENTS = [
    works.diamond(),
    works.fan(10),
    works.chain(5),
    works.single("failing", "work_fail", config={"times": 2}),
    works.single("slow", "work_pause", config={"seconds": 0.3}),
    works.any_dag(3),
    *regions.DOCUMENTS,
]


class Proxies:
    """One of each kind for each role, and the roles behind them."""

    def __init__(self, plant: Plant, stack: AsyncExitStack, choose: random.Random) -> None:
        self._plant = plant
        self._stack = stack
        self._choose = choose
        self.redis: list[RedisProxy] = []
        self.postgres: list[PostgresProxy] = []

    async def start(self) -> list[str]:
        """Answers the APIs' addresses."""
        roles = [await self._start(kind) for kind in ROLES]
        ready = [await asyncio.to_thread(role.ready) for role in roles]
        await self._plant.until_owned(ROLES.count("orchestrator"))
        return [address for kind, address in zip(ROLES, ready, strict=True) if kind == "api"]

    async def _start(self, kind: str) -> Any:
        redis, postgres = (
            RedisProxy(self._plant.redis.url, self._choose),
            PostgresProxy(self._plant.database, self._choose),
        )
        self.redis.append(await self._stack.enter_async_context(redis))
        self.postgres.append(await self._stack.enter_async_context(postgres))
        return self._plant.start(kind, ready=False, STORE=redis.url, DATABASE=postgres.url)[0]

    def strike(self, share: float) -> None:
        for proxy in (*self.redis, *self.postgres):
            proxy.share = share

    def count(self, proxies: list[Any], what: str) -> int:
        return sum(getattr(proxy, what) for proxy in proxies)


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "replies",
    "1, 3 and 10 % of all calls to Redis and PostgreSQL done unanswered, or done too late",
)
def test_a_call_that_is_done_and_not_answered_is_done_once(fault: Fault) -> None:
    shares = (0.01, 0.03, 0.1) if fault.is_full else (0.03,)

    async def main(plant: Plant) -> tuple[Submitter, Proxies]:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
            )
            proxies = Proxies(plant, stack, fault.choices())
            submitter = Submitter(session, await proxies.start())
            client = await stack.enter_async_context(plant.client())
            await stack.enter_async_context(people(client.service))
            for share in shares:
                proxies.strike(share)
                await submitter.submit(DOCUMENTS * fault.size(short=5, full=40), f"{share:.0%}")
                await client.until_ended(*submitter.accepted, seconds=fault.size(*END_SECONDS))
            proxies.strike(0.0)
            await until(
                lambda: None not in plant.owners(), "all partitions have owners again", seconds=60
            )
            client.accepted.update(submitter.accepted)
            return submitter, await _assert_guarantees(plant, client, submitter, proxies)

    async def _assert_guarantees(
        plant: Plant, client: Any, submitter: Submitter, proxies: Proxies
    ) -> Proxies:
        """The judge waits for what is left over: the roles must be there while it does."""
        verdict = await asyncio.to_thread(
            lambda: judge(plant, submitter.accepted).assert_guarantees()
        )
        fault.shows(executions=len(verdict.executions), redelivered=verdict.redelivered())
        return proxies

    with open_plant() as plant:
        submitter, proxies = asyncio.run(main(plant))
        submitter.assert_once(plant)
        counts = {
            "calls": proxies.count(proxies.redis, "calls"),
            "unanswered": proxies.count(proxies.redis, "unanswered"),
            "late": proxies.count(proxies.redis, "late"),
            "unanswered_by_PostgreSQL": proxies.count(proxies.postgres, "unanswered"),
        }
        assert all(counts.values()), counts
        late_commits = proxies.count(proxies.redis, "late_commits")
        assert late_commits or not fault.is_full, (
            "no commit came after its partition was taken again"
        )
        fault.shows(
            **counts,
            late_commits=late_commits,
            repeated=submitter.repeated,
            fenced=plant.fenced,
            violations=0,
        )
