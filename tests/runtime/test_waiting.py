"""Nodes that wait, in a real engine: through restarts, and with signals at every moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock import Engine, ExecutionHandle, Workflow, testing
from penstock.contract.waiting import until
from penstock.definition import parse
from penstock.errors import Conflict, NotFound
from penstock.stores.memory import MemoryStores
from tests.sizes import explored, size

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = size(short=100, full=10_000)
MILLISECONDS = 5


def order() -> Workflow:
    flow = Workflow("order")
    paid = flow.signal("paid", schema={"type": "object"})
    flow.node("ship", "echo", amount=paid["amount"])
    return flow


async def state_of(engine: Engine, execution_id: str, node_id: str) -> str:
    result = await engine.status(execution_id)
    return str(result.nodes[node_id]["state"])


def test_waits_and_kept_signals_survive_a_restart(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    flow = Workflow("twice")
    first = flow.signal("first")
    flow.signal("second", after=first)
    nap = Workflow("nap")
    nap.wait("nap", seconds=0.05)

    async def main() -> None:
        async with Engine(address) as engine:
            execution = await engine.start(flow)
            await until(lambda: is_waiting(engine, execution))
            assert (await execution.signal("second", "early"))["number"] == 1
            sleeping = await engine.start(nap)
        async with Engine(address) as engine:
            await engine.signal(execution.id, "first", "late")
            result = await engine.result(execution.id)
            assert result.completed
            assert result.nodes["second"]["output"]["payload"] == "early"
            assert (await engine.result(sleeping.id)).completed
            with pytest.raises(Conflict, match="COMPLETED"):
                await engine.signal(execution.id, "first")
            with pytest.raises(NotFound):
                await engine.signal("nobody", "first")

    async def is_waiting(engine: Engine, execution: ExecutionHandle) -> bool:
        return await state_of(engine, execution.id, "first") == "WAITING"

    asyncio.run(main())


@explored
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_signal_at_any_moment_around_the_beginning_of_its_wait_is_taken_once(
    store: str, tmp_path: Path
) -> None:
    """Two signals and two nodes that begin to wait at about the same time."""
    random = Random(17)
    flow = Workflow("race")
    before = flow.node("before", "sleep", seconds=MILLISECONDS / 1000)
    flow.signal("first", "go", after=before)
    flow.signal("second", "go", after=before)

    async def main() -> None:
        clock: Callable[[], float] = asyncio.get_running_loop().time
        address = MemoryStores(clock) if store == "memory" else f"sqlite:///{tmp_path}/race.db"
        async with Engine(address) as engine:
            together = asyncio.Semaphore(20)

            async def race() -> None:
                async with together:
                    execution = await engine.start(flow)
                    for number in range(2):
                        await asyncio.sleep(random.uniform(0, MILLISECONDS / 1000))
                        await execution.signal("go", number)
                    result = await execution.result()
                    outputs = [result.nodes[name]["output"] for name in ("first", "second")]
                    assert {output["payload"] for output in outputs} == {0, 1}
                    assert {output["number"] for output in outputs} == {1, 2}

            await asyncio.gather(*(race() for _ in range(ROUNDS)))

    asyncio.run(main())


def test_the_clock_of_tests_skips_waits_and_signals_can_be_given() -> None:
    flow = Workflow("patient")
    year = flow.wait("year", seconds=365 * 86400)
    late = flow.signal("late", timeout_seconds=3600, on_timeout="continue", after=year)
    flow.node("end", "echo", paid=flow.signal("paid", after=late)["amount"])
    run = testing.run(flow, signals=[("paid", {"amount": 7})])
    assert run.result.output == {"end": {"paid": 7}}
    assert run.result.nodes["late"]["output"] == {"timed_out": True}
    assert 365 * 86400 + 3600 <= run.seconds < 365 * 86400 + 3610


@pytest.mark.parametrize(
    ("waiting", "what"),
    [
        ({"handler": "approval", "config": {"title": "Go?"}}, 'decisions={"ask": …}'),
        ({"handler": "signal", "config": {"name": "go"}}, 'signals=[("go", …)]'),
    ],
)
def test_a_test_that_gives_too_little_is_told_what_is_missing(
    waiting: dict[str, Any], what: str
) -> None:
    with pytest.raises(RuntimeError, match="the workflow waits") as raised:
        testing.run({"name": "patient", "nodes": [{"id": "ask", **waiting}]})
    assert what in str(raised.value)


def test_an_async_test_gives_signals_and_decisions_too() -> None:
    flow = Workflow("patient")
    flow.approval("ask", "Go?", after=flow.signal("go"))
    run = asyncio.run(testing.arun(flow, signals=[("go", 1)], decisions={"ask": "approved"}))
    assert run.result.completed


def test_values_that_are_encoded_in_a_thread_are_waited_for() -> None:
    run = testing.run(
        {"name": "large", "nodes": [{"id": "a", "handler": "input"}]}, {"x": "y" * 2**21}
    )
    assert run.result.completed


def test_nodes_that_wait_inside_of_a_map_know_its_item() -> None:
    flow = Workflow("patient")
    with flow.each("days", [1, 2], as_="day") as day:
        flow.wait("nap", seconds=day)
    run = testing.run(flow)
    waited = [output["waited_seconds"] for output in run.result.output["days"]]
    assert waited == [1.0, 2.0]


@pytest.mark.parametrize(
    ("amount", "shipper"), [(250, "courier"), (20, "post")], ids=["asks a person", "is cheap"]
)
def test_the_example_of_an_order(amount: int, shipper: str) -> None:
    text = (ROOT / "examples/waiting/order.yaml").read_text("utf-8")
    document = parse(text, form="yaml")
    approved = {"decision": "approved", "form": {"shipper": "courier"}, "by": "Ada"}
    signals = [("paid", {"amount": amount})]
    run = testing.run(document, signals=signals, decisions={"release": approved})
    assert run.result.output == {"ship": {"order": "order-7", "shipper": shipper}}
