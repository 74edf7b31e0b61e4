"""Handlers that keep their worker from sending heartbeats (G2, G5).

They block the event loop, or hold the GIL.

In `make test` the time after which a worker counts as dead is shorter; in `make faults` everything
is as it is shipped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from penstock.config import Timing
from tests.acceptance import works
from tests.acceptance.plant import Client, Plant, Role, open_plant
from tests.acceptance.plant_judge import judge
from tests.faults.launching import launch
from tests.faults.table import Fault
from tests.waiting import until

SHORT_SECONDS = 7
"""After which a worker counts as dead in `make test`."""
LONGER = 1.5
"""So much longer than that the loop is blocked, or the lock is held."""
TIMES = {
    "HEARTBEAT_SECONDS": "1",
    "WORKER_DEAD_SECONDS": str(SHORT_SECONDS),
    "REAPER_SECONDS": "0.5",
}
PATIENT: dict[str, float] = {}
IMPATIENT = {"silence_margin_seconds": 1.0, "silence_slack_seconds": 1.0}
"""A worker that is taken for stuck soon after its tasks' time is up."""
ONCE = {**works.STEADY, "max_attempts": 1}
NEIGHBOURS = 7


def _order(fault: Fault, worker_timing: dict[str, float]) -> dict[str, Any]:
    return {} if fault.is_full else {"worker_timing": worker_timing}


async def _until_begun(plant: Plant, *ids: str) -> None:
    def have_begun() -> bool:
        begun = {call.execution_id for call in plant.calls() if call.event == "begun"}
        return begun.issuperset(ids)

    await until(have_begun, "they begin", seconds=60)


async def _crowd(plant: Plant, client: Client, queue: str, blocker: dict[str, Any]) -> str:
    """Start neighbours that may be tried once, and then the one that they have to fear.

    The neighbours are claimed by a worker by then.
    """
    waiting = works.single(
        f"{queue}-neighbour", "work_pause", queue=queue, retry=ONCE, config={"until": "go"}
    )
    await _until_begun(plant, *await client.submit(waiting, NEIGHBOURS))
    (execution_id,) = await client.submit(blocker)
    await _until_begun(plant, execution_id)
    return execution_id


def _seconds(plant: Plant, execution_id: str) -> float:
    """From the beginning to the end of its only call."""
    begun, done = (call.at for call in plant.calls() if call.execution_id == execution_id)
    return done - begun


async def _get_stuck(plant: Plant, client: Client, worker: Role) -> None:
    """Run a handler that blocks its worker's loop for ever.

    Its node survives, though it may be tried only once.
    """
    document = works.single(
        "stuck",
        "work_block",
        queue="stuck",
        retry=ONCE,
        timeout_seconds=1,
        config={"seconds": 3600},
    )
    (execution_id,) = await client.submit(document)
    await _until_begun(plant, execution_id)
    plant.start("worker", "--queues", "stuck")
    await client.until_ended(execution_id, seconds=90)
    assert "longer than any of its tasks may run" in worker.said()
    worker.kill()


async def _outlast(
    plant: Plant, client: Client, documents: list[dict[str, Any]], workers: list[Role]
) -> list[str]:
    blockers = await asyncio.gather(
        _crowd(plant, client, "blocked", documents[0]), _crowd(plant, client, "held", documents[1])
    )
    plant.start("worker", "--queues", "blocked,held")  # whatever is lost, this one gets
    await until(lambda: "work_block" in workers[0].said(), "the log names it while it blocks")
    await until(
        lambda: "work_hold" in workers[1].said(), "the log names it while it holds the lock"
    )
    await client.until_ended(*blockers)
    plant.release("go")
    return list(blockers)


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "blocked",
    "an async handler blocks the loop, a thread holds Python's lock, for longer than 15 s",
)
def test_a_blocked_loop_or_a_held_lock_costs_nobody_an_attempt_and_the_log_names_the_handler(
    fault: Fault,
) -> None:
    limit = fault.size(short=SHORT_SECONDS, full=int(Timing().worker_dead_seconds))
    config = {"seconds": int(limit * LONGER)}
    blocking = works.single("blocking", "work_block", queue="blocked", retry=ONCE, config=config)
    holding = works.single(
        "holding",
        "work_hold",
        queue="held",
        retry=ONCE,
        config={**config, "pattern": fault.is_full},
    )

    async def main(plant: Plant, workers: list[Role]) -> tuple[dict[str, Any], list[str]]:
        async with plant.client() as client:
            blockers, _ = await asyncio.gather(
                _outlast(plant, client, [blocking, holding], workers),
                _get_stuck(plant, client, workers[2]),
            )
            await client.until_ended()
            counts = await plant.one("orchestrator").metrics()
            assert counts["tasks_lost_total"] == 1, "of the worker that is stuck"
            assert (await workers[0].metrics())["loop_blocked_total"] == 1
            return client.accepted, blockers

    with open_plant() as plant:
        times = {} if fault.is_full else TIMES
        roles = [launch(plant, "orchestrator", {}, **times)]
        for queue, worker_timing in (("blocked", PATIENT), ("held", PATIENT), ("stuck", IMPATIENT)):
            roles.append(
                launch(plant, "worker", _order(fault, worker_timing), "--queues", queue, **times)
            )
        for role in roles:
            role.ready()
        accepted, blockers = asyncio.run(main(plant, roles[1:]))
        verdict = judge(plant, accepted).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 2 * (NEIGHBOURS + 1) + 1}
        lost = [name for name, stored in verdict.executions.items() if stored.runs["a"].attempt > 1]
        assert [accepted[name]["name"] for name in lost] == ["stuck"]
        runs = Counter(call.execution_id for call in plant.calls() if call.event == "begun")
        assert {count for name, count in runs.items() if name not in lost} == {1}
        seconds = [_seconds(plant, execution_id) for execution_id in blockers]
        assert min(seconds) > limit, "the worker wasn't silent for long enough"
        for role, function in zip(roles[1:3], ("block", "hold"), strict=True):
            assert f"in {function}" in role.said(), "its stack isn't there"
        fault.shows(
            blocked_seconds=seconds[0],
            held_seconds=seconds[1],
            limit_seconds=limit,
            lost=0,
            neighbours_completed=2 * NEIGHBOURS,
        )
        fault.shows_also(
            "blocked",
            "an async handler blocks the loop for longer than any task of its worker may run",
            lost=len(lost),
            completed=1,
        )
