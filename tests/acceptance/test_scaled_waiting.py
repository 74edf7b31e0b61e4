"""Very many executions that only wait: they cost little, and survive the loss of everything (G1).

No worker runs before the end: nothing of a wait needs one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable
from typing import Any

import pytest

from penstock.service.approvals import Decider
from penstock.service.submissions import StartRequest
from tests.acceptance import works
from tests.acceptance.outside import Effort, active, begin, complaints, flush, is_built, say, total
from tests.acceptance.plant import PARTITIONS, Client, Plant, open_plant
from tests.acceptance.plant_judge import judge
from tests.faults.table import Fault
from tests.waiting import until

BYTES_MAX = 5_000
"""Of Redis, for an execution that waits."""
CALLS_MAX = 0.05
"""Store calls a second for an execution that waits: one in 20 s would be a poll already."""
AT_ONCE = 50
BUSY_SHARE = 0.5
AFTER = works.node("after", "w")


def waiting(workflow: str, handler: str, **config: Any) -> dict[str, Any]:
    return works.document(workflow, {"id": "w", "handler": handler, "config": config}, AFTER)


NAP = waiting("nap", "wait", until="{{ input.until }}")
PAID = waiting("paid", "signal", name="paid")
ORDERED = waiting("ordered", "signal", name="ordered", correlation="{{ input.key }}")
ASKED = waiting("asked", "approval", title="Go on?", expires_seconds=86_400)
DOCUMENTS = [NAP, PAID, ORDERED, ASKED]


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "Redis", "10,000 executions that wait; kill -9 of all processes and Redis, then FLUSHALL"
)
def test_executions_that_wait_need_no_worker_and_survive_the_loss_of_everything(
    fault: Fault,
) -> None:
    count = fault.size(short=200, full=10_000)
    look_seconds = fault.size(short=2, full=20)
    seconds = fault.size(short=240, full=1_800)

    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            memory_before = used_memory(plant)
            calls_idle = await calls_a_second(plant, look_seconds)
            until_time = time.time() + fault.size(short=20, full=240)
            ids = await submit(client, count, until_time)
            await until(
                lambda: are_waiting(plant, ids, until_time), "all of them wait", seconds=seconds
            )
            await until(lambda: not outbox(plant), "their waits are listed", seconds=seconds)
            effort = Effort(plant.running())
            bytes_each = (used_memory(plant) - memory_before) / count
            calls_waiting = await until_calm(plant, look_seconds, count, calls_idle, seconds)
            share = max(effort.shares().values())
            say(
                f"{bytes_each:.0f} bytes for each; {calls_idle:.1f} calls a second before, "
                f"{calls_waiting:.1f} while {count:,} wait; {share:.3f} of a core"
            )
            assert bytes_each < BYTES_MAX
            assert share < BUSY_SHARE

            await kill_everything(plant)
            await until(lambda: active(plant) == set(client.accepted), "all of them are back")
            flush(plant)
            begun = time.monotonic()
            await until(
                lambda: is_built(plant) and active(plant) == set(client.accepted),
                "all of them are built again",
                seconds=seconds,
            )
            rebuilt_seconds = time.monotonic() - begun
            rebuilt = await total(plant, "rebuilt_total")
            plant.start("worker", count=2)
            await end_waits(client, ids)
            await client.until_ended(seconds=seconds)
            fault.shows(
                executions=count,
                bytes_of_Redis_each=int(bytes_each),
                calls_a_second_idle=calls_idle,
                calls_a_second_waiting=calls_waiting,
                busiest_share_of_a_core=share,
                built_again=int(rebuilt),
                rebuilt_in_seconds=rebuilt_seconds,
            )
            assert rebuilt == count
            return client.accepted

    with open_plant() as plant:
        begin(plant, orchestrators=2, workers=0)
        verdict = judge(plant, asyncio.run(main(plant)), lossy=True).assert_guarantees()
        assert verdict.states() == {"COMPLETED": count}
        assert not (unexpected_lines := complaints(plant)), unexpected_lines[0]
        after = [call for call in plant.calls() if call.node == "after"]
        assert {call.execution_id for call in after} == verdict.executions.keys()
        fault.shows(kills=plant.kills, missing=0, violations=0)


async def submit(client: Client, count: int, until_time: float) -> dict[str, list[str]]:
    """As many of each kind. Answers their ids by the names of their documents."""
    ids: dict[str, list[str]] = {document["name"]: [] for document in DOCUMENTS}

    async def start(number: int) -> None:
        document = DOCUMENTS[number % len(DOCUMENTS)]
        values = {"until": until_time, "key": f"order-{number}"}
        request = StartRequest(workflow=document, input=values)
        execution_id = (await client.service.submissions.submit(request)).execution_id
        client.accepted[execution_id] = document
        ids[document["name"]].append(execution_id)

    await all_of(start(number) for number in range(count))
    return ids


async def all_of(calls: Iterable[Awaitable[None]]) -> None:
    """Not too many at once."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(call: Awaitable[None]) -> None:
        async with turns:
            await call

    await asyncio.gather(*(in_turn(call) for call in calls))


def are_waiting(plant: Plant, ids: dict[str, list[str]], until_time: float) -> bool:
    """Everything that can be seen from outside of nodes that wait."""
    with plant.connect() as connection:
        [(listed,)] = connection.execute("SELECT count(*) FROM waits").fetchall()
    naps = timers(plant)
    has_passed = time.time() > until_time
    for_somebody = sum(len(names) for kind, names in ids.items() if kind != "nap")
    # an approval has a timer too
    with_timer = len(ids["nap"]) + len(ids["asked"])
    return listed == for_somebody and (naps == with_timer or has_passed)


def timers(plant: Plant) -> int:
    with plant.connect_redis() as link:
        return sum(int(link.zcard(f"penstock:{{{p}}}:timers")) for p in range(PARTITIONS))


def outbox(plant: Plant) -> int:
    with plant.connect_redis() as link:
        return sum(int(link.xlen(f"penstock:{{{p}}}:outbox")) for p in range(PARTITIONS))


def used_memory(plant: Plant) -> int:
    with plant.connect_redis() as link:
        memory: Any = link.info("memory")
    return int(memory["used_memory"])


def calls(plant: Plant) -> int:
    """Commands that Redis has run, those of scripts too."""
    with plant.connect_redis() as link:
        stats: Any = link.info("commandstats")
    return sum(int(about["calls"]) for about in stats.values())


async def calls_a_second(plant: Plant, seconds: float) -> float:
    before = calls(plant)
    begun = time.monotonic()
    await until(lambda: time.monotonic() - begun >= seconds, seconds=2 * seconds + 10)
    return (calls(plant) - before) / (time.monotonic() - begun)


async def until_calm(
    plant: Plant, look_seconds: float, count: int, calls_idle: float, seconds: float
) -> float:
    """Store calls a second, once the last checkpoints are written."""
    rate = 0.0

    async def is_calm() -> bool:
        nonlocal rate
        rate = await calls_a_second(plant, look_seconds)
        return rate - calls_idle < CALLS_MAX * count

    await until(is_calm, "nobody polls for what waits", seconds=seconds)
    return rate


async def kill_everything(plant: Plant) -> None:
    orchestrators = plant.running("orchestrator")
    for role in orchestrators:
        role.kill()
    plant.redis.kill()
    plant.redis.start()
    plant.start("orchestrator", count=len(orchestrators))
    await plant.until_owned(len(orchestrators))
    await until(lambda: is_built(plant), "every partition is built", seconds=60)


async def end_waits(client: Client, ids: dict[str, list[str]]) -> None:
    """Send what they wait for; those that sleep wake up by themselves."""
    service = client.service

    async def pay(execution_id: str) -> None:
        await service.signals.send(execution_id, "paid", 7)

    async def order(execution_id: str) -> None:
        stored = await service.executions.stored(execution_id)
        wait = stored.runs["w"].more
        assert wait is not None
        assert wait.key is not None
        await service.signals.post("ordered", wait.key, 7)

    async def approve(execution_id: str) -> None:
        await service.approvals.decide(execution_id, "w", "approved", Decider("Ada"))

    calls_to_make = [pay(execution_id) for execution_id in ids["paid"]]
    calls_to_make += [order(execution_id) for execution_id in ids["ordered"]]
    calls_to_make += [approve(execution_id) for execution_id in ids["asked"]]
    await all_of(calls_to_make)
