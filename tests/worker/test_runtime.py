"""The worker against everything that a handler may do: its node fails, and the worker goes on."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from penstock.errors import Retryable, Terminal
from penstock.worker import threads
from penstock.worker.context import Context
from penstock.worker.registry import Handler
from tests.contract.worker_harness import WorkerHarness, error_of, idle, outcome_of, output_of
from tests.waiting import PATIENCE_SECONDS, until

SHORT_SECONDS = 0.05


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


RAISED: dict[str, BaseException] = {
    "an error": ValueError("boom"),
    "an exit": SystemExit(3),
    "an interrupt": KeyboardInterrupt(),
    "a generator's exit": GeneratorExit(),
    "a cancellation": asyncio.CancelledError(),
    "the end of an iterator": StopIteration(1),
    "the end of an async iterator": StopAsyncIteration(),
    "a time-out": TimeoutError(),
    "a group": BaseExceptionGroup("two", [SystemExit(1), ValueError()]),
    "an error without text": Odd(),
    "an error with half a character": ValueError("\ud800"),
    "an error whose detail is no JSON": Terminal("x", detail={"not json": object()}),
}


async def returns_its_config(config: dict[str, Any], _ctx: Context) -> Any:
    return config


def returns_its_config_from_a_thread(config: dict[str, Any], ctx: Context) -> Any:
    return config


@pytest.mark.parametrize("handler", [returns_its_config, returns_its_config_from_a_thread])
def test_a_handler_gets_its_config_and_its_return_value_is_reported(handler: Any) -> None:
    event = outcome_of(handler, {"a": [1, "é"]})
    assert output_of(event) == {"a": [1, "é"]}
    assert (event.worker_id, event.attempt, event.logs) == ("worker-1", 1, "")


def test_a_handler_takes_as_many_arguments_as_it_likes() -> None:
    async def none() -> Any:
        return 0

    async def one(config: Any) -> Any:
        return [config]

    async def any_number(*arguments: Any) -> Any:
        return len(arguments)

    def with_a_default(config: Any, ctx: Any, extra: int = 5) -> Any:
        return extra

    class Callable:
        async def __call__(self, config: Any, ctx: Context) -> Any:
            return ctx.node_id

    assert output_of(outcome_of(none)) == 0
    assert output_of(outcome_of(one, {"a": 1})) == [{"a": 1}]
    assert output_of(outcome_of(any_number)) == 2
    assert output_of(outcome_of(with_a_default)) == 5
    assert output_of(outcome_of(Handler("callable", Callable()))) == "n1"


@pytest.mark.parametrize("what", RAISED)
def test_whatever_an_async_handler_raises_is_its_nodes_failure(what: str) -> None:
    async def raises() -> None:
        raise RAISED[what]

    assert error_of(outcome_of(raises)).message


@pytest.mark.parametrize("what", RAISED)
def test_whatever_a_sync_handler_raises_is_its_nodes_failure(what: str) -> None:
    def raises() -> None:
        raise RAISED[what]

    assert error_of(outcome_of(raises)).message


def test_a_handler_that_waited_for_something_that_was_cancelled_has_failed() -> None:
    """Awaiting a cancelled future raises CancelledError; nobody cancelled the handler itself."""

    async def waits_for_a_cancelled_future() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    event = outcome_of(waits_for_a_cancelled_future)
    assert error_of(event).type == "CancelledError"
    assert event.retryable


@pytest.mark.parametrize("value", [float("nan"), {"a": 1j}, b"bytes"], ids=repr)
def test_a_return_value_that_is_not_json_fails_the_node_for_good(value: Any) -> None:
    async def returns() -> Any:
        return value

    event = outcome_of(returns)
    assert error_of(event).category == "not_json"
    assert not event.retryable


def test_a_value_that_contains_itself_is_not_json() -> None:
    def returns() -> Any:
        value: dict[str, Any] = {}
        value["self"] = value
        return value

    assert error_of(outcome_of(returns)).category == "not_json"


def test_endless_recursion_is_a_failure_like_any_other() -> None:
    def recurses() -> Any:
        return recurses()

    assert error_of(outcome_of(recurses)).type == "RecursionError"


def test_printing_harms_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    def prints() -> Any:
        print("to whom it may concern")  # noqa: T201 -- what is tested
        sys.stdout.flush()
        return 1

    assert output_of(outcome_of(prints)) == 1
    assert "to whom" in capfd.readouterr().out


def test_the_handlers_verdict_is_reported() -> None:
    async def asks_for_patience() -> None:
        raise Retryable("busy", after=7.5, category="http", detail={"status": 429})

    async def gives_up() -> None:
        raise Terminal("never")

    event = outcome_of(asks_for_patience)
    assert (event.retryable, event.retry_after) == (True, 7.5)
    assert (event.error.category, event.error.detail) == ("http", {"status": 429})
    assert not outcome_of(gives_up).retryable


def test_a_task_for_a_handler_that_the_worker_does_not_have_is_left_for_others() -> None:
    async def scenario() -> None:
        async with WorkerHarness(idle, worker_concurrency=1) as harness:
            foreign, own = await harness.give_all(["unheard_of", "idle"])
            assert output_of(await harness.outcome(own)) == "went on"
            assert await harness.events(foreign) == []
            assert await harness.stores.queue.fetch("worker-2", {"echo"}, 10, {"unheard_of"}) == [
                foreign
            ]

    asyncio.run(scenario())


def test_a_task_whose_handler_is_unregistered_after_it_was_fetched_is_given_back() -> None:
    async def scenario() -> None:
        async def unregisters() -> str:
            harness.registry._handlers.pop("idle", None)
            return "done"

        async with WorkerHarness(unregisters, idle, worker_concurrency=2) as harness:
            first, second = await harness.give_all(["unregisters", "idle"])
            assert output_of(await harness.outcome(first)) == "done"
            assert await harness.stores.queue.fetch("worker-2", {"echo"}, 10, {"idle"}) == [second]
            assert await harness.events(second) == []
            assert output_of(await harness.run("unregisters")) == "done"

    asyncio.run(scenario())


async def hangs() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("seconds", [SHORT_SECONDS, 0.25])
def test_an_async_handler_that_hangs_is_stopped_at_its_timeout_and_its_slot_is_free(
    seconds: float,
) -> None:
    event = outcome_of(hangs, timeout_seconds=seconds)
    assert error_of(event).category == "timeout"
    assert f"{seconds:g} s" in event.error.message
    assert event.retryable


def test_a_sync_handler_that_hangs_is_given_up_at_its_timeout_and_its_thread_is_replaced() -> None:
    release = threading.Event()

    def hangs_in_a_thread() -> None:
        release.wait(PATIENCE_SECONDS)

    async def scenario() -> None:
        async with WorkerHarness(
            hangs_in_a_thread, quick, worker_concurrency=1, worker_threads=1
        ) as harness:
            for _ in range(3):
                event = await harness.run("hangs_in_a_thread", timeout_seconds=SHORT_SECONDS)
                assert error_of(event).category == "timeout"
                assert output_of(await harness.run("quick")) == "quick"
            release.set()
            await until(
                lambda: (
                    sum(thread.name == "penstock-handler" for thread in threading.enumerate()) <= 1
                )
            )
            assert output_of(await harness.run("quick")) == "quick"

    asyncio.run(scenario())


def quick() -> str:
    return "quick"


def test_a_call_that_is_given_up_in_the_moment_in_which_a_thread_takes_it_costs_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taking = threading.Event()
    given_up = threading.Event()
    over = threading.Event()

    def hangs_in_a_thread() -> None:
        taking.set()
        over.wait(PATIENCE_SECONDS)

    class SlowlyTaken(threads._Call):
        @property
        def taken(self) -> bool:
            return bool(self.__dict__.get("taken"))

        @taken.setter
        def taken(self, value: bool) -> None:
            if value and not given_up.is_set():
                taking.set()
                given_up.wait(PATIENCE_SECONDS)
            self.__dict__["taken"] = value

    monkeypatch.setattr(threads, "_Call", SlowlyTaken)

    async def scenario() -> None:
        runner = threads.ThreadRunner(1)
        first = asyncio.create_task(runner.run(lambda: None, hangs_in_a_thread))
        await until(taking.is_set)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        given_up.set()
        try:
            async with asyncio.timeout(5):
                assert await runner.run(lambda: None, quick) == "quick"
        finally:
            over.set()
            runner.stop()

    asyncio.run(scenario())


HANGS_AND_ENDS = """
import threading, penstock

@penstock.handler("hang", timeout_seconds=0.05, retry=penstock.Retry(max_attempts=1))
def hang():
    threading.Event().wait()

flow = penstock.Workflow("w")
flow.node("a", "hang")
print(penstock.run(flow).error["category"])
"""


def test_a_thread_that_hangs_does_not_keep_the_process_from_ending() -> None:
    command = [sys.executable, "-c", HANGS_AND_ENDS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "timeout\n"


def test_a_handler_that_swallows_its_cancellation_and_answers_late_has_timed_out() -> None:
    async def answers_late() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "too late"
        raise AssertionError

    assert error_of(outcome_of(answers_late, timeout_seconds=SHORT_SECONDS)).category == "timeout"


def test_a_handler_that_swallows_every_cancellation_costs_neither_the_slot_nor_the_stop() -> None:
    over = asyncio.Event()

    async def never_listens() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async def scenario() -> None:
        harness = WorkerHarness(never_listens, idle, worker_concurrency=1)
        async with harness:
            try:
                event = await harness.outcome(
                    await harness.give("never_listens", timeout_seconds=SHORT_SECONDS), seconds=5
                )
                assert error_of(event).category == "timeout"
                assert output_of(await harness.run("idle")) == "went on"
                async with asyncio.timeout(5):
                    await harness.stop(0)
            finally:
                over.set()

    asyncio.run(scenario())


def test_a_task_that_waits_for_a_thread_is_not_running_yet() -> None:
    """An attempt's time starts with its handler.

    Otherwise a worker with more slots than threads would time out tasks that it never ran.
    """
    release = threading.Event()
    called = []

    def blocks() -> None:
        release.wait(PATIENCE_SECONDS)

    def short() -> None:
        called.append(1)

    async def scenario() -> None:
        async with WorkerHarness(blocks, short, hangs, worker_threads=1) as harness:
            blocking = await harness.give("blocks")
            await harness.started(blocking)
            waiting = await harness.give("short", timeout_seconds=SHORT_SECONDS)
            assert (
                error_of(await harness.run("hangs", timeout_seconds=4 * SHORT_SECONDS)).category
                == "timeout"
            )
            assert await harness.events(waiting) == []
            release.set()
            output_of(await harness.outcome(waiting))
            assert called == [1]

    try:
        asyncio.run(scenario())
    finally:
        release.set()
