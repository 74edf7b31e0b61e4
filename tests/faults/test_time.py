"""Clocks that are wrong or jump, and time-outs that come with the result (G2, G4).

The system's clock can't be set here: a launcher moves what Python answers in a process that is
asked for the time of day (see `tests.faults.launched`).
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import penstock
from penstock.worker.registry import Handler, Registry
from tests.acceptance import works
from tests.acceptance.judge import judge as judge_file
from tests.acceptance.outside import begin, wrong_attempts
from tests.acceptance.plant import Plant, open_plant, pass_time
from tests.acceptance.plant_judge import judge
from tests.faults.launching import launch
from tests.faults.submitting import Submitter
from tests.faults.table import Fault
from tests.waiting import until

HOUR = 3600.0
JUMP = "jump"
DELAYED = {
    "max_attempts": 4,
    "initial_delay_seconds": 2.0,
    "max_delay_seconds": 2.0,
    "jitter_seconds": 0,
}
DOCUMENTS = [
    works.single("later", "work_fail", config={"times": 3}, retry=DELAYED),
    works.single(
        "timed", "work_pause", config={"seconds": 2.0}, timeout_seconds=30, queue_timeout_seconds=30
    ),
    {
        **works.chain(4, "work_pause", config={"seconds": 0.4}),
        "name": "bounded",
        "timeout_seconds": 60,
    },
    works.diamond(),
]
"""Everything that waits for a time: retries, time-outs of attempts, of queues and of executions."""


async def _order(plant: Plant, address: str, count: int) -> dict[str, dict[str, Any]]:
    """Some before the clocks jump, some while they do, some afterwards."""
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session,
        plant.client() as client,
    ):
        submitter = Submitter(session, [address])
        for number in range(count):
            await submitter.submit(DOCUMENTS * 5, f"round {number}")
            if number == count // 2:
                (plant.folder / JUMP).touch()
            await pass_time(0.5)
        plant.one(
            "orchestrator"
        ).kill()  # what it has set by its own clock is for the other one now
        await client.until_ended(*submitter.accepted, seconds=60)
        return submitter.accepted


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.fault(
    "time",
    "the clocks of an orchestrator, a worker and an API an hour wrong, or jumping by an hour",
)
def test_a_clock_that_is_an_hour_wrong_fails_nothing(fault: Fault, sign: int) -> None:
    with open_plant() as plant:
        wrong = [
            launch(plant, kind, {"clock_seconds": sign * HOUR}) for kind in ("orchestrator", "api")
        ]
        jumping = {"clock_seconds": sign * HOUR, "clock_file": str(plant.folder / JUMP)}
        wrong += [launch(plant, "worker", jumping)]
        plant.staff(orchestrators=1, workers=1)
        asyncio.run(plant.until_owned(2))
        accepted = asyncio.run(_order(plant, wrong[1].address, fault.size(short=3, full=20)))
        verdict = judge(plant, accepted).assert_guarantees()
        assert verdict.states() == {"COMPLETED": len(accepted)}
        assert [role for role in wrong if "the clock is moved" not in role.said()] == [], (
            "no clock was wrong"
        )
        lost = verdict.redelivered()
        assert lost or not wrong_attempts(verdict, accepted), (
            "a loss would explain one attempt more"
        )
        fault.shows(
            clocks=len(wrong), hours=sign, executions=len(accepted), false_failures=0, lost=lost
        )


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.fault("time", "the clock jumps by an hour under the embedded engine")
def test_a_clock_that_jumps_fails_nothing_in_the_embedded_engine(
    fault: Fault, sign: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_time = time.time
    retry = {
        "max_attempts": 2,
        "initial_delay_seconds": 2.0,
        "max_delay_seconds": 2.0,
        "jitter_seconds": 0,
    }
    flaky: dict[str, Any] = {"id": "b", "handler": "flaky", "retry": retry, "timeout_seconds": 30}
    slow: dict[str, Any] = {
        "id": "a",
        "handler": "sleep",
        "config": {"seconds": 2.0},
        "timeout_seconds": 30,
        "retry": {"max_attempts": 1},
    }
    document = {"name": "timed", "timeout_seconds": 60, "nodes": [slow, flaky]}

    def fail_once(_config: Any, ctx: penstock.Context) -> int:
        if ctx.attempt == 1:
            raise RuntimeError("the first attempt was to fail")
        return ctx.attempt

    async def main() -> None:
        address, registry = (
            f"sqlite:///{tmp_path}/store.db",
            Registry([Handler("flaky", fail_once)]),
        )
        # the clock is asked for anew each time, as it is everywhere else
        async with penstock.Engine(address, registry=registry, clock=lambda: time.time()) as engine:  # noqa: PLW0108
            handles = [
                await engine.start(document) for _ in range(fault.size(short=3, full=5))
            ]  # all wait at once

            async def are_waiting() -> bool:
                states = [(await handle.status()).nodes["b"]["state"] for handle in handles]
                return all(state == "RETRYING" for state in states)

            await until(are_waiting, "all wait for their second attempt")
            monkeypatch.setattr(time, "time", lambda: true_time() + sign * HOUR)
            async with asyncio.timeout(60):
                await asyncio.gather(*[handle.result() for handle in handles])

    asyncio.run(main())
    verdict = judge_file(tmp_path / "store.db", [document])
    assert verdict.problems == []
    assert set(verdict.states()) == {"COMPLETED"}
    fault.shows(hours=sign, executions=len(verdict.executions), false_failures=0)


TIMEOUT_SECONDS = 0.3


def _race(seconds: float) -> dict[str, Any]:
    config = {"seconds": round(seconds, 4)}
    return works.single(
        "race", "sleep", config=config, timeout_seconds=TIMEOUT_SECONDS, retry={"max_attempts": 1}
    )


def _completed(plant: Plant, ids: list[str]) -> int:
    statement = "SELECT count(*) FROM executions WHERE state = 'COMPLETED' AND id = ANY(%s)"
    with plant.connect() as connection:
        return int(connection.execute(statement, (ids,)).fetchall()[0][0])


async def _races(plant: Plant, batches: int, batch_size: int) -> dict[str, dict[str, Any]]:
    """Both come at once at a time that isn't known beforehand.

    The test searches for it, and then hits it again and again.
    """
    seconds = TIMEOUT_SECONDS
    step = 0.008
    before = 0
    async with plant.client() as client:
        for _ in range(batches):
            ids = await client.submit(_race(seconds), batch_size)
            await client.until_ended(*ids)
            direction = 1 if _completed(plant, ids) > batch_size / 2 else -1
            if before and direction != before:
                step = max(step / 2, 0.0005)
            seconds, before = max(0.01, seconds + direction * step), direction
        return client.accepted


@pytest.mark.timeout(300)
@pytest.mark.fault("time", "a time-out and a result within 1 ms of each other")
def test_of_a_time_out_and_a_result_at_once_one_is_recorded(fault: Fault) -> None:
    with open_plant() as plant:
        begin(plant, orchestrators=2, workers=2)
        accepted = asyncio.run(
            _races(plant, fault.size(short=12, full=50), fault.size(short=10, full=20))
        )
        verdict = judge(plant, accepted).assert_guarantees()
        states = verdict.states()
        assert set(states) == {"COMPLETED", "FAILED"}, "one of them always came first"
        assert len(verdict.dead_letters) == states["FAILED"], (
            "one dead letter for each that timed out, and none besides"
        )
        fault.shows(
            races=len(verdict.executions),
            results=states["COMPLETED"],
            time_outs=states["FAILED"],
            with_two_outcomes=0,
        )
