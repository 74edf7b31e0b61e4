"""Workers on Redis that die, sleep, leave and join (G2, G4, G5).

Which worker gets which task, and what late reports do.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from penstock.config import Timing
from penstock.engine.commands import Transition
from tests.acceptance import works
from tests.acceptance.plant import SOON_DEAD, Client, Plant, Role, open_plant
from tests.acceptance.plant_judge import judge
from tests.faults.table import REDELIVERY_SECONDS, Fault
from tests.waiting import until

DEAD_SECONDS = 60.0
"""How long this waits for what happens in 15 to 20 s."""
SLEEPY, DYING, DEADLY = "sleepy", "dying", "deadly"
TWICE = {**works.STEADY, "max_attempts": 2}


def _paused_work(queue: str) -> dict[str, Any]:
    """Held on that queue until `go`, and then on any until `end`."""
    first = works.node("a", (), "work_pause", queue=queue, config={"until": "go"})
    return works.document(
        f"{queue}-flow", first, works.node("b", "a", "work_pause", config={"until": "end"})
    )


def _begun(plant: Plant, execution_id: str, node: str = "a", attempt: int = 1) -> works.Call | None:
    key = ("begun", execution_id, node, attempt)
    return next((call for call in plant.calls() if call[:4] == key), None)


async def _until_begun(
    plant: Plant, execution_id: str, node: str = "a", attempt: int = 1
) -> works.Call:
    what = f"attempt {attempt} of {node} begins"
    call: works.Call = await until(
        lambda: _begun(plant, execution_id, node, attempt), what, seconds=DEAD_SECONDS
    )
    return call


async def _poisoned(plant: Plant, client: Client) -> list[Role]:
    """Its workers, one after the other, as something that starts them again would."""
    (execution_id,) = await client.submit(
        works.single("poison", "work_poison", queue=DEADLY, retry=TWICE)
    )
    victims = []
    for attempt in (1, 2):
        victims += plant.start("worker", "--queues", DEADLY)
        await _until_begun(plant, execution_id, attempt=attempt)
        await asyncio.to_thread(victims[-1].ends)
    await client.until_ended(execution_id)
    return victims


async def _outlived(plant: Plant, client: Client) -> float:
    """One worker dies and one sleeps, each with a claimed task.

    A third one gets both tasks after so many seconds.
    """
    (sleeper,), (dying,) = (
        plant.start("worker", "--queues", SLEEPY),
        plant.start("worker", "--queues", DYING),
    )
    (slept,), (died,) = (
        await client.submit(_paused_work(SLEEPY)),
        await client.submit(_paused_work(DYING)),
    )
    for execution_id in (slept, died):
        await _until_begun(plant, execution_id)
    plant.start("worker", "--queues", f"{SLEEPY},{DYING},work_pause,work_note")
    sleeper.freeze()
    dying.kill()
    begun = time.monotonic()
    for execution_id in (slept, died):
        await _until_begun(plant, execution_id, attempt=2)
    seconds = time.monotonic() - begun
    print(f"\na dead worker's task ran again after {seconds:.1f} s")  # noqa: T201
    plant.release("go")
    for execution_id in (slept, died):
        await _until_begun(plant, execution_id, "b")
    await _awake(plant, client, sleeper, slept)
    plant.release("end")
    return seconds


async def _awake(plant: Plant, client: Client, sleeper: Role, slept: str) -> None:
    """It finishes what it held, and nobody listens."""
    before = await _lines(client, slept, "a")
    assert before[-1].after == "COMPLETED"
    sleeper.thaw()
    mine = ("done", slept, "a", 1, sleeper.pid)
    await until(lambda: any(call[:5] == mine for call in plant.calls()), "the sleeper finishes")
    sleeper.terminate()
    assert await asyncio.to_thread(sleeper.ends) == 0
    assert await _lines(client, slept, "a") == before


async def _lines(client: Client, execution_id: str, node: str) -> list[Transition]:
    return [
        line
        for line in await client.service.executions.history(execution_id)
        if line.node_id == node
    ]


@pytest.mark.timeout(240)
@pytest.mark.fault(
    "zombies",
    "SIGSTOP of a worker until it is declared dead, SIGCONT after another has done its task",
)
def test_a_task_outlives_its_worker_and_a_poisonous_one_ends_in_the_dead_letters(
    fault: Fault,
) -> None:
    async def main(plant: Plant) -> tuple[dict[str, Any], list[Role], float]:
        async with plant.client() as client:
            victims, seconds = await asyncio.gather(
                _poisoned(plant, client), _outlived(plant, client)
            )
            await client.submit(works.diamond(), 20)
            await client.until_ended()
            return client.accepted, victims, seconds

    with open_plant(environ={} if fault.is_full else SOON_DEAD) as plant:
        plant.staff(orchestrators=2, workers=1)
        accepted, victims, seconds = asyncio.run(main(plant))
        verdict = judge(plant, accepted, slots=fault.is_full).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 22, "FAILED": 1}
        assert [role.code for role in victims] == [137, 137], "the handler killed them"
        assert verdict.redelivered() == 3, "of the dead, the sleeping and the first poisoned worker"
        (dead_letter,) = verdict.dead_letters
        assert (dead_letter.handler, [failure.attempt for failure in dead_letter.attempts]) == (
            "work_poison",
            [1, 2],
        )
        assert {failure.error.category for failure in dead_letter.attempts} == {"lost"}
        fault.shows(stops=1, late_outcomes_refused=1, stale_writes=0, violations=0)
        fault.promises(REDELIVERY_SECONDS, redelivery_seconds=seconds)
        fault.shows_also(
            "processes",
            "kill -9 of the worker that has a task",
            kills=1,
            redelivery_seconds=seconds,
        )
        fault.shows_also(
            "poison",
            "a handler that kills its worker",
            kills=len(victims),
            attempts=len(dead_letter.attempts),
            dead_letters=1,
            others_completed=verdict.states()["COMPLETED"],
        )


QUICK_TIMES: dict[str, Any] = {
    "HEARTBEAT_SECONDS": "0.2",
    "WORKER_DEAD_SECONDS": "1",
    "REAPER_SECONDS": "0.2",
    "LEASE_SECONDS": "2",
}
DEFAULT_DEAD_SECONDS = Timing().worker_dead_seconds


def test_with_quick_heartbeats_a_killed_workers_task_soon_runs_again() -> None:
    async def main(plant: Plant) -> tuple[dict[str, Any], float]:
        async with plant.client() as client:
            (dying,) = plant.start("worker", "--queues", DYING, **QUICK_TIMES)
            (died,) = await client.submit(_paused_work(DYING))
            await _until_begun(plant, died)
            plant.start("worker", "--queues", f"{DYING},work_pause", **QUICK_TIMES)
            dying.kill()
            killed = time.monotonic()
            await _until_begun(plant, died, attempt=2)
            seconds = time.monotonic() - killed
            plant.release("go")
            plant.release("end")
            await client.until_ended()
            return client.accepted, seconds

    with open_plant() as plant:
        plant.start("orchestrator", **QUICK_TIMES)
        accepted, seconds = asyncio.run(main(plant))
        verdict = judge(plant, accepted).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 1}
        assert verdict.redelivered() == 1
        assert seconds < DEFAULT_DEAD_SECONDS, "the settings changed nothing"


def test_no_worker_hoards_and_a_new_one_gets_work_at_once() -> None:
    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            await _share(plant, client)
            await client.submit(works.single("held", "work_pause", config={"until": "held"}), 4)
            await until(lambda: len(plant.calls()) == 84, "all four are busy")
            waiting = await client.submit(works.diamond(), 10)
            begun = time.monotonic()
            (newcomer,) = plant.start("worker", "--concurrency", "1")
            await client.until_ended(*waiting)
            print(f"a new worker did what waited after {time.monotonic() - begun:.1f} s")  # noqa: T201
            assert {call.pid for call in plant.calls() if call.execution_id in waiting} == {
                newcomer.pid
            }
            plant.release("held")
            await client.until_ended()
            return client.accepted

    with open_plant() as plant:
        plant.staff(orchestrators=1, workers=0)
        plant.start("worker", "--concurrency", "1", count=4)
        verdict = judge(plant, asyncio.run(main(plant))).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 54}


async def _share(plant: Plant, client: Client) -> None:
    begun = time.monotonic()
    await client.submit(works.single("second", "work_pause", config={"seconds": 0.5}), 40)
    await client.until_ended()
    rounds = Counter(call.pid for call in plant.calls() if call.event == "begun")
    print(  # noqa: T201
        f"\n40 tasks of 0.5 s on 4 workers: {time.monotonic() - begun:.1f} s, "
        f"{sorted(rounds.values())}"
    )
    assert len(rounds) == 4
    assert max(rounds.values()) <= 11, "one waited behind a busy worker"


def test_a_worker_that_is_told_to_stop_finishes_and_hands_back_the_rest() -> None:
    async def main(plant: Plant) -> tuple[dict[str, Any], list[str], str]:
        async with plant.client() as client:
            (leaving,) = plant.start("worker", SHUTDOWN_GRACE_SECONDS="2")
            quick = await client.submit(
                works.single("quick", "work_pause", config={"until": "soon"}), 3
            )
            (slow,) = await client.submit(
                works.single("slow", "work_pause", config={"until": "late"})
            )
            for execution_id in (*quick, slow):
                await _until_begun(plant, execution_id)
            (staying,) = plant.start("worker")
            leaving.terminate()
            await until(lambda: "stops" in leaving.said(), "it has heard")
            late = await client.submit(works.single("note", "work_note"), 20)
            plant.release("soon")
            await client.until_ended(*quick, *late)
            assert await asyncio.to_thread(leaving.ends) == 0
            begun = time.monotonic()
            await _until_begun(plant, slow, attempt=2)
            print(f"\nwhat a worker left was begun again after {time.monotonic() - begun:.1f} s")  # noqa: T201
            counts = await plant.one("orchestrator").metrics()
            assert counts["tasks_lost_total"] == 0, (
                "it was handed back, not taken back from somebody who is silent"
            )
            plant.release("late")
            await client.until_ended()
            assert {call.pid for call in plant.calls() if call.execution_id in late} == {
                staying.pid
            }
            return client.accepted, [*quick, *late], slow

    with open_plant() as plant:
        plant.staff(orchestrators=1, workers=0)
        accepted, once, twice = asyncio.run(main(plant))
        verdict = judge(plant, accepted).assert_guarantees()
        assert verdict.states() == {"COMPLETED": 24}
        assert {verdict.executions[name].runs["a"].attempt for name in once} == {1}
        assert verdict.executions[twice].runs["a"].attempt == 2
