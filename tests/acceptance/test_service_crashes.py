"""The HTTP service as a process (G1, G2).

Killed under load, stopped with open streams, started where it can't run.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.acceptance.judge import Verdict, judge
from tests.acceptance.served import FLOWS, LOST, Clients, Life, chain
from tests.faults.table import Fault
from tests.waiting import until

CLIENTS = 8
END_SECONDS = 60.0
LOOKED_AT = 100
GRACE_SECONDS = 8.0
"""Less than what a request that doesn't end is given."""
ENDS = {"COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}


@pytest.mark.timeout(240)
@pytest.mark.fault("SQLite", "kill -9 of the HTTP service under load")
def test_nothing_answered_is_lost_and_no_key_makes_two_through_many_kills(
    fault: Fault, tmp_path: Path
) -> None:
    kills = fault.size(short=8, full=100)
    clients = asyncio.run(_order_through_kills(tmp_path, fault.choices(), kills))
    verdict = judge(tmp_path / "store.db", FLOWS)
    assert verdict.problems == []
    assert verdict.states() == {"COMPLETED": len(verdict.executions)}
    assert clients.refused == []
    _assert_each_order_was_taken_once(clients, verdict)
    assert clients.repeated > 0, "no kill hit a request"
    assert verdict.reasons()["lost"] > 0, "no kill hit a task"
    fault.shows(
        kills=kills,
        executions=len(verdict.executions),
        lost_with_a_kill=verdict.reasons()["lost"],
        requests_repeated=clients.repeated,
        missing=0,
        two_for_a_key=0,
        violations=0,
    )


async def _order_through_kills(folder: Path, generator: random.Random, kills: int) -> Clients:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        clients = Clients(session)
        ordering = [asyncio.create_task(clients.order_for_ever()) for _ in range(CLIENTS)]
        for _ in range(kills):
            with Life(folder) as life:
                clients.serve(await life.ready())
                goal = len(clients.answered) + generator.randint(1, 60)
                await until(lambda goal=goal: len(clients.answered) >= goal, "orders are taken")  # type: ignore[misc]
                await _pass(generator.random() * 0.03)
                clients.leave()
                life.kill()
        with Life(folder) as life:
            clients.serve(await life.ready())
            with_key = set(range(0, clients.begun, 2))
            await until(
                lambda: clients.answered.keys() >= with_key, "all that are repeated are answered"
            )
            await _cancel(ordering)
            await clients.until_idle(END_SECONDS + kills)
            await _assert_one_outcome_per_node(clients)
            assert (await life.stop())[0] == 0
    return clients


async def _pass(seconds: float) -> None:
    """Not to wait for anything: to strike at another point each time."""
    end = time.monotonic() + seconds
    await until(lambda: time.monotonic() > end)


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _assert_one_outcome_per_node(clients: Clients) -> None:
    """As a client sees it; the judge looks at all of them in the file."""
    for number in list(clients.answered)[:: max(1, len(clients.answered) // LOOKED_AT)]:
        (execution_id,) = clients.answered[number]
        execution = await clients.get(f"/executions/{execution_id}")
        history = (await clients.get(f"/executions/{execution_id}/history"))["items"]
        outcomes = Counter(line["node_id"] for line in history if line["to"] in ENDS)
        assert outcomes == {None: 1, **dict.fromkeys(execution["nodes"], 1)}
        assert execution["input"] == {"n": number}


def _assert_each_order_was_taken_once(clients: Clients, verdict: Verdict) -> None:
    ids_by_key: dict[str, list[str]] = {}
    for name, stored in verdict.executions.items():
        ids_by_key.setdefault(stored.record.labels["order"], []).append(name)
    twice = {order: names for order, names in ids_by_key.items() if len(names) > 1}
    assert twice == {}, "one request made two executions"
    for number, ids in clients.answered.items():
        assert ids == set(ids_by_key[str(number)]), (
            "what was answered is there, and always the same"
        )
    unanswered = {int(order) for order in ids_by_key} - clients.answered.keys()
    assert all(number in clients.lost or number % 2 == 0 for number in unanswered)


def test_a_client_that_comes_back_after_a_crash_misses_no_event_and_gets_none_twice(
    tmp_path: Path,
) -> None:
    events, history = asyncio.run(_follow_through_kills(tmp_path))
    assert [int(name) for name, kind, _ in events if kind == "transition"] == list(
        range(1, len(history) + 1)
    )
    expected = [
        {key: value for key, value in data.items() if key != "execution_id"}
        for _, _, data in events[:-1]
    ]
    assert expected == history
    assert events[-1][1] == "end"
    assert any(line["reason"] == "lost" for line in history), "no kill hit a task"


async def _follow_through_kills(
    folder: Path,
) -> tuple[list[tuple[str, str, Any]], list[dict[str, Any]]]:
    events: list[tuple[str, str, Any]] = []
    execution_id = ""
    async with aiohttp.ClientSession() as session:
        clients = Clients(session)
        for goal in (10, 30, 50, None):
            with Life(folder) as life:
                clients.serve(await life.ready())
                execution_id = execution_id or await clients.start(chain("followed", 30, 0.02))
                await _follow(clients, execution_id, events, life, goal)
                if goal is None:
                    history = await clients.get(f"/executions/{execution_id}/history")
                    return events, history["items"]
    raise AssertionError("the last life has no goal")


async def _follow(
    clients: Clients,
    execution_id: str,
    events: list[tuple[str, str, Any]],
    life: Life,
    goal: int | None,
) -> None:
    """Read events, and kill the service when `goal` have come in all.

    Whatever still comes while it dies is read too. Without a goal, read until the stream ends.
    """
    last = events[-1][0] if events else ""
    try:
        async for event in clients.follow(f"/executions/{execution_id}/events", last):
            events.append(event)
            if goal is not None and len(events) == goal:
                life.kill()
    except LOST:
        assert goal is not None, "nobody killed it"


def test_sigterm_ends_open_streams_and_the_process_with_zero(tmp_path: Path) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            clients = Clients(session)
            with Life(tmp_path) as life:
                clients.serve(await life.ready())
                execution_id = await clients.start(chain("long", 500, 0.05))
                seen: dict[str, int] = {}
                paths = ["/events", f"/executions/{execution_id}/events"]
                reading = [asyncio.create_task(_count(clients, path, seen)) for path in paths]
                await until(lambda: len(seen) == 2, "both streams have begun")
                begun = time.monotonic()
                code, errors = await life.stop()
                assert time.monotonic() - begun < GRACE_SECONDS, "they are ended, not waited for"
                assert code == 0
                assert "Traceback" not in errors
                await asyncio.gather(*reading)
            with Life(tmp_path) as life:
                clients.serve(await life.ready())
                assert (await clients.get(f"/executions/{execution_id}"))["state"] == "RUNNING"

    asyncio.run(main())


def test_sigterm_answers_whoever_waits_for_an_end_with_what_there_is(tmp_path: Path) -> None:
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            clients = Clients(session)
            with Life(tmp_path) as life:
                clients.serve(await life.ready())
                waiting = asyncio.create_task(clients.start(chain("awaited", 500, 0.05), wait=60))
                await until(lambda: _some_run(clients), "it runs")
                begun = time.monotonic()
                code, errors = await life.stop()
                assert time.monotonic() - begun < GRACE_SECONDS
                assert (code, "Traceback" in errors) == (0, False)
                execution_id = await waiting
            with Life(tmp_path) as life:
                clients.serve(await life.ready())
                assert (await clients.get(f"/executions/{execution_id}"))["state"] == "RUNNING"

    asyncio.run(main())


async def _some_run(clients: Clients) -> bool:
    return bool((await clients.get("/executions", state="RUNNING"))["items"])


async def _count(clients: Clients, path: str, seen: dict[str, int]) -> None:
    """A stream that is ended properly raises nothing."""
    async for _ in clients.follow(path):
        seen[path] = seen.get(path, 0) + 1


def test_a_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    async def main() -> None:
        with Life(tmp_path) as life:
            port = int((await life.ready()).rpartition(":")[2])
            with Life(tmp_path, store="other.db", port=port) as second:
                code, errors = await asyncio.to_thread(second.end)
            assert code == 2
            assert len(errors.splitlines()) <= 2, errors
            assert str(port) in errors
            assert "--port" in errors

    asyncio.run(main())


def test_a_store_that_another_process_has_open_is_a_clear_error(tmp_path: Path) -> None:
    async def main() -> None:
        with Life(tmp_path) as life:
            await life.ready()
            with Life(tmp_path) as second:
                code, errors = await asyncio.to_thread(second.end)
            assert code == 2
            assert len(errors.splitlines()) <= 2, errors
            assert re.search(rf"store\.db is in use by process {life.process.pid}\b", errors)
            assert (await life.stop())[0] == 0

    asyncio.run(main())
