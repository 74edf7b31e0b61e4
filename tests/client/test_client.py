"""`penstock.Client` against the real service."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import penstock
from tests.client.service import FAIL, NAP, one, service
from tests.waiting import until


def with_client(work: Callable[[penstock.Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with service() as url, penstock.Client(url) as client:
            await work(client)

    asyncio.run(run())


def test_a_document_a_builder_and_a_name_can_be_started():
    async def work(client: penstock.Client) -> None:
        flow = penstock.Workflow("greet")
        flow.node("hello", "echo", text="Hello, {{ input.name }}!")
        built = await client.start(flow, {"name": "Ada"}, labels={"team": "x"}, priority=3)
        result = await built.result()
        assert (result.state, result.output) == ("COMPLETED", {"hello": {"text": "Hello, Ada!"}})
        assert (result["labels"], result["priority"], result.input) == (
            {"team": "x"},
            3,
            {"name": "Ada"},
        )
        assert built.accepted["version"] == 1

        document = await client.start(flow.document(), {"name": "Eve"})
        stored = await client.put_workflow(flow)
        named = await client.start(f"greet@{stored['version']}", {"name": "Eve"})
        assert (
            (await document.result()).outputs
            == (await named.result()).outputs
            == {"hello": {"text": "Hello, Eve!"}}
        )

    with_client(work)


def test_a_short_execution_is_in_the_answer_to_its_start():
    async def work(client: penstock.Client) -> None:
        handle = await client.start(one(), wait=600)
        assert handle.accepted["state"] == "COMPLETED"
        assert (await handle.result()).completed
        unfinished = await client.start(NAP, wait=0.01)
        assert unfinished.accepted["state"] in {"PENDING", "RUNNING"}
        with pytest.raises(TimeoutError):
            await unfinished.result(timeout=0.05)

    with_client(work)


def test_the_same_key_is_the_same_execution():
    async def work(client: penstock.Client) -> None:
        first = await client.start(one(), {"x": 1}, idempotency_key="order-7")
        second = await client.start(one(), {"x": 1}, idempotency_key="order-7")
        assert first.id == second.id
        with pytest.raises(penstock.KeyReused, match="use a new key"):
            await client.start(one(), {"x": 2}, idempotency_key="order-7")

    with_client(work)


def test_many_are_started_at_once():
    async def work(client: penstock.Client) -> None:
        flow = one("echo", config={"n": "{{ input.n }}"})
        handles = await client.start_many(
            flow, ({"n": n} for n in range(600)), labels={"batch": "b"}
        )
        results = await asyncio.gather(*(handle.result() for handle in handles[:50]))
        assert [result.output for result in results] == [{"a": {"n": n}} for n in range(50)]

        async def all_completed() -> bool:
            executions = client.executions(labels={"batch": "b"}, state="COMPLETED", workflow="one")
            return {item["execution_id"] async for item in executions} == {
                handle.id for handle in handles
            }

        await until(all_completed)
        with pytest.raises(penstock.NotFound):
            await client.start_many("nobody", [{}])

    with_client(work)


def test_events_are_those_of_the_history():
    async def work(client: penstock.Client) -> None:
        handle = await client.start(FAIL, {"x": 1})
        seen = [event async for event in handle.events()]
        assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
        assert (seen[-1]["node_id"], seen[-1]["to"]) == (None, "FAILED")
        plain = [
            {name: value for name, value in event.items() if name != "execution_id"}
            for event in seen
        ]
        assert plain == await handle.history()
        assert [event["seq"] async for event in handle.events(after=5)] == list(
            range(6, len(seen) + 1)
        )

    with_client(work)


def test_the_events_of_all_executions():
    async def work(client: penstock.Client) -> None:
        events = client.events()
        coming = asyncio.ensure_future(anext(events))
        seen: set[str] = set()

        async def another() -> bool:
            seen.add((await client.start(one())).id)
            return coming.done()

        await until(another)
        assert (await coming)["execution_id"] in seen
        await events.aclose()

    with_client(work)


def test_cancel_pause_and_resume():
    async def work(client: penstock.Client) -> None:
        handle = await client.start(NAP)
        await until(lambda: _running(handle))
        await handle.pause()
        await until(lambda: _in_state(handle, "PAUSED"))
        await handle.resume()
        await until(lambda: _in_state(handle, "RUNNING"))
        await handle.cancel()
        result = await handle.result()
        assert (result.state, result.nodes["a"]["state"], result.completed) == (
            "CANCELLED",
            "CANCELLED",
            False,
        )
        with pytest.raises(penstock.Conflict, match="CANCELLED"):
            await handle.resume()
        with pytest.raises(penstock.NotFound):
            await client.execution("nobody").cancel()

    with_client(work)


async def _in_state(handle: penstock.Execution, state: str) -> bool:
    return (await handle.status()).state == state


async def _running(handle: penstock.Execution) -> bool:
    return bool((await handle.status()).nodes["a"]["state"] == "RUNNING")


def test_a_failed_execution_is_looked_at_and_retried():
    async def work(client: penstock.Client) -> None:
        handle = await client.start(FAIL, {"x": 1})
        result = await handle.result()
        assert result.error is not None
        assert (result.error["message"], result.error["node_id"]) == ("no luck", "a/b c")
        node = await handle.node("a/b c")
        assert [
            (attempt["attempt"], attempt["error"]["message"]) for attempt in node["attempts"]
        ] == [
            (1, "no luck"),
            (2, "no luck"),
        ]
        assert await handle.logs("a/b c") == {}
        assert (await handle.results())["outputs"] == {"first": {"x": 1}}
        assert {edge["to"] for edge in (await handle.graph())["edges"]} == {"a/b c", "last"}

        plan = await handle.retry(preview=True)
        assert (plan["execution_id"], plan["keeps"]) == (None, ["first"])
        assert {run["node_id"] for run in plan["runs"]} == {"a/b c", "last"}
        everything = await handle.retry("first", preview=True)
        assert everything["keeps"] == []
        retry = await handle.retry()
        again = await client.execution(retry["execution_id"]).result()
        assert (again.state, again["retry_of"], again.nodes["first"]["reason"]) == (
            "FAILED",
            handle.id,
            "kept",
        )

    with_client(work)


def test_dead_letters_are_listed_retried_and_dropped():
    async def work(client: penstock.Client) -> None:
        for x in range(3):
            await (await client.start(FAIL, {"x": x})).result()
        dead_letters = [
            dead_letter
            async for dead_letter in client.dead_letters(workflow="doomed", category="handler")
        ]
        assert [dead_letter["node_id"] for dead_letter in dead_letters] == ["a/b c"] * 3
        first, second, third = (dead_letter["id"] for dead_letter in dead_letters)
        assert (await client.dead_letter(first))["error"]["message"] == "no luck"

        retry = await client.retry_dead_letter(first)
        assert retry["retry_of"] == dead_letters[0]["execution_id"]
        previews = await client.retry_dead_letters(ids=[second], preview=True)
        assert [item["execution_id"] for item in previews] == [None]
        retried = await client.retry_dead_letters(ids=[second])
        assert [item["letters"] for item in retried] == [[second]]
        await client.drop_dead_letter(third)
        closed = {
            dead_letter["id"]: dead_letter["closed"]
            async for dead_letter in client.dead_letters(closed=True)
        }
        assert (closed[first], closed[second], closed[third]) == ("retried", "retried", "dropped")
        with pytest.raises(penstock.NotFound):
            await client.dead_letter(4711)

    with_client(work)


def test_workflows_have_versions_and_aliases():
    async def work(client: penstock.Client) -> None:
        assert (await client.put_workflow(one("echo", config={"n": 1})))["created"]
        assert not (await client.put_workflow(one("echo", config={"n": 1})))["created"]
        assert (await client.put_workflow(one("echo", config={"n": 2})))["version"] == 2
        assert [item["version"] async for item in client.versions("one")] == [2, 1]
        assert [item["name"] async for item in client.workflows()] == ["one"]

        await client.set_alias("one", "stable", 1)
        assert (await (await client.start("one@stable")).result()).output == {"a": {"n": 1}}
        assert (await client.workflow("one", "stable"))["version"] == 1
        alias = await client.set_alias("one", "stable", weights={1: 0, 2: 1})
        assert alias["weights"] == {"1": 0, "2": 1}
        assert (await (await client.start("one@stable")).result()).version == 2
        await client.remove_alias("one", "stable")
        with pytest.raises(penstock.NotFound):
            await client.start("one@stable")
        await client.delete_workflow("one")
        assert [item async for item in client.workflows()] == []

    with_client(work)


def test_a_refused_document_raises_with_every_problem():
    async def work(client: penstock.Client) -> None:
        wrong = {"nodes": [{"id": "a", "handler": "nop"}, {"id": "a", "handler": "noop"}]}
        report = await client.validate(wrong)
        assert not report["valid"]
        for call in (
            client.put_workflow(wrong),
            client.start(wrong),
            client.start_many(wrong, [{}]),
        ):
            with pytest.raises(penstock.InvalidWorkflow) as caught:
                await call
            assert [problem.code for problem in caught.value.problems] == [
                problem_found["code"] for problem_found in report["problems"]
            ]
        strict = {**one(), "naem": 1}
        assert (await client.validate(strict))["valid"]
        assert not (await client.validate(strict, strict=True))["valid"]
        assert (await client.put_workflow(one("later"), allow_unknown_handlers=True))[
            "version"
        ] == 1

    with_client(work)


def test_an_input_that_does_not_fit_is_refused():
    async def work(client: penstock.Client) -> None:
        schema = {"type": "object", "required": ["x"]}
        with pytest.raises(penstock.InvalidInput, match="input_schema"):
            await client.start({**one(), "input_schema": schema})
        with pytest.raises(penstock.PartlyStarted) as caught:
            await client.start_many({**one(), "input_schema": schema}, [{"x": 1}, {}])
        assert (list(caught.value.started), list(caught.value.errors)) == ([0], [1])

    with_client(work)


def test_the_system_can_be_looked_at():
    async def work(client: penstock.Client) -> None:
        await (await client.start(one())).result()
        assert len(await client.workers()) == len(await client.orchestrators()) == 1
        assert {"queue", "waiting", "running"} <= (await client.queues())[0].keys()
        assert (await client.health())["status"] == "ok"
        actions = [line["action"] async for line in client.audit(limit=5)]
        assert len(actions) == 1

    with_client(work)


def test_a_client_outlives_a_restart_of_the_service(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'work.db'}"

    async def run() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        async with AsyncExitStack() as stack, penstock.Client(f"http://127.0.0.1:{port}") as client:
            async with service(store, port):
                handle = await client.start(NAP)
                events = handle.events()
                seen = [await anext(events), await anext(events)]
                waiting = asyncio.ensure_future(handle.result())
            await stack.enter_async_context(service(store, port))
            await handle.cancel()
            seen += [event async for event in events]
            assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
            assert (await waiting).state == "CANCELLED"

    asyncio.run(run())
