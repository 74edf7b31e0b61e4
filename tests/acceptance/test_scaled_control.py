"""Cancelled and paused executions get no more tasks (G4, on Redis).

In whatever state they are, and whatever happens meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from penstock.errors import Conflict
from penstock.stores.base import ControlRequest, Stored
from tests.acceptance import works
from tests.acceptance.outside import flush, is_built, total
from tests.acceptance.plant import Client, Plant, open_plant
from tests.acceptance.plant_judge import Verdict, judge
from tests.faults.table import Fault
from tests.waiting import until

SLOTS = 4
HALF = 10
CONTROL_REQUESTS: tuple[ControlRequest, ...] = ("cancel", "pause", "resume")
STEPS = works.chain(20, "work_pause", config={"seconds": 0.1})


def _slow_fan(name: str) -> dict[str, Any]:
    parents = [
        works.node(f"n{i}", (), "work_pause", config={"seconds": 0.05}) for i in range(4 * HALF)
    ]
    return works.document(name, *parents, works.node("join", [parent["id"] for parent in parents]))


def _failing(name: str, delay_seconds: float) -> dict[str, Any]:
    retry = {
        **works.STEADY,
        "initial_delay_seconds": delay_seconds,
        "max_delay_seconds": delay_seconds,
    }
    return works.single(name, "work_fail", retry=retry, config={"times": 1})


def _begun(plant: Plant, *ids: str) -> int:
    return sum(call.event == "begun" and call.execution_id in ids for call in plant.calls())


async def _until_in(client: Client, state: str, *ids: str) -> None:
    async def is_so() -> bool:
        return {await client.state(name) for name in ids} == {state}

    await until(is_so, f"{len(ids)} executions are {state}")


async def _until_retrying(client: Client, execution_id: str) -> float:
    """Until which time it waits."""

    async def due_at() -> float | None:
        run = (await client.service.executions.stored(execution_id)).runs.get("a")
        return run.due_at if run is not None and run.state == "RETRYING" else None

    return float(await until(due_at, "it waits for its second attempt"))


async def _until_at_rest(plant: Plant, *ids: str) -> int:
    """What workers held has ended: how many calls there were until then."""

    def is_at_rest() -> bool:
        calls = [call for call in plant.calls() if call.execution_id in ids]
        return 2 * sum(call.event == "begun" for call in calls) == len(calls)

    await until(is_at_rest, "what was in workers' hands has ended")
    return _begun(plant, *ids)


def _dispatched_while_stopped(stored: Stored) -> list[str]:
    dispatched, state = [], ""
    for line in stored.history:
        state = state if line.node_id else line.after
        if line.after == "QUEUED" and state in ("PAUSED", "CANCELLED"):
            dispatched.append(f"{stored.record.execution_id}: {line}")
    return dispatched


def _assert_obeyed(verdict: Verdict, states: dict[str, int], fault: Fault) -> None:
    verdict.assert_guarantees()
    assert verdict.states() == states
    assert [
        line for stored in verdict.executions.values() for line in _dispatched_while_stopped(stored)
    ] == []
    control_requests = Counter(
        line.after
        for stored in verdict.executions.values()
        for line in stored.history
        if not line.node_id
    )
    fault.shows(
        **verdict.figures(),
        cancelled=control_requests["CANCELLED"],
        paused=control_requests["PAUSED"],
        dispatched_afterwards=0,
        slots_held=0,
    )


@pytest.mark.timeout(240)
@pytest.mark.fault("cancel, pause", "during a retry wait, in half a fan-out, with every slot taken")
def test_what_is_cancelled_or_paused_gets_no_more_tasks_and_frees_its_slots(fault: Fault) -> None:
    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            await _control_retries(plant, client)
            await _control_fans(plant, client)
            stuck = await client.submit(works.single("stuck", "work_pause"), SLOTS)
            await until(lambda: _begun(plant, *stuck) == SLOTS, "all slots are taken")
            for name in stuck:
                await client.request_control(name, "cancel")
            await client.submit(works.diamond(), 10)
            await client.until_ended()
            return client.accepted

    with open_plant() as plant:
        plant.staff(orchestrators=2, workers=0)
        plant.start("worker", "--concurrency", str(SLOTS))
        accepted = asyncio.run(main(plant))
        verdict = judge(plant, accepted, slots=fault.is_full)
        _assert_obeyed(verdict, {"COMPLETED": 23, "CANCELLED": 2 + SLOTS}, fault)


async def _control_retries(plant: Plant, client: Client) -> None:
    (cancelled,), (paused,) = (
        await client.submit(_failing("far", 3600)),
        await client.submit(_failing("near", 1)),
    )
    await _until_retrying(client, cancelled)
    await client.request_control(cancelled, "cancel")
    due_at = await _until_retrying(client, paused)
    await client.request_control(paused, "pause")
    await _until_in(client, "PAUSED", paused)
    await until(lambda: time.time() > due_at, "its time has come")
    await client.until_ended(cancelled, *await client.submit(works.diamond(), 10))
    assert _begun(plant, paused) == 1, "its timer waits too"
    await client.request_control(paused, "resume")
    await client.until_ended(paused)
    assert _begun(plant, paused) == 2


async def _control_fans(plant: Plant, client: Client) -> None:
    (cancelled,) = await client.submit(_slow_fan("to-cancel"))
    await until(lambda: _begun(plant, cancelled) >= HALF, "it is in the middle")
    await client.request_control(cancelled, "cancel")
    (paused,) = await client.submit(_slow_fan("to-pause"))
    await until(lambda: _begun(plant, paused) >= HALF, "it is in the middle")
    await client.request_control(paused, "pause")
    await _until_in(client, "PAUSED", paused)
    await client.until_ended(cancelled)
    before = await _until_at_rest(plant, paused)
    stopped = _begun(plant, cancelled)
    assert max(before, stopped) < 4 * HALF, "too late to show anything"
    await client.until_ended(*await client.submit(works.diamond()))
    assert (_begun(plant, paused), _begun(plant, cancelled)) == (before, stopped)
    await client.request_control(paused, "resume")
    await client.until_ended(paused)
    assert _begun(plant, paused) == 4 * HALF + 1


async def _control_all(client: Client, request: ControlRequest, names: Iterable[str]) -> None:
    await asyncio.gather(*[client.request_control(name, request) for name in names])


@pytest.mark.timeout(240)
@pytest.mark.fault("cancel, pause", "before and after kill -9 of an orchestrator")
def test_a_control_request_is_obeyed_although_the_orchestrator_is_killed(fault: Fault) -> None:
    many = fault.size(short=20, full=100)

    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            await plant.until_owned(2)
            cancelled, paused, untouched = [await client.submit(STEPS, many) for _ in range(3)]
            await until(lambda: _begun(plant, *paused) > 2 * many, "they are on their way")
            await _control_all(client, "cancel", cancelled[: many // 2])
            plant.one("orchestrator").kill()
            await _control_all(client, "cancel", cancelled[many // 2 :])
            await _control_all(client, "pause", paused)
            await client.until_ended(*cancelled)
            await _until_in(client, "PAUSED", *paused)
            before, stopped = await _until_at_rest(plant, *paused), _begun(plant, *cancelled)
            await client.until_ended(*untouched)
            assert (_begun(plant, *paused), _begun(plant, *cancelled)) == (before, stopped)
            await _control_all(client, "resume", paused)
            await client.until_ended()
            return client.accepted

    with open_plant() as plant:
        plant.staff(orchestrators=2, workers=1)
        verdict = judge(plant, asyncio.run(main(plant)), slots=fault.is_full)
        _assert_obeyed(verdict, {"COMPLETED": 2 * many, "CANCELLED": many}, fault)
        assert plant.kills == 1


@pytest.mark.timeout(240)
@pytest.mark.fault("cancel, pause", "while Redis is rebuilt after losing all its data")
def test_a_control_request_is_obeyed_while_redis_is_built_again(fault: Fault) -> None:
    many = fault.size(short=20, full=100)

    async def main(plant: Plant) -> tuple[dict[str, Any], int]:
        async with plant.client() as client:
            await plant.until_owned(2)
            cancelled, paused, untouched = [await client.submit(STEPS, many) for _ in range(3)]
            await until(lambda: _begun(plant, *paused) > 2 * many, "they are on their way")
            flush(plant)
            assert not is_built(plant), "it is too late to show anything"
            await asyncio.gather(
                _control_all(client, "cancel", cancelled), _control_all(client, "pause", paused)
            )
            await client.until_ended(*cancelled, *untouched)
            await _until_in(client, "PAUSED", *paused)
            await _control_all(client, "resume", paused)
            await client.until_ended()
            return client.accepted, int(await total(plant, "rebuilt_total"))

    with open_plant() as plant:
        plant.staff(orchestrators=2, workers=1)
        accepted, rebuilt = asyncio.run(main(plant))
        verdict = judge(plant, accepted, lossy=True, slots=fault.is_full)
        _assert_obeyed(verdict, {"COMPLETED": 2 * many, "CANCELLED": many}, fault)
        assert rebuilt > 0
        fault.shows(built_again=rebuilt)


@pytest.mark.timeout(240)
@pytest.mark.fault("cancel, pause", "before it began, queued, running, paused, ended")
def test_a_control_request_is_obeyed_in_every_state_or_refused(fault: Fault) -> None:
    async def main(plant: Plant) -> dict[str, Any]:
        async with plant.client() as client:
            early = await _control_each(client, works.diamond())
            plant.start("orchestrator", count=2)
            queued = await _control_each(
                client, works.single("queued", "work_note", queue="nobody"), node_state="QUEUED"
            )
            plant.start("worker", "--queues", "nobody,work_note,work_pause,work_fail")
            steps = works.chain(2, "work_pause", config={"until": "go"})
            running = await _control_each(client, steps, node_state="RUNNING")
            cancelled, paused = zip(early, queued, running, strict=True)
            await client.until_ended(*cancelled)
            await _until_in(client, "PAUSED", *paused)
            plant.release("go")
            await client.until_ended(*await client.submit(works.diamond(), 10))
            assert _begun(plant, *early, *queued) == 0
            assert _begun(plant, running[1]) == 1, "the second step waits"
            await _refuse_each(client, paused)
            await _control_all(client, "resume", paused)
            await client.until_ended()
            return client.accepted

    with open_plant() as plant:
        verdict = judge(plant, asyncio.run(main(plant)), slots=fault.is_full)
        _assert_obeyed(verdict, {"COMPLETED": 14, "CANCELLED": 4, "FAILED": 1}, fault)


async def _control_each(
    client: Client, document: dict[str, Any], node_state: str = ""
) -> list[str]:
    """Cancel one execution and pause another, when their first nodes are in this state.

    Without a state, before any owner has looked at them.
    """
    names = await client.submit(document, 2)
    first = document["nodes"][0]["id"]

    async def is_there() -> bool:
        executions = [await client.service.executions.stored(name) for name in names]
        return all(
            first in stored.runs and stored.runs[first].state == node_state for stored in executions
        )

    if node_state:
        await until(is_there, f"they are {node_state}")
    await client.request_control(names[0], "cancel")
    await client.request_control(names[1], "pause")
    return names


async def _refuse_each(client: Client, paused: Iterable[str]) -> None:
    """What is paused isn't paused again and is cancelled; what has ended is over."""
    for name in paused:
        with pytest.raises(Conflict, match="is paused already"):
            await client.request_control(name, "pause")
    (again,) = await client.submit(STEPS)
    await client.request_control(again, "pause")
    await _until_in(client, "PAUSED", again)
    await client.request_control(again, "cancel")
    failing = works.single("failing", "work_fail", retry={**works.STEADY, "max_attempts": 1})
    (completed,), (failed,) = await client.submit(works.diamond()), await client.submit(failing)
    await client.until_ended(again, completed, failed)
    for name in (again, completed, failed):
        for request in CONTROL_REQUESTS:
            with pytest.raises(Conflict, match="can't be changed any more"):
                await client.request_control(name, request)
