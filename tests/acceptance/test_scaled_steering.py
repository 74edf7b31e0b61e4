"""What is cancelled or paused gets no more tasks; what can't run yet, or ever, stops nobody (G4, on Redis)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from penstock.stores.base import Stored, partition_of
from tests.acceptance import works
from tests.acceptance.plant import PARTITIONS, Client, Plant, plant
from tests.acceptance.plant_judge import Verdict, judge
from tests.waiting import until

SLOTS = 4
HALF = 10
LATER = """
import penstock

@penstock.handler("work_later")
def later(config, ctx):
    return "at last"
"""


def _slow_fan(name: str) -> dict[str, Any]:
    parents = [works.node(f"n{i}", (), "work_pause", config={"seconds": 0.05}) for i in range(4 * HALF)]
    return works.document(name, *parents, works.node("join", [each["id"] for each in parents]))


def _failing(name: str, delay_seconds: float) -> dict[str, Any]:
    retry = {**works.STEADY, "initial_delay_seconds": delay_seconds, "max_delay_seconds": delay_seconds}
    return works.single(name, "work_fail", retry=retry, config={"times": 1})


def _begun(it: Plant, *ids: str) -> int:
    return sum(call.event == "begun" and call.execution_id in ids for call in it.calls())


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


async def _until_at_rest(it: Plant, *ids: str) -> int:
    """What workers held has ended: how many calls there were until then."""

    def is_at_rest() -> bool:
        calls = [call for call in it.calls() if call.execution_id in ids]
        return 2 * sum(call.event == "begun" for call in calls) == len(calls)

    await until(is_at_rest, "what was in workers' hands has ended")
    return _begun(it, *ids)


def _dispatched_while_stopped(stored: Stored) -> list[str]:
    found, state = [], ""
    for line in stored.history:
        state = state if line.node else line.after
        if line.after == "QUEUED" and state in ("PAUSED", "CANCELLED"):
            found.append(f"{stored.record.execution_id}: {line}")
    return found


def _assert_obeyed(verdict: Verdict, states: dict[str, int]) -> None:
    verdict.assert_kept()
    assert verdict.states() == states
    assert [line for stored in verdict.executions.values() for line in _dispatched_while_stopped(stored)] == []


def test_what_is_cancelled_or_paused_gets_no_more_tasks_and_frees_its_slots() -> None:
    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            await _steer_retries(it, client)
            await _steer_fans(it, client)
            stuck = await client.submit(works.single("stuck", "work_pause"), SLOTS)
            await until(lambda: _begun(it, *stuck) == SLOTS, "all slots are taken")
            for name in stuck:
                await client.steer(name, "cancel")
            await client.submit(works.diamond(), 10)
            await client.until_ended()
            return client.accepted

    with plant() as it:
        it.staff(orchestrators=2, workers=0)
        it.start("worker", "--concurrency", str(SLOTS))
        accepted = asyncio.run(main(it))
        _assert_obeyed(judge(it, accepted), {"COMPLETED": 23, "CANCELLED": 2 + SLOTS})


async def _steer_retries(it: Plant, client: Client) -> None:
    (cancelled,), (paused,) = await client.submit(_failing("far", 3600)), await client.submit(_failing("near", 1))
    await _until_retrying(client, cancelled)
    await client.steer(cancelled, "cancel")
    due_at = await _until_retrying(client, paused)
    await client.steer(paused, "pause")
    await _until_in(client, "PAUSED", paused)
    await until(lambda: time.time() > due_at, "its time has come")
    await client.until_ended(cancelled, *await client.submit(works.diamond(), 10))
    assert _begun(it, paused) == 1, "its timer waits too"
    await client.steer(paused, "resume")
    await client.until_ended(paused)
    assert _begun(it, paused) == 2


async def _steer_fans(it: Plant, client: Client) -> None:
    (cancelled,) = await client.submit(_slow_fan("to-cancel"))
    await until(lambda: _begun(it, cancelled) >= HALF, "it is in the middle")
    await client.steer(cancelled, "cancel")
    (paused,) = await client.submit(_slow_fan("to-pause"))
    await until(lambda: _begun(it, paused) >= HALF, "it is in the middle")
    await client.steer(paused, "pause")
    await _until_in(client, "PAUSED", paused)
    await client.until_ended(cancelled)
    before = await _until_at_rest(it, paused)
    stopped = _begun(it, cancelled)
    assert max(before, stopped) < 4 * HALF, "too late to show anything"
    await client.until_ended(*await client.submit(works.diamond()))
    assert (_begun(it, paused), _begun(it, cancelled)) == (before, stopped)
    await client.steer(paused, "resume")
    await client.until_ended(paused)
    assert _begun(it, paused) == 4 * HALF + 1


def test_a_wish_is_obeyed_although_the_orchestrator_is_killed() -> None:
    async def main(it: Plant) -> dict[str, Any]:
        async with it.client() as client:
            await it.until_owned(2)
            flow = works.chain(20, "work_pause", config={"seconds": 0.1})
            cancelled, paused, others = [await client.submit(flow, 20) for _ in range(3)]
            await until(lambda: _begun(it, *paused) > 40, "they are on their way")
            await asyncio.gather(*[client.steer(name, "cancel") for name in cancelled[:10]])
            it.one("orchestrator").kill()
            await asyncio.gather(*[client.steer(name, "cancel") for name in cancelled[10:]])
            await asyncio.gather(*[client.steer(name, "pause") for name in paused])
            await client.until_ended(*cancelled)
            await _until_in(client, "PAUSED", *paused)
            before, stopped = await _until_at_rest(it, *paused), _begun(it, *cancelled)
            await client.until_ended(*others)
            assert (_begun(it, *paused), _begun(it, *cancelled)) == (before, stopped)
            await asyncio.gather(*[client.steer(name, "resume") for name in paused])
            await client.until_ended()
            return client.accepted

    with plant() as it:
        it.staff(orchestrators=2, workers=1)
        accepted = asyncio.run(main(it))
        _assert_obeyed(judge(it, accepted), {"COMPLETED": 40, "CANCELLED": 20})
        assert it.kills == 1


def test_what_no_worker_can_do_yet_waits_and_what_nobody_can_read_is_a_dead_letter() -> None:
    async def main(it: Plant) -> tuple[dict[str, Any], str, str]:
        async with it.client() as client:
            (waiting,) = await client.submit(works.single("waiting", "work_note", queue="nobody"))
            unknown, unheard = works.single("unknown", "work_later"), works.single("unheard", "work_later")
            unheard["nodes"][0]["queue"] = "work_note"  # a worker gets it that hasn't got the handler
            for document in (unknown, unheard):
                await client.service.workflows.put(document, allow_unknown_handlers=True)
            (later,) = await client.submit(unknown, name="unknown")
            (never,) = await client.submit(unheard, name="unheard")
            (mangled,) = await client.submit(works.single("mangled", "work_note", queue="mangled"))
            await _mangle(it, mangled)
            await client.until_ended(never, *await client.submit(works.diamond(), 10))
            assert {await client.state(name) for name in (waiting, later)} == {"RUNNING"}
            (it.folder / "later.py").write_text(LATER, encoding="utf-8")
            it.start("worker", "--handlers", "later.py", "--queues", "nobody,work_later,mangled")
            await client.until_ended()
            return client.accepted, never, mangled

    with plant() as it:
        it.staff(orchestrators=1, workers=1)
        accepted, never, mangled = asyncio.run(main(it))
        verdict = judge(it, accepted).assert_kept()
        assert verdict.states() == {"COMPLETED": 12, "FAILED": 2}
        reasons = {letter.execution_id: letter.attempts[-1].error for letter in verdict.letters}
        assert reasons.keys() == {never, mangled}
        assert "work_later" in reasons[never].message
        assert reasons[mangled].category == "schema"


async def _mangle(it: Plant, execution_id: str) -> None:
    """Its task, so that it can be read no more; and another that never was one."""
    key = f"penstock:{{{partition_of(execution_id, PARTITIONS)}}}:tasks:0:mangled"
    with it.connect_redis() as link:
        await until(lambda: link.exists(key) and link.xlen(key), "its task is there")
        entries: Any = link.xrange(key)
        ((entry_id, fields),) = entries
        (field, data), *_ = fields.items()
        task = msgspec.msgpack.decode(data)
        task[4] = 7
        link.xdel(key, entry_id)
        link.xadd(key, {field: msgspec.msgpack.encode(task)})
        link.xadd(key, {field: b"\xff\x00nothing"})
