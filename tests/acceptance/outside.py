"""What can be seen of a plant from outside.

Over HTTP, in PostgreSQL, in Redis, and in the processes' own metrics.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import aiohttp
import psutil

from tests.acceptance import regions, works
from tests.acceptance.plant import PARTITIONS, Client, Plant, Role
from tests.acceptance.plant_judge import Verdict
from tests.waiting import until, until_now

AROUND_LINES = 30
REGION_FIELDS = {"for_each", "repeat"}
LOST = (aiohttp.ClientError, TimeoutError, ConnectionError)


def say(text: str) -> None:
    print(text)  # noqa: T201 -- the issue asks for these figures


def begin(plant: Plant, *, orchestrators: int = 2, workers: int = 2, apis: int = 0) -> list[Role]:
    """All at once, which is faster than one kind after another; with every partition built.

    Answers the APIs.
    """
    plant.start("worker", count=workers, ready=False)
    plant.start("orchestrator", count=orchestrators, ready=False)
    started_apis = plant.start("api", count=apis, ready=False)
    for role in plant.roles:
        role.ready()
    asyncio.run(plant.until_owned(orchestrators))
    until_now(lambda: is_built(plant), "every partition is built")
    return started_apis


def is_built(plant: Plant) -> bool:
    with plant.connect_redis() as link:
        return all(
            link.hexists(f"penstock:{{{partition}}}:lease", "built")
            for partition in range(PARTITIONS)
        )


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any


class Caller:
    """Somebody who speaks HTTP, and writes down what was accepted."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session
        self.accepted: dict[str, dict[str, Any]] = {}
        self.refused = 0

    async def order(self, address: str, document: dict[str, Any], query: str = "") -> Answer:
        url = f"{address}/api/v1/executions{query}"
        async with self.session.post(url, json={"definition": document}) as response:
            answer = Answer(
                response.status, response.headers, await response.json(content_type=None)
            )
        if answer.status == 201:
            self.accepted[answer.body["execution_id"]] = document
        else:
            self.refused += 1
        return answer

    async def order_for_ever(
        self, address: str, document: dict[str, Any], pause_seconds: float = 0.05
    ) -> None:
        """An answer that is lost is no acceptance."""
        while True:
            with suppress(*LOST):
                await self.order(address, document)
            await asyncio.sleep(pause_seconds)

    async def get(self, url: str) -> Answer:
        async with self.session.get(url) as response:
            return Answer(response.status, response.headers, await response.json(content_type=None))

    async def until_closed(self, address: str) -> None:
        """The API knows that a store is away; found by what changes nothing."""

        async def is_closed() -> bool:
            async with self.session.post(
                f"{address}/api/v1/executions/nobody/cancel", json={}
            ) as response:
                return response.status == 503

        await until(is_closed, "the API knows", seconds=30)

    async def until_refused(self, address: str, document: dict[str, Any]) -> Answer:
        return await self._until(address, document, 503)

    async def until_accepted(self, address: str, document: dict[str, Any]) -> Answer:
        return await self._until(address, document, 201)

    async def _until(self, address: str, document: dict[str, Any], status: int) -> Answer:
        async def answered() -> Answer | None:
            answer = await self.order(address, document)
            return answer if answer.status == status else None

        accepted_answer: Answer = await until(
            answered, f"an order is answered with {status}", seconds=30
        )
        return accepted_answer


@asynccontextmanager
async def caller() -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield Caller(session)


async def submit_mixed(
    client: Client,
    share: int,
    seconds: float = 0.1,
    *,
    with_waits: bool = True,
) -> None:
    """`share` of each kind: short and long, wide and deep, steady and failing, maps and loops.

    `with_waits`: also those that wait for people (`tests.acceptance.people`).
    """
    slow = works.chain(6, "work_pause", config={"seconds": seconds})
    failing = works.single("failing", "work_fail", config={"times": 2})
    kinds = [works.diamond(), works.chain(20), slow, failing, works.any_dag(7)]
    kinds += [document for document in regions.DOCUMENTS if document is not regions.WAITS]
    if with_waits:
        kinds.append(regions.WAITS)
    for document in kinds:
        await client.submit(document, share)
    await client.submit(works.fan(30), max(1, share // 10))


def unfinished(plant: Plant) -> int:
    with plant.connect() as connection:
        return int(
            connection.execute("SELECT count(*) FROM executions WHERE ended_at IS NULL").fetchall()[
                0
            ][0]
        )


def tasks(plant: Plant) -> int:
    """In all partitions, whether somebody has them or not."""
    with plant.connect_redis() as link:
        return sum(
            int(link.xlen(key)) for key in link.scan_iter(match="penstock:*:tasks:*", count=1000)
        )


def active(plant: Plant) -> set[str]:
    """Executions that Redis has as begun and not ended."""
    with plant.connect_redis() as link:
        members_by_partition: list[Any] = [
            link.smembers(f"penstock:{{{partition}}}:active") for partition in range(PARTITIONS)
        ]
    return {name.decode() for names in members_by_partition for name in names}


def flush(plant: Plant) -> None:
    with plant.connect_redis() as link:
        link.flushall()


def configure(plant: Plant, **settings: str) -> None:
    with plant.connect_redis() as link:
        for name, value in settings.items():
            link.config_set(name.replace("_", "-"), value)


async def total(plant: Plant, name: str) -> float:
    """Of a counter, over all orchestrators that run."""
    return sum([(await role.metrics())[name] for role in plant.running("orchestrator")])


PSYCOPG_GIVES_UP = "Exception ignored in: <generator object BasePipeline._exit_gen"
"""Said by psycopg, when a connection is gone before its pipeline could be ended.

Nobody waits for that one.
"""


HANDLER_FAILED = '"logger":"penstock.executions"'
"""Of a line about an attempt that failed, with the traceback of the handler: no mistake of ours."""


def complaints(plant: Plant) -> list[str]:
    """What a role says only if we made a mistake, with the lines around it."""
    unexpected: list[str] = []
    for role in plant.roles:
        lines = role.said().splitlines()
        for number, line in enumerate(lines):
            if number and PSYCOPG_GIVES_UP in lines[number - 1]:
                continue
            if HANDLER_FAILED in line:
                continue
            if "Traceback" in line or "never retrieved" in line:
                unexpected.append(
                    f"{role.name}: " + "\n".join(lines[max(0, number - 1) : number + AROUND_LINES])
                )
    return unexpected


def wrong_attempts(verdict: Verdict, accepted: Mapping[str, dict[str, Any]]) -> list[str]:
    """Nodes whose attempts aren't explained by their own failures.

    A lost task must not cost any other node an attempt.
    """
    problems: list[str] = []
    for name, document in accepted.items():
        runs = verdict.executions[name].runs
        for node in document["nodes"]:
            # what has no handler of its own: maps, loops and waits
            if not node.get("handler", "").startswith("work_") or node.keys() & REGION_FIELDS:
                continue
            explained = 1 + node.get("config", {}).get("times", 0)
            if runs[node["id"]].attempt != explained:
                problems.append(
                    f"{name} {node['id']}: {runs[node['id']].attempt} attempts instead of "
                    f"{explained}"
                )
    return problems


class Effort:
    """What processes spend while a `with` lasts, in shares of a core."""

    def __init__(self, roles: Iterable[Role]) -> None:
        self._processes = {role.name: psutil.Process(role.pid) for role in roles}
        self._before = self._spent()
        self._since = time.monotonic()

    def _spent(self) -> dict[str, float]:
        times = {name: process.cpu_times() for name, process in self._processes.items()}
        return {name: spent.user + spent.system for name, spent in times.items()}

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._since

    def shares(self) -> dict[str, float]:
        seconds, spent = self.seconds, self._spent()
        return {
            name: round((spent[name] - before) / seconds, 3)
            for name, before in self._before.items()
        }

    async def until_lasted(self, seconds: float) -> dict[str, float]:
        await until(lambda: self.seconds >= seconds, seconds=2 * seconds)
        return self.shares()
