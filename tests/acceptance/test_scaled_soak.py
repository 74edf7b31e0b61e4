"""A short soak: mixed load through the API, random faults from a printed seed. Nothing is lost, and nothing grows."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import psutil

from tests.acceptance import works
from tests.acceptance.outside import LOST, Caller, begin, caller, complaints, flush, is_built, say, unfinished
from tests.acceptance.plant import END_SECONDS, Plant, Role, plant
from tests.acceptance.plant_judge import judge
from tests.waiting import until

SOAK_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 1.5
ORDERING = 4
MORE_FILES = 30
"""That a role may have open when it has been through everything: connections that it keeps for the next time."""
KINDS = (
    works.diamond(),
    works.chain(20),
    works.chain(6, "work_pause", config={"seconds": 0.05}),
    works.single("failing", "work_fail", config={"times": 2}),
    works.any_dag(7),
    works.fan(30),
)
FAULTS = ("worker", "orchestrator", "api", "FLUSHALL", "Redis stopped", "Redis killed")
FIXED = {
    "lease", "inbox", "wake", "events", "queues", "tasks", "store", "beats", "workers", "orchestrators",
}  # fmt: skip


def test_a_short_soak_with_random_faults_loses_nothing_and_leaves_nothing_behind():
    seed = time.time_ns() % 1_000_000
    say(f"seed {seed}")
    with plant() as it:
        begin(it, orchestrators=2, workers=2, apis=2)
        kept = [it.one(kind) for kind in ("orchestrator", "worker", "api")]
        before = {role.name: figures(role) for role in kept}

        async def main() -> None:
            async with it.client() as client, caller() as calls:
                faults = await soak(it, calls, random.Random(seed), kept)
                say(f"faults: {dict(faults)}; {len(calls.accepted)} orders accepted, {calls.refused} refused")
                await client.until_ended(*calls.accepted)
                await until(lambda: unfinished(it) == 0, "also those whose acceptance was lost", seconds=END_SECONDS)
                verdict = judge(it, calls.accepted, KINDS, lossy=True).assert_kept()
                assert verdict.states().keys() == {"COMPLETED"}
                assert len(calls.accepted) > 100
                await until(lambda: names_in(it, "beats") == len(it.running("worker")), "the dead are forgotten")

        asyncio.run(main())
        for role in kept:
            say(f"{role.name}: files and MB {before[role.name]} before, {figures(role)} after")
            assert figures(role)[0] <= before[role.name][0] + MORE_FILES
        assert_only_fixed_keys(it)
        assert complaints(it) == []


def figures(role: Role) -> tuple[int, int]:
    process = psutil.Process(role.pid)
    return process.num_fds(), round(process.memory_info().rss / 1e6)


async def soak(it: Plant, calls: Caller, choose: random.Random, kept: list[Role]) -> Counter[str]:
    ordering = [asyncio.create_task(order_for_ever(it, calls, choose)) for _ in range(ORDERING)]
    faults: Counter[str] = Counter()
    end = time.monotonic() + SOAK_SECONDS
    while time.monotonic() < end:
        for fault in choose.sample(FAULTS, len(FAULTS)):
            await asyncio.sleep(choose.random() * LONGEST_PAUSE_SECONDS)
            await asyncio.to_thread(do, it, fault, kept)
            faults[fault] += 1
    for each in ordering:
        each.cancel()
    await asyncio.gather(*ordering, return_exceptions=True)
    await until(lambda: is_built(it), "Redis is built again", seconds=END_SECONDS)
    return faults


def do(it: Plant, fault: str, kept: list[Role]) -> None:
    if fault == "FLUSHALL":
        flush(it)
    elif fault == "Redis stopped":
        it.redis.restart()
    elif fault == "Redis killed":
        it.redis.kill()
        it.redis.start()
    else:
        for role in it.running(fault):
            if role not in kept:
                role.kill()
        it.start(fault, ready=False)


async def order_for_ever(it: Plant, calls: Caller, choose: random.Random) -> None:
    while True:
        address = choose.choice([role for role in it.running("api") if "is ready" in role.said()]).ready()
        with suppress(*LOST):
            await calls.order(address, choose.choice(KINDS))
        await asyncio.sleep(choose.random() * 0.05)


def names_in(it: Plant, what: str) -> int:
    with it.connect_redis() as link:
        return int(link.hlen(f"penstock:{{fleet}}:{what}"))


def assert_only_fixed_keys(it: Plant) -> None:
    """Those that every store has, whatever it has been through: nothing of an execution, and of nobody who is gone."""
    with it.connect_redis() as link:
        keys = [key.decode() for key in link.scan_iter(match="*", count=1000)]
        streams = [key for key in keys if ":tasks:" in key]
        consumers = max(len(link.xinfo_consumers(key, "workers")) for key in streams)
        memory: Any = link.info("memory")
    found = Counter(re.sub(r"^penstock:\{\w+\}:(\w+).*", r"\1", key) for key in keys)
    say(
        f"keys in Redis: {dict(found)}; at most {consumers} consumers of a stream; {memory['used_memory'] / 1e6:.1f} MB"
    )
    assert found.keys() <= FIXED
    assert consumers <= len(it.running("worker"))
