"""An engine has the calls of a client: the same names, arguments and answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import penstock
from penstock import Client, Engine, Execution, ExecutionHandle
from penstock.config import Settings
from penstock.contract.waiting import until
from penstock.runtime.http_server import address_of, bind
from penstock.runtime.serving import serving
from penstock.worker.context import Context
from penstock.worker.registry import Handler

ONLY_CLIENT = {"url", "retry_seconds"}
"""They are about the way to the server."""
BY_ID = {
    "result",
    "status",
    "execution_events",
    "cancel",
    "pause",
    "resume",
    "retry",
    "results",
    "history",
    "node",
    "nodes",
    "items",
    "why",
    "logs",
    "all_logs",
    "graph",
    "tree",
    "signal",
    "signals",
    "approve",
    "reject",
}
ONLY_ENGINE = BY_ID | {"open", "plan_for", "before_closing", "check_open", "check_still_open"}
GREET = {
    "name": "greet",
    "nodes": [{"id": "say", "handler": "echo", "config": {"to": "{{ input.name }}"}}],
}
DOOMED = {
    "name": "doomed",
    "nodes": [
        {"id": "first", "handler": "echo", "config": {"x": 1}},
        {
            "id": "a/b c",
            "handler": "doom",
            "depends_on": ["first"],
            "retry": {"max_attempts": 2, "initial_delay_seconds": 0},
        },
    ],
}


def doom(_config: dict[str, Any], ctx: Context) -> None:
    ctx.log.info("attempt %d", ctx.attempt)
    raise ValueError("no luck")


def public_methods(kind: type) -> dict[str, Any]:
    members = inspect.getmembers_static(kind, inspect.isfunction)
    return {name: method for name, method in members if not name.startswith("_")}


def parameters(method: Any) -> list[tuple[str, Any, Any]]:
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(method).parameters.values()
    ]


def test_an_engine_has_every_call_of_a_client() -> None:
    client = public_methods(Client).keys() - ONLY_CLIENT
    assert public_methods(Engine).keys() - ONLY_ENGINE == client


def test_a_handle_has_every_call_of_the_one_over_http() -> None:
    assert public_methods(ExecutionHandle).keys() == public_methods(Execution).keys()
    assert public_methods(ExecutionHandle).keys() - {"events"} == BY_ID - {"execution_events"}


@pytest.mark.parametrize(("embedded", "remote"), [(Engine, Client), (ExecutionHandle, Execution)])
def test_calls_of_one_name_take_the_same_arguments(embedded: type, remote: type) -> None:
    ours = public_methods(embedded)
    for name, method in public_methods(remote).items():
        if name not in ONLY_CLIENT:
            assert parameters(ours[name]) == parameters(method), name


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Engine, Client]]:
    settings = Settings.load({"http_private": True, "shutdown_grace_seconds": 1}, {})
    registry = penstock.Registry([Handler("doom", doom)])
    with bind("127.0.0.1", 0) as listening:
        async with (
            Engine("memory://", settings=settings, registry=registry) as engine,
            serving(engine, settings, listening),
            Client(address_of(listening)) as client,
        ):
            yield engine, client


async def every(items: Any) -> list[Any]:
    return [item async for item in items]


def without(answer: Any, *names: str) -> Any:
    return {name: value for name, value in answer.items() if name not in names}


Caller = Engine | Client
READS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "executions": lambda caller: every(caller.executions()),
    "executions in a state": lambda caller: every(caller.executions(state="FAILED")),
    "executions in states": lambda caller: every(
        caller.executions(state=["COMPLETED", "RUNNING"], workflow="greet@latest")
    ),
    "executions with a label": lambda caller: every(caller.executions(labels={"n": 3})),
    "executions of a time": lambda caller: every(
        caller.executions(since=datetime.now(UTC) - timedelta(hours=1), until="2100-01-01")
    ),
    "at most two executions": lambda caller: every(caller.executions(limit=2)),
    "executions by text": lambda caller: every(caller.executions(text="doom")),
    "workflows": lambda caller: every(caller.workflows()),
    "workflow": lambda caller: caller.workflow("greet"),
    "workflow by version": lambda caller: caller.workflow("greet", 1),
    "versions": lambda caller: every(caller.versions("greet")),
    "dead_letters": lambda caller: every(caller.dead_letters()),
    "dead_letters of a category": lambda caller: every(caller.dead_letters(category="http")),
    "errors": lambda caller: every(caller.errors(text="LUCK")),
    "workers": lambda caller: caller.workers(),
    "orchestrators": lambda caller: caller.orchestrators(),
    "queues": lambda caller: caller.queues(),
    "audit": lambda caller: every(caller.audit(action="put_workflow")),
}


def test_what_is_read_is_the_same_on_both() -> None:
    async def main() -> None:
        async with served() as (engine, client):
            await client.put_workflow({**GREET, "description": "with a line in the audit log"})
            for number in range(5):
                started = await engine.start(
                    GREET, {"name": f"Ada {number}"}, labels={"n": number}, wait=10
                )
                assert started.accepted["state"] == "COMPLETED"
            doomed = await engine.start(DOOMED, wait=10)
            assert doomed.accepted["state"] == "FAILED"

            for name, read in READS.items():
                ours = await read(engine)
                theirs = await read(client)
                if name == "workers":  # a heartbeat may come in between
                    ours = [without(worker, "heartbeats") for worker in ours]
                    theirs = [without(worker, "heartbeats") for worker in theirs]
                assert ours == theirs, name
                assert ours or name == "dead_letters of a category", name

            health = await engine.health()
            assert without(health, "time", "checks") == without(
                await client.health(), "time", "checks"
            )
            await same_handles(engine.execution(doomed.id), client.execution(doomed.id))
            letters = await every(engine.dead_letters())
            letter_id = letters[0]["id"]
            assert await engine.dead_letter(letter_id) == await client.dead_letter(letter_id)

    asyncio.run(main())


async def same_handles(handle: ExecutionHandle, execution: Execution) -> None:
    assert (await handle.result(timeout=10)).view == (await execution.result(timeout=10)).view
    assert (await handle.status()).view == (await execution.status()).view
    assert await every(handle.events()) == await every(execution.events())
    assert await every(handle.events(after=3)) == await every(execution.events(after=3))
    assert await handle.results() == await execution.results()
    assert await handle.history() == await execution.history()
    assert await handle.node("a/b c") == await execution.node("a/b c")
    assert await handle.logs("a/b c") == await execution.logs("a/b c")
    assert await every(handle.all_logs()) == await every(execution.all_logs())
    texts = await handle.logs("a/b c")
    assert [text.rpartition(" INFO ")[2] for text in texts.values()] == ["attempt 1", "attempt 2"]
    assert await handle.graph() == await execution.graph()
    assert await handle.tree() == await execution.tree()
    preview = await handle.retry(preview=True)
    assert preview == await execution.retry(preview=True)
    assert preview["execution_id"] is None
    assert preview["keeps"] == ["first"]
    from_first = await handle.retry("first", preview=True)
    assert from_first == await execution.retry("first", preview=True)
    assert [run["node_id"] for run in from_first["runs"]] == ["first", "a/b c"]


def test_what_is_changed_is_answered_alike() -> None:
    async def main() -> None:
        async with served() as (engine, client):
            stored = await engine.put_workflow(GREET)
            again = await client.put_workflow(GREET)
            assert (stored["created"], again["created"]) == (True, False)
            assert without(stored, "created") == without(again, "created")
            assert await engine.validate(GREET) == await client.validate(GREET)
            wrong = {"name": "wrong", "nodes": [{"id": "a", "handler": "nosuch"}]}
            [problem] = (await engine.validate(wrong))["problems"]
            assert (problem["code"], problem["path"]) == ("unknown_handler", "nodes[0].handler")

            await engine.put_workflow({**GREET, "description": "the second"})
            alias = await engine.set_alias("greet", "stable", 1)
            assert alias == await client.set_alias("greet", "stable", 1)
            mixed = await engine.set_alias("greet", "canary", weights={1: 90, 2: 10})
            assert mixed == await client.set_alias("greet", "canary", weights={1: 90, 2: 10})
            await engine.remove_alias("greet", "canary")
            with pytest.raises(penstock.NotFound, match="no alias 'canary'"):
                await engine.remove_alias("greet", "canary")

            handle = await engine.start("greet@stable", {"name": "Ada"}, priority=3)
            execution = await client.start("greet@stable", {"name": "Ada"}, priority=3)
            varying = ("execution_id", "created_at")
            assert without(handle.accepted, *varying) == without(execution.accepted, *varying)
            for caller in (engine, client):
                [first, _] = await caller.start_many(GREET, [{"name": "a"}, {"name": "b"}])
                assert first.accepted["workflow"] == "greet"
                assert (await first.result()).output == {"say": {"to": "a"}}
            once = await engine.start("greet", {"name": "x"}, idempotency_key="k")
            twice = await engine.start("greet", {"name": "x"}, idempotency_key="k")
            assert twice.accepted["execution_id"] == once.id
            await engine.delete_workflow("greet")
            with pytest.raises(penstock.NotFound):
                await engine.workflow("greet")

    asyncio.run(main())


def test_dead_letters_are_retried_and_dropped() -> None:
    async def main() -> None:
        async with served() as (engine, client):
            handles = await engine.start_many(DOOMED, [None] * 4)
            for handle in handles:
                assert not (await handle.result()).completed
            letters = await every(engine.dead_letters())
            first, second, third, fourth = (letter["id"] for letter in letters)

            previews = await engine.retry_dead_letters(ids=[first, str(second)], preview=True)
            assert previews == await client.retry_dead_letters(ids=[first, second], preview=True)
            assert [item["letters"] for item in previews] == [[first], [second]]
            retried = await engine.retry_dead_letter(first)
            assert not (await engine.execution(retried["execution_id"]).result()).completed
            with pytest.raises(penstock.Conflict, match="was retried already"):
                await engine.retry_dead_letter(first)

            await engine.drop_dead_letter(second)
            for caller in (engine, client):
                with pytest.raises(penstock.NotFound, match="was dropped"):
                    await caller.dead_letter(second)
            [third_item] = await engine.retry_dead_letters(execution_id=letters[2]["execution_id"])
            assert third_item["letters"] == [third]
            await engine.execution(third_item["execution_id"]).result()

            fourth_id = letters[3]["execution_id"]
            await engine.execution(fourth_id).retry()
            assert await every(engine.dead_letters(execution_id=fourth_id)) == []
            closed = await every(engine.dead_letters(execution_id=fourth_id, closed=True))
            assert [letter["id"] for letter in closed] == [fourth]

    asyncio.run(main())


def test_a_result_is_waited_for_as_long_as_one_likes() -> None:
    async def main() -> None:
        async with served() as (engine, _):
            nap = {
                "name": "nap",
                "nodes": [{"id": "a", "handler": "sleep", "config": {"seconds": 60}}],
            }
            execution = await engine.start(nap, wait=0.01)
            assert execution.accepted["state"] in {"PENDING", "RUNNING"}
            with pytest.raises(TimeoutError):
                await execution.result(timeout=0.01)
            with pytest.raises(TimeoutError):
                await engine.result(execution.id, 0.01)
            await execution.cancel()
            assert (await execution.result(timeout=30)).state == "CANCELLED"

    asyncio.run(main())


def test_events_of_all_executions_are_followed() -> None:
    async def main() -> None:
        async with served() as (engine, client):
            ours = engine.events()
            theirs = client.events()
            reading = [asyncio.create_task(anext(ours)), asyncio.create_task(anext(theirs))]
            await until(lambda: engine.service.live_events.streams == 2)
            await engine.start(GREET, {"name": "Ada"})
            first, same = await asyncio.gather(*reading)
            assert first == same
            assert (first["from"], first["to"]) == ("PENDING", "RUNNING")
            await ours.aclose()
            await theirs.aclose()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda engine: every(engine.executions(state="BROKEN")), "no state 'BROKEN'"),
        (lambda engine: every(engine.executions(since="yesterday")), "since is 'yesterday'"),
        (lambda engine: engine.start(GREET, priority=101), "priority is 101"),
        (lambda engine: engine.start(GREET, priority=0.5), "priority is 0.5"),
        (lambda engine: engine.set_alias("greet", "a"), "needs a version"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(call: Any, words: str) -> None:
    async def main() -> None:
        async with served() as (engine, _):
            with pytest.raises(penstock.InvalidInput, match=words):
                await call(engine)

    asyncio.run(main())
