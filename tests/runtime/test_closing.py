"""An engine that isn't open says so at once, whatever is called.

Calls that are under way when it closes end.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Engine, ExecutionHandle, NotOpen, Registry
from penstock.config import Settings
from penstock.contract.waiting import until
from penstock.errors import PenstockError
from penstock.worker.registry import Handler

FLOW = {"name": "short", "nodes": [{"id": "a", "handler": "noop"}]}
LONG = {"name": "long", "nodes": [{"id": "a", "handler": "linger"}]}
STORES = ("sqlite", "memory")
PATIENCE_SECONDS = 30


async def wait_for_ever(_config: Any) -> None:
    await asyncio.Event().wait()


def engine_on(kind: str, folder: Path) -> Engine:
    settings = Settings.load({"shutdown_grace_seconds": 0.05}, environ={}, directory=folder)
    address = f"sqlite:///{folder / 'work.db'}" if kind == "sqlite" else "memory://"
    return Engine(address, settings=settings, registry=Registry([Handler("linger", wait_for_ever)]))


async def handle(engine: Engine) -> Any:
    return engine.execution("e1")


async def before_closing(engine: Engine) -> None:
    engine.before_closing(engine.close)


CALLS: dict[str, Callable[[Engine], Awaitable[Any]]] = {
    "start": lambda engine: engine.start(FLOW),
    "start by name": lambda engine: engine.start("short"),
    "start with a key": lambda engine: engine.start(FLOW, idempotency_key="k"),
    "start_many": lambda engine: engine.start_many(FLOW, [None]),
    "plan_for": lambda engine: engine.plan_for(FLOW),
    "execution": handle,
    "before_closing": before_closing,
    "result": lambda engine: engine.result("e1"),
    "status": lambda engine: engine.status("e1"),
    "logs": lambda engine: engine.logs("e1", "a"),
    "all_logs": lambda engine: anext(engine.all_logs("e1")),
    "cancel": lambda engine: engine.cancel("e1"),
    "pause": lambda engine: engine.pause("e1"),
    "resume": lambda engine: engine.resume("e1"),
    "retry": lambda engine: engine.retry("e1"),
    "preview of a retry": lambda engine: engine.retry("e1", preview=True),
    "results": lambda engine: engine.results("e1"),
    "history": lambda engine: engine.history("e1"),
    "node": lambda engine: engine.node("e1", "a"),
    "nodes": lambda engine: engine.nodes("e1"),
    "items": lambda engine: anext(engine.items("e1", "a")),
    "why": lambda engine: engine.why("e1", "a"),
    "signal": lambda engine: engine.signal("e1", "paid"),
    "signals": lambda engine: engine.signals("e1"),
    "approve": lambda engine: engine.approve("e1", "a"),
    "reject": lambda engine: engine.reject("e1", "a"),
    "post_signal": lambda engine: engine.post_signal("paid", "order-7"),
    "waits": lambda engine: anext(engine.waits()),
    "approvals": lambda engine: anext(engine.approvals()),
    "graph": lambda engine: engine.graph("e1"),
    "tree": lambda engine: engine.tree("e1"),
    "execution_events": lambda engine: anext(engine.execution_events("e1")),
    "events": lambda engine: anext(engine.events()),
    "executions": lambda engine: anext(engine.executions()),
    "put_workflow": lambda engine: engine.put_workflow(FLOW),
    "validate": lambda engine: engine.validate(FLOW),
    "workflows": lambda engine: anext(engine.workflows()),
    "workflow": lambda engine: engine.workflow("short"),
    "delete_workflow": lambda engine: engine.delete_workflow("short"),
    "versions": lambda engine: anext(engine.versions("short")),
    "set_alias": lambda engine: engine.set_alias("short", "stable", 1),
    "remove_alias": lambda engine: engine.remove_alias("short", "stable"),
    "dead_letters": lambda engine: anext(engine.dead_letters()),
    "errors": lambda engine: anext(engine.errors()),
    "dead_letter": lambda engine: engine.dead_letter(1),
    "retry_dead_letter": lambda engine: engine.retry_dead_letter(1),
    "retry_dead_letters": lambda engine: engine.retry_dead_letters(),
    "drop_dead_letter": lambda engine: engine.drop_dead_letter(1),
    "workers": lambda engine: engine.workers(),
    "orchestrators": lambda engine: engine.orchestrators(),
    "queues": lambda engine: engine.queues(),
    "audit": lambda engine: anext(engine.audit()),
    "health": lambda engine: engine.health(),
}
HANDLE_CALLS: dict[str, Callable[[ExecutionHandle], Awaitable[Any]]] = {
    "result": lambda execution: execution.result(),
    "status": lambda execution: execution.status(),
    "events": lambda execution: anext(execution.events()),
    "cancel": lambda execution: execution.cancel(),
    "pause": lambda execution: execution.pause(),
    "resume": lambda execution: execution.resume(),
    "retry": lambda execution: execution.retry(),
    "results": lambda execution: execution.results(),
    "history": lambda execution: execution.history(),
    "node": lambda execution: execution.node("a"),
    "logs": lambda execution: execution.logs("a"),
    "all_logs": lambda execution: anext(execution.all_logs()),
    "graph": lambda execution: execution.graph(),
    "tree": lambda execution: execution.tree(),
    "nodes": lambda execution: execution.nodes(),
    "items": lambda execution: anext(execution.items("a")),
    "why": lambda execution: execution.why("a"),
    "signal": lambda execution: execution.signal("paid"),
    "signals": lambda execution: execution.signals(),
    "approve": lambda execution: execution.approve("a"),
    "reject": lambda execution: execution.reject("a"),
}


@pytest.mark.parametrize("kind", STORES)
def test_every_call_says_that_the_engine_is_not_open(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        engine = engine_on(kind, tmp_path)
        for call in CALLS.values():
            with pytest.raises(NotOpen, match="isn't open yet; open it with"):
                await call(engine)
        async with engine:
            execution = await engine.start(FLOW)
            assert (await execution.result()).completed
            with pytest.raises(NotOpen, match="is open already"):
                await engine.__aenter__()
        async with asyncio.timeout(PATIENCE_SECONDS):
            for call in CALLS.values():
                with pytest.raises(NotOpen, match="has been closed"):
                    await call(engine)
            for handle_call in HANDLE_CALLS.values():
                with pytest.raises(NotOpen, match="has been closed"):
                    await handle_call(execution)

    asyncio.run(main())


def test_every_call_of_an_engine_is_tried_when_it_is_not_open() -> None:
    exceptions = {"open", "close", "check_open", "check_still_open"}
    calls = {name.partition(" ")[0] for name in CALLS}
    assert public_methods(Engine) - exceptions <= calls
    assert public_methods(ExecutionHandle) == HANDLE_CALLS.keys()


def public_methods(kind: type) -> set[str]:
    members = inspect.getmembers_static(kind, inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")}


@pytest.mark.parametrize("kind", STORES)
def test_a_call_that_is_under_way_when_the_engine_closes_comes_to_an_end(
    kind: str, tmp_path: Path
) -> None:
    async def main() -> None:
        answered: list[str] = []
        for round_number in range(6):
            engine = engine_on(kind, tmp_path)
            async with engine:
                long = await engine.start(LONG)
                waiter = asyncio.create_task(long.result())
                starts = [asyncio.create_task(engine.start(FLOW)) for _ in range(40)]
                for _ in range(round_number * 3):  # closed at another point each time
                    await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE_SECONDS):
                outcomes = await asyncio.gather(*starts, return_exceptions=True)
                with pytest.raises(NotOpen):
                    await waiter
            for outcome in outcomes:
                assert not isinstance(outcome, BaseException) or isinstance(
                    outcome, PenstockError
                ), repr(outcome)
            answered += [
                outcome.id for outcome in outcomes if not isinstance(outcome, BaseException)
            ]
        assert answered
        if kind == "sqlite":  # what was answered is there, and ends
            async with engine_on(kind, tmp_path) as engine, asyncio.timeout(PATIENCE_SECONDS):
                for execution_id in answered:
                    assert (await engine.result(execution_id)).completed

    asyncio.run(main())


def test_a_caller_that_is_cancelled_is_cancelled_also_while_the_engine_closes(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        engine = engine_on("memory", tmp_path)
        async with engine:
            waiter = asyncio.create_task((await engine.start(LONG)).result())
            await asyncio.sleep(0)
            waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    asyncio.run(main())


@pytest.mark.parametrize("kind", STORES)
def test_an_engine_can_be_opened_again(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        engine = engine_on(kind, tmp_path)
        for _ in range(2):
            async with engine:
                assert (await (await engine.start(FLOW)).result()).completed

    asyncio.run(main())


def test_an_engine_is_opened_and_closed_without_a_block(tmp_path: Path) -> None:
    async def main() -> None:
        engine = engine_on("sqlite", tmp_path)
        await engine.close()
        assert await engine.open() is engine
        with pytest.raises(NotOpen, match="is open already"):
            await engine.open()
        assert (await (await engine.start(FLOW)).result()).completed
        await engine.close()
        await engine.close()
        with pytest.raises(NotOpen, match="has been closed"):
            await engine.start(FLOW)

    asyncio.run(main())


def test_streams_of_an_engine_that_closes_end(tmp_path: Path) -> None:
    async def collect(events: Any) -> list[Any]:
        return [event async for event in events]

    async def main() -> None:
        async with engine_on("memory", tmp_path) as engine:
            long = await engine.start(LONG)
            following = [
                asyncio.create_task(collect(engine.events())),
                asyncio.create_task(collect(long.events())),
            ]
            await until(lambda: engine.service.live_events.streams == 2)
        async with asyncio.timeout(PATIENCE_SECONDS):
            _, of_long = await asyncio.gather(*following)
        assert of_long[0]["to"] == "RUNNING"

    asyncio.run(main())


def test_a_store_is_closed_also_when_closing_the_engine_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        raise RuntimeError("it can't stop")

    async def main() -> None:
        engine = engine_on("sqlite", tmp_path)
        await engine.__aenter__()
        monkeypatch.setattr(engine.worker, "stop", fail)
        with pytest.raises(RuntimeError, match="can't stop"):
            await engine.__aexit__()
        async with engine_on("sqlite", tmp_path) as other:
            assert (await (await other.start(FLOW)).result()).completed

    asyncio.run(main())
