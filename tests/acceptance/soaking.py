"""Mixed load and random faults for as long as wanted, with samples of the plant."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import psutil

from tests.acceptance import regions, works
from tests.acceptance.outside import LOST, Caller, flush, is_built, say, unfinished
from tests.acceptance.plant import END_SECONDS, Plant, Role
from tests.acceptance.plant_judge import left_in_redis
from tests.faults.samples import Samples
from tests.waiting import until

KINDS = (
    works.diamond(),
    works.chain(20),
    works.chain(6, "work_pause", config={"seconds": 0.05}),
    works.single("failing", "work_fail", config={"times": 2}),
    works.any_dag(7),
    works.fan(30),
    *regions.DOCUMENTS,
)
FEW_FAULTS = ("worker", "orchestrator", "api", "FLUSHALL", "Redis stopped", "Redis killed")
FAULTS = (
    *FEW_FAULTS,
    "Redis read-only",
    "PostgreSQL restarted",
    "worker frozen",
    "orchestrator frozen",
)
PAUSE_SECONDS_MAX = 1.5
FROZEN_SECONDS = 6.0
"""Longer than a lease."""
READ_ONLY_SECONDS = 2.0
SAMPLE_SECONDS = 10.0
SAY_SECONDS = 60.0
REST_SECONDS = 3 * END_SECONDS
ORDERING = 4
ORDERS_MAX = 30_000
"""In all, however long it lasts: they are judged one by one."""
ORDERS_MIN = 101
"""Accepted by the end: a soak with fewer had no real load."""
SLOW_SECONDS = 90.0
"""How much longer a slow machine may take until so many are accepted."""
ORDER_PAUSE_SECONDS_MAX = 0.05
BOUNDS = {"MB": 16.0, "files": 8.0, "keys": 24.0, "RedisMB": 8.0}
"""How much each may grow in a run, without its warm-up."""


def figures(role: Role) -> tuple[int, float]:
    """Its open files, and its memory in MB."""
    process = psutil.Process(role.pid)
    return process.num_fds(), process.memory_info().rss / 1e6


class Soak:
    def __init__(
        self,
        plant: Plant,
        calls: Caller,
        choose: random.Random,
        lasting_roles: Sequence[Role],
        seconds: float,
    ) -> None:
        self._plant = plant
        self._calls = calls
        self._choose = choose
        self._lasting_roles = lasting_roles
        self._seconds = seconds
        self._since = time.monotonic()
        self._may_order = asyncio.Event()
        self._pause_seconds = max(ORDER_PAUSE_SECONDS_MAX, 2 * ORDERING * seconds / ORDERS_MAX)
        self.faults: Counter[str] = Counter()
        self.samples = Samples(BOUNDS)

    @property
    def passed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._since

    async def run(self, faults: Sequence[str], *, rests: bool) -> None:
        """Inject every fault once per round, in random order, until time and load suffice.

        If it `rests`, the plant comes to rest after each round.
        """
        self._may_order.set()
        besides = [asyncio.create_task(self._order_for_ever()) for _ in range(ORDERING)]
        besides += [
            asyncio.create_task(background)
            for background in (self._sample_for_ever(), self._say_for_ever())
        ]
        while not self._is_enough():
            for fault in self._choose.sample(faults, len(faults)):
                await asyncio.sleep(self._choose.random() * PAUSE_SECONDS_MAX)
                await asyncio.to_thread(self._do, fault)
                self.faults[fault] += 1
            if rests:
                await self._rest()
        for background in besides:
            background.cancel()
        for ended in await asyncio.gather(*besides, return_exceptions=True):
            assert isinstance(ended, asyncio.CancelledError), ended
        await until(lambda: is_built(self._plant), "Redis is built again", seconds=END_SECONDS)

    def _is_enough(self) -> bool:
        """Its time is over, and the load was real, or will never be."""
        has_load = len(self._calls.accepted) >= ORDERS_MIN
        return self.passed >= self._seconds and (
            has_load or self.passed >= self._seconds + SLOW_SECONDS
        )

    async def _rest(self) -> None:
        """Nobody orders, everything ends, and Redis is looked at; then it goes on."""
        self._may_order.clear()

        def is_at_rest() -> bool:
            return (
                unfinished(self._plant) == 0
                and is_built(self._plant)
                and not left_in_redis(self._plant)
            )

        await until(is_at_rest, "everything has ended", seconds=REST_SECONDS)
        with self._plant.connect_redis() as link:
            keys, memory = int(link.dbsize()), int(link.info("memory")["used_memory"])
        self.samples.take(self.passed, {"keys": keys, "RedisMB": memory / 1e6})
        self._may_order.set()

    async def _order_for_ever(self) -> None:
        while True:
            await self._may_order.wait()
            address = self._choose.choice(
                [role.address for role in self._plant.running("api") if role.address]
            )
            with suppress(*LOST):
                await self._calls.order(address, self._choose.choice(KINDS))
            await asyncio.sleep(self._choose.random() * self._pause_seconds)

    async def _sample_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            await self._may_order.wait()  # always under the same load
            for role in self._lasting_roles:
                files, memory = figures(role)
                self.samples.take(
                    self.passed, {f"MB of {role.kind}": memory, f"files of {role.kind}": files}
                )

    async def _say_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SAY_SECONDS)
            now = {role.kind: figures(role) for role in self._lasting_roles}
            usage = ", ".join(
                f"{kind} {memory:.0f} MB {files} files" for kind, (files, memory) in now.items()
            )
            say(
                f"{self.passed / 60:.0f} min: {len(self._calls.accepted)} accepted, "
                f"{self._calls.refused} refused; "
                f"{usage}; faults {dict(self.faults)}"
            )

    def _do(self, fault: str) -> None:
        plant, (what, _, how) = self._plant, fault.partition(" ")
        if fault == "FLUSHALL":
            flush(plant)
        elif fault == "Redis read-only":
            _refuse_writes(plant)
        elif what == "PostgreSQL":
            plant.postgres.restart()
        elif what == "Redis":
            plant.redis.kill() if how == "killed" else plant.redis.stop()
            plant.redis.start()
        elif how == "frozen":
            self._freeze(what)
        else:
            for role in self._others(what):
                role.kill()
            plant.start(what, ready=False)

    def _others(self, kind: str) -> list[Role]:
        return [role for role in self._plant.running(kind) if role not in self._lasting_roles]

    def _freeze(self, kind: str) -> None:
        for role in self._others(kind):
            role.freeze()
            _pass(FROZEN_SECONDS)
            role.thaw()


def _refuse_writes(plant: Plant) -> None:
    with plant.connect_redis() as link:
        link.replicaof("127.0.0.1", "1")  # nobody is there
        _pass(READ_ONLY_SECONDS)
        link.replicaof("NO", "ONE")


def _pass(seconds: float) -> None:
    """The time that a fault lasts."""
    threading.Event().wait(seconds)
