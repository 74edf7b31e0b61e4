"""Messages that come ten times and in any order (G2, G4, G5).

Also results before "started", and wake-ups that never come.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from penstock.stores.redis.timing import DEFAULT_TIMING
from tests.acceptance import regions, works
from tests.acceptance.outside import wrong_attempts
from tests.acceptance.people import people
from tests.acceptance.plant import Client, Plant, open_plant, pass_time
from tests.acceptance.plant_judge import Verdict, judge, left_in_redis
from tests.faults.meddling import Deafener, Repeater
from tests.faults.submitting import Submitter
from tests.faults.table import SWEEP_SECONDS, Fault
from tests.waiting import until

END_SECONDS = 300.0
DOCUMENTS = [
    works.diamond(),
    works.fan(10),
    works.chain(5),
    works.single("failing", "work_fail", config={"times": 2}),
    works.single("slow", "work_pause", config={"seconds": 0.3}),
    works.any_dag(3),
    *regions.DOCUMENTS,
]
MARGIN_SECONDS = 5.0
"""What a busy machine may take beside the waiting itself."""


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "messages", "every message of every role ×10 and shuffled, each result before its “started”"
)
def test_a_message_that_comes_ten_times_counts_once(fault: Fault) -> None:
    async def main(plant: Plant, stack: AsyncExitStack) -> tuple[Verdict, list[Repeater]]:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))
        )
        kinds = ("orchestrator", "orchestrator", "worker", "worker", "api")
        every = [
            await stack.enter_async_context(Repeater(plant.redis.url, fault.choices()))
            for _ in kinds
        ]
        roles = [
            plant.start(kind, ready=False, STORE=proxy.url)[0]
            for kind, proxy in zip(kinds, every, strict=True)
        ]
        ready = [await asyncio.to_thread(role.ready) for role in roles]
        client = await stack.enter_async_context(plant.client())
        await stack.enter_async_context(people(client.service))
        submitter = Submitter(session, ready[-1:])
        await submitter.submit(DOCUMENTS * fault.size(short=4, full=150))
        count = fault.size(short=3, full=50)
        cancelled = await _started_and_controlled(submitter, ready[-1], session, count, "cancel")
        paused = await _started_and_controlled(
            submitter, ready[-1], session, count, "pause", "resume"
        )
        await client.until_ended(*submitter.accepted, *cancelled, *paused, seconds=END_SECONDS)
        for proxy in every:
            await proxy.drain()
        await until(lambda: not left_in_redis(plant), "all of it has been read", seconds=60)
        verdict = await asyncio.to_thread(
            lambda: judge(plant, submitter.accepted).assert_guarantees()
        )
        whole = {
            name: document for name, document in submitter.accepted.items() if name not in cancelled
        }
        assert wrong_attempts(verdict, whole) == [], (
            "a failure that came again counted for another attempt"
        )
        return verdict, every

    async def run(plant: Plant) -> tuple[Verdict, list[Repeater]]:
        async with AsyncExitStack() as stack:
            return await main(plant, stack)

    with open_plant() as plant:
        verdict, every = asyncio.run(run(plant))
        messages, copies = (
            sum(getattr(proxy, what) for proxy in every) for what in ("messages", "copies")
        )
        overtaken = sum(proxy.overtaken for proxy in every)
        assert copies > 8 * messages > 0  # the last ones may come while they are counted
        assert overtaken > 0, "no task took long enough to say that it has started"
        outcomes = sum(len(stored.runs) for stored in verdict.executions.values())
        fault.shows(
            executions=len(verdict.executions),
            messages=messages,
            copies=copies,
            results_first=overtaken,
            recorded_outcomes=outcomes,
            violations=0,
        )


async def _started_and_controlled(
    submitter: Submitter,
    address: str,
    session: aiohttp.ClientSession,
    count: int,
    *control_requests: str,
) -> dict[str, dict[str, Any]]:
    """In the middle, ten times each.

    A pause that comes again after a resume isn't the last word.
    """
    slow = works.chain(12, "work_pause", config={"seconds": 0.5})
    before = set(submitter.accepted)
    await submitter.submit([slow] * count, control_requests[0])
    names = [name for name in submitter.accepted if name not in before]
    for request in control_requests:
        for name in names:
            async with session.post(
                f"{address}/api/v1/executions/{name}/{request}", json={}
            ) as answer:
                assert answer.status == 202, await answer.text()
    return dict.fromkeys(names, slow)


@pytest.mark.timeout(300)
@pytest.mark.fault(
    "messages", "every wake-up of every role dropped; waiting work is found by the periodic check"
)
def test_work_that_nobody_is_woken_for_is_found_by_the_next_look(fault: Fault) -> None:
    async def submit(client: Client) -> None:
        for _ in range(fault.size(short=4, full=60)):
            await client.submit(works.single("one", "work_note"), 10)
            await pass_time(0.5)

    async def main(plant: Plant) -> tuple[Verdict, int]:
        async with AsyncExitStack() as stack:
            kinds = ("orchestrator", "worker", "worker")
            every = [
                await stack.enter_async_context(Deafener(plant.redis.url, fault.choices()))
                for _ in kinds
            ]
            for kind, proxy in zip(kinds, every, strict=True):
                plant.start(kind, ready=False, STORE=proxy.url)
            for role in plant.roles:
                await asyncio.to_thread(role.ready)
            client = await stack.enter_async_context(plant.client())
            await plant.until_owned()
            await submit(client)
            await client.until_ended(seconds=END_SECONDS)
            verdict = await asyncio.to_thread(
                lambda: judge(plant, client.accepted).assert_guarantees()
            )
            return verdict, sum(proxy.dropped for proxy in every)

    with open_plant() as plant:
        verdict, dropped = asyncio.run(main(plant))
        assert dropped > 0
        waits = sorted(_waited(stored) for stored in verdict.executions.values())
        p99 = waits[int(0.99 * len(waits))]
        assert p99 <= DEFAULT_TIMING.wake_up_seconds + MARGIN_SECONDS
        fault.shows(
            executions=len(waits),
            wake_ups_dropped=dropped,
            p50_seconds=waits[len(waits) // 2],
            violations=0,
        )
        fault.promises(SWEEP_SECONDS, p99_seconds=p99)


def _waited(stored: Any) -> float:
    """From its start to its end."""
    return float(stored.record.finished_at - stored.record.started_at)
