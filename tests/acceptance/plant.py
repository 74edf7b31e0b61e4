"""Real servers and real roles, each of which a test can kill, freeze, thaw, stop and start.

    with open_plant() as plant:
        plant.start("orchestrator", count=3)
        plant.start("worker", "--concurrency", "4", count=4)
        async with plant.client() as client:
            await client.submit(works.diamond(), 1000)
            plant.one("worker").kill()
            await client.until_ended()
        print(judge(plant, client.accepted).assert_guarantees())

What the roles say is in `plant.folder/logs`; its end is in the message when waiting fails.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psycopg
import redis

from penstock.config import Settings
from penstock.engine.states import NODE_ENDS
from penstock.local import PostgresServer, RedisServer
from penstock.local.process import Process
from penstock.runtime import open_scaled, service_over
from penstock.service.submissions import StartRequest
from penstock.stores.base import ControlRequest
from penstock.stores.postgres.migrating import migrate
from penstock.stores.scaled import ScaledStores
from penstock.stores.waits import WaitSearch
from tests.acceptance import works
from tests.servers import database_url, open_folder, postgres_server, redis_server
from tests.waiting import until, until_now

PARTITIONS = 8
START_SECONDS = 60.0
END_SECONDS = 75.0
TAIL_LINES = 15
LOOK_SECONDS = 0.05
SOON_DEAD = {"HEARTBEAT_SECONDS": "1", "WORKER_DEAD_SECONDS": "5", "REAPER_SECONDS": "0.5"}
"""For the short size of a test in which workers die: by the defaults it is noticed after 15 s."""
SOON_COPIED = {"CHECKPOINT_SECONDS": "2"}
"""For the short size of a test that waits for checkpoints in PostgreSQL.

By the default they take up to 10 s.
"""
READY = re.compile(r"^(?:the API at )?(\S+) is ready;", re.MULTILINE)
HEALTH = re.compile(r"health and metrics at (http://[\w.:]+)")


class Role:
    """One life of a process."""

    def __init__(self, kind: str, number: int, process: Process, log: Path) -> None:
        self.kind = kind
        self.name = f"{kind}-{number}"
        self._process = process
        self._log = log
        self.pid = process.pid
        self.was_killed = False
        self.killed_at = 0.0
        """By the clock that handlers and owners write down."""
        self._address = ""

    def __repr__(self) -> str:
        state = "runs" if self.runs else f"ended with {self._process.code}"
        return f"{self.name} ({self.pid}, {state})"

    @property
    def runs(self) -> bool:
        return self._process.code is None

    @property
    def code(self) -> int | None:
        """128 + the signal's number if one ended it."""
        return self._process.code

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        assert self.runs, f"{self} had ended by itself:\n{self.said()}"
        self.was_killed = True
        self.killed_at = time.time()
        self._process.kill()

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM, and nothing else: see `ends`."""
        os.kill(self.pid, signal.SIGTERM)

    def ends(self) -> int:
        """Its exit code, when it has one."""
        until_now(lambda: not self.runs, f"{self} ends", seconds=START_SECONDS)
        assert self.code is not None
        return self.code

    def close(self) -> None:
        if self.runs:
            self._process.kill()

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def ready(self) -> str:
        """What it calls itself: a worker's or an orchestrator's name, an API's address."""
        match = until_now(self._is_ready, f"{self} is ready", seconds=START_SECONDS)
        return str(match[1])

    def _is_ready(self) -> re.Match[str] | None:
        match = READY.search(self.said())
        assert match or self.runs, f"{self} isn't ready and said:\n{self.said()}"
        return match

    @property
    def address(self) -> str:
        """Of an API, or another role's name; empty until it is ready."""
        if not self._address:  # else the log of a long life would be read again and again
            match = READY.search(self.said())
            self._address = match[1] if match else ""
        return self._address

    async def metrics(self) -> dict[str, float]:
        """What it counts, by name and labels as Prometheus writes them, without `penstock_`."""
        match = HEALTH.search(self.said())
        assert match, f"{self} has no --health-port"
        async with aiohttp.ClientSession() as session, session.get(match[1] + "/metrics") as answer:
            lines = (await answer.text()).splitlines()
        pairs = [
            line.removeprefix("penstock_").rsplit(" ", 1)
            for line in lines
            if line.startswith("penstock_")
        ]
        return {name: float(value) for name, value in pairs}


class Plant:
    def __init__(
        self,
        folder: Path,
        redis: RedisServer,
        database: str,
        postgres: PostgresServer | None,
        environ: Mapping[str, str],
    ) -> None:
        self.folder = folder
        self.redis = redis
        self.database = database
        self._postgres = postgres
        self._own_environ = environ
        self.works = folder / "works"
        self._logs = folder / "logs"
        self.works.mkdir()
        self._logs.mkdir()
        self.roles: list[Role] = []
        """All that were ever started."""
        self._numbers = itertools.count(1)

    @property
    def postgres(self) -> PostgresServer:
        assert self._postgres is not None, (
            "this plant shares its PostgreSQL: ask for open_plant(own_postgres=True)"
        )
        return self._postgres

    @property
    def settings(self) -> Settings:
        return Settings.load({"store": self.redis.url, "database": self.database}, environ={})

    def start(
        self, kind: str, *arguments: str, count: int = 1, ready: bool = True, **environ: str
    ) -> list[Role]:
        """Start `count` processes of a kind, and wait until they are ready unless `ready=False`.

        The names in `environ` are without PENSTOCK_.
        """
        started = [self._start(kind, arguments, environ) for _ in range(count)]
        for role in started if ready else ():
            role.ready()
        return started

    def staff(self, *, orchestrators: int, workers: int, apis: int = 0) -> None:
        """All at once, and then wait: starting one after the other takes much longer."""
        for kind, count in (("orchestrator", orchestrators), ("worker", workers), ("api", apis)):
            self.start(kind, count=count, ready=False)
        for role in self.roles:
            role.ready()

    def _start(self, kind: str, arguments: Sequence[str], environ: dict[str, str]) -> Role:
        number = next(self._numbers)
        log = self._logs / f"{kind}-{number}.log"
        handlers = ("--handlers", str(works.__file__)) if kind != "api" else ("--port", "0")
        health = ("--health-port", "0") if kind != "api" else ()
        command = [sys.executable, "-m", "penstock", kind, *handlers, *health, *arguments]
        # a file of its own for each life: what was said before it was killed stays
        process = Process(command, log, folder=self.folder, environ=self._environ(environ))
        role = Role(kind, number, process, log)
        self.roles.append(role)
        return role

    def _environ(self, settings: dict[str, str]) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "OPENAI_"))
        }
        own = {
            "STORE": self.redis.url,
            "DATABASE": self.database,
            "LOG_FORMAT": "console",
            "RATE_LIMIT": "off",
        }
        own["REQUIRE_KEYS"] = "never"  # tests make and revoke keys, and call without one
        named = {
            f"PENSTOCK_{name}": value
            for name, value in {**own, **self._own_environ, **settings}.items()
        }
        return {
            **inherited,
            **named,
            works.FOLDER_VARIABLE: str(self.works),
            "PYTHONUNBUFFERED": "1",
        }

    def running(self, kind: str = "") -> list[Role]:
        return [role for role in self.roles if role.runs and role.kind.startswith(kind)]

    def one(self, kind: str) -> Role:
        return self.running(kind)[0]

    def calls(self) -> list[works.Call]:
        return works.calls(self.works)

    def release(self, name: str) -> None:
        """Handlers that `pause` `until` this name go on."""
        (self.works / name).touch()

    @property
    def kills(self) -> int:
        return sum(role.was_killed for role in self.roles)

    def killed(self) -> dict[str, int]:
        """By kind."""
        return dict(Counter(role.kind for role in self.roles if role.was_killed))

    @property
    def fenced(self) -> int:
        """Writes of former owners that Redis has refused.

        Redis counts its errors by their first word.
        """
        with self.connect_redis() as link:
            stats: Any = link.info("errorstats")
        return int(stats.get("errorstat_FENCED", {}).get("count", 0))

    def tails(self) -> str:
        """The end of what each process said, for a failure's message."""
        parts = [
            f"--- {role}\n" + "\n".join(role.said().splitlines()[-TAIL_LINES:])
            for role in self.roles[-12:]
        ]
        return "\n".join(parts)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.database)

    def connect_redis(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis.url)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with open_scaled(self.settings) as stores:
            assert isinstance(stores, ScaledStores)
            client = Client(self, stores)
            try:
                yield client
            finally:
                await client.service.close()

    def owners(self) -> list[str | None]:
        """By partition, the name of the orchestrator whose lease holds."""
        with self.connect_redis() as link:
            seconds, microseconds = link.time()
            leases = [
                link.hmget(f"penstock:{{{p}}}:lease", "owner", "expires") for p in range(PARTITIONS)
            ]
        now = seconds * 1000 + microseconds / 1000
        return [
            owner.decode() if owner and float(expires) > now else None for owner, expires in leases
        ]

    def claim_holders(self) -> list[str]:
        """By partition, the name of the orchestrator that has claimed it in PostgreSQL."""
        with self.connect() as connection:
            rows = connection.execute("SELECT holder FROM partitions ORDER BY number").fetchall()
        return [holder for (holder,) in rows]

    async def until_owned(self, orchestrators: int = 0) -> None:
        """Every partition has an owner; and as many as there should be share them evenly."""

        def is_owned() -> bool:
            owners = self.owners()
            partitions_of_each = Counter(owners).values()
            is_even = (
                len(partitions_of_each) == orchestrators
                and max(partitions_of_each) - min(partitions_of_each) <= 1
            )
            return None not in owners and (is_even or not orchestrators)

        await until(is_owned, "every partition has an owner", seconds=START_SECONDS)

    def close(self) -> None:
        for role in self.roles:
            role.close()


class Client:
    """Somebody who submits, and writes down what was accepted."""

    def __init__(self, plant: Plant, stores: ScaledStores) -> None:
        self._plant = plant
        self.stores = stores
        self.service = service_over(stores, plant.settings)
        self.accepted: dict[str, dict[str, Any]] = {}
        """Ids that a call has answered with, and what they run."""

    async def submit(
        self, document: dict[str, Any], count: int = 1, *, name: str = ""
    ) -> list[str]:
        """`name`: of a workflow that is stored already and has this document."""
        if name:
            orders = [StartRequest(workflow=name) for _ in range(count)]
            ids = [(await self.service.submissions.submit(order)).execution_id for order in orders]
        else:
            plan = await self.service.workflows.plan(document)
            ids = await self.service.submissions.submit_many(plan, [None] * count, {})
        self.accepted.update(dict.fromkeys(ids, document))
        return ids

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        await self.service.executions.request_control(execution_id, request)

    async def state(self, execution_id: str) -> str:
        return str((await self.service.executions.stored(execution_id)).record.state)

    async def _open_nodes(self, execution_id: str) -> str:
        """Nodes that haven't ended, with their last lines of history, for a message."""
        stored = await self.service.executions.stored(execution_id)
        nodes = [repr(run) for run in stored.runs.values() if run.state not in NODE_ENDS]
        lines = [repr(line) for line in stored.history[-10:]]
        signals = await self.stores.cold.signals.of([execution_id])
        waits = await self.stores.cold.waits.find(WaitSearch(limit=1000))
        listed = [row.wait.node_id for row in waits if row.wait.execution_id == execution_id]
        return "\n".join([*nodes, *lines, f"signals: {signals}", f"listed waits: {listed}"])

    async def until_ended(self, *ids: str, seconds: float = END_SECONDS) -> None:
        """Also in PostgreSQL. Without ids: all that were accepted."""
        names = list(ids or self.accepted)

        async def have_ended() -> bool:
            return not await self._unfinished(names)

        try:
            await until(have_ended, f"{len(names)} executions end", seconds=seconds)
        except AssertionError as error:
            left = await self._unfinished(names)
            story = await self._open_nodes(left[0][0]) if left else ""
            raise AssertionError(
                f"{error}; {len(left)} left, such as {left[:3]}\n{story}\n{self._plant.tails()}"
            ) from None

    async def until_all_ended(self, seconds: float = END_SECONDS) -> None:
        """Also executions whose acceptance nobody heard, because the request was given up."""
        statement = (
            "SELECT count(*) FROM executions "
            "WHERE state NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
        )

        async def have_ended() -> bool:
            await pass_time(LOOK_SECONDS)  # PostgreSQL has other things to do
            [(unfinished,)] = await self.stores.cold.database.rows(statement, ())
            return not unfinished

        await until(have_ended, "all executions end", seconds=seconds)

    async def _unfinished(self, names: list[str]) -> list[tuple[str, str]]:
        statement = (
            "SELECT given.id, state FROM unnest(%s::text[]) AS given (id) "
            "LEFT JOIN executions USING (id) "
            "WHERE state IS NULL OR state NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
        )
        await pass_time(LOOK_SECONDS)  # PostgreSQL has other things to do
        return [
            (str(name), str(state))
            for name, state in await self.stores.cold.database.rows(statement, (names,))
        ]


async def pass_time(seconds: float) -> None:
    """Not to wait for anything: to strike at another point each time."""
    end = time.monotonic() + seconds
    await until(lambda: time.monotonic() >= end)


@contextmanager
def open_plant(
    *, own_postgres: bool = False, environ: Mapping[str, str] | None = None, **redis_options: Any
) -> Iterator[Plant]:
    """A plant with a Redis (AOF everysec) and a database of its own, and no roles yet.

    With `own_postgres` the database is on a PostgreSQL server of its own.

    `environ` is what every role gets, without its PENSTOCK_.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(open_folder())
        server = stack.enter_context(redis_server(**redis_options))
        postgres = stack.enter_context(postgres_server()) if own_postgres else None
        if postgres is not None:
            migrate(postgres.url, PARTITIONS)
        database = postgres.url if postgres else database_url(PARTITIONS)
        plant = Plant(folder, server, database, postgres, environ or {})
        stack.callback(plant.close)
        yield plant
