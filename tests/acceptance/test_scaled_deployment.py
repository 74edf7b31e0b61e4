"""Workers with different handlers side by side, as in a rolling deployment.

No task fails that one of the workers can run.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.acceptance import works
from tests.acceptance.plant import Client, Plant, open_plant
from tests.acceptance.plant_judge import judge
from tests.faults.table import Fault
from tests.waiting import until

SHARED = "shared"
ONCE = {"max_attempts": 1}


def _mixed() -> dict[str, Any]:
    """In one queue: what every worker can run, and what only new ones can.

    Nobody may fail even once.
    """
    shared: dict[str, Any] = {"queue": SHARED, "retry": ONCE}
    return works.document(
        "mixed",
        works.node("a", (), **shared),
        works.node("b", "a", "work_new", **shared),
        works.node("c", "b", **shared),
    )


async def _submit(client: Client, document: dict[str, Any], count: int) -> list[str]:
    """Of a workflow whose handlers come later."""
    await client.service.workflows.put(document, allow_unknown_handlers=True)
    return await client.submit(document, count, name=document["name"])


async def _passed_over(client: Client) -> int:
    queue = client.stores.queue
    backlogs_by_partition = [
        await queue.backlog(partition) for partition in range(client.stores.hot.partitions)
    ]
    return sum(
        backlog.waiting
        for backlogs in backlogs_by_partition
        for backlog in backlogs
        if backlog.handler == "work_new"
    )


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "deployment", "workers with and without a new handler on one queue, replaced one by one"
)
def test_a_rolling_deployment_fails_nothing_that_some_worker_can_run(fault: Fault) -> None:
    count = fault.size(short=20, full=500)

    async def main(plant: Plant) -> tuple[dict[str, Any], int]:
        async with plant.client() as client:
            (old,) = plant.start("worker", "--queues", SHARED)
            await _submit(client, _mixed(), count)
            passed = 0

            async def are_passed_over() -> bool:
                nonlocal passed
                passed = await _passed_over(client)
                return passed == count

            await until(are_passed_over, "the old worker has met all new tasks", seconds=60)
            (new,) = plant.start("worker", "--queues", SHARED, NEW_WORKS="1")
            await client.submit(_mixed(), count, name="mixed")
            await client.until_ended()
            (newer,) = plant.start("worker", "--queues", SHARED, NEW_WORKS="1")
            late = await client.submit(_mixed(), count, name="mixed")
            for leaving in (old, new):
                leaving.terminate()
            await client.until_ended()
            assert len(late) == count
            assert newer.runs
            return client.accepted, passed

    with open_plant() as plant:
        plant.staff(orchestrators=2, workers=0)
        accepted, passed = asyncio.run(main(plant))
        verdict = judge(plant, accepted).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 3 * count}
        assert {
            run.attempt for stored in verdict.executions.values() for run in stored.runs.values()
        } == {1}
        fault.shows(executions=3 * count, passed_over=passed, failed=0, violations=0)


@pytest.mark.timeout(240)
@pytest.mark.fault("deployment", "a worker that moves a handler to another queue, and dies")
def test_a_worker_that_moves_a_handler_to_its_own_queue_and_goes_strands_nothing(
    fault: Fault,
) -> None:
    count = fault.size(short=10, full=200)

    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            plant.start("worker", NEW_WORKS="1")
            (mover,) = plant.start(
                "worker", "--queues", "special", NEW_WORKS="1", MOVED_QUEUE="special"
            )
            document = works.single("moved", "work_moved", retry=ONCE)

            async def is_moved() -> bool:
                await client.until_ended(*await client.submit(document))
                return plant.calls()[-1].pid == mover.pid

            await until(is_moved, "the handler is where its newest worker is")
            mover.freeze()  # so that something waits in its queue
            await client.submit(document, count)
            if fault.is_full:
                mover.kill()
            else:
                mover.terminate()
                mover.thaw()
            await client.submit(document, count)
            await client.until_ended()
            return client.accepted

    with open_plant() as plant:
        plant.staff(orchestrators=1, workers=0)
        verdict = judge(plant, asyncio.run(main(plant))).assert_guarantees()
        ended = verdict.states()
        assert ended.keys() == {"COMPLETED"}
        fault.shows(executions=ended["COMPLETED"], stranded=0, violations=0)
