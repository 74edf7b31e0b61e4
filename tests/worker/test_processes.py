"""Handlers with `runs_in="process"`: one that dies takes only its own attempt along.

The handlers are at the top level of this module, because their processes import it.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.definition.config import SecretText
from penstock.engine.events import Blob, TaskFailed, TaskSucceeded
from penstock.errors import Retryable, Terminal
from penstock.worker.context import Context
from penstock.worker.loading import load_handlers
from penstock.worker.registry import Handler, handler, registered
from tests.contract.worker_harness import EXECUTION, WorkerHarness, error_of, idle, output_of
from tests.waiting import until

CANARY = "canary-0123456789abcdefghijklmnopqrstuvwxyz"


@handler("processes.echo", runs_in="process")
def echo(config: dict[str, Any]) -> Any:
    return config


@handler("processes.pid", runs_in="process")
def pid() -> int:
    return os.getpid()


@handler("processes.misbehave", runs_in="process")
def misbehave(config: dict[str, Any]) -> Any:
    match config["how"]:
        case "raise":
            raise KeyError("missing")
        case "give up":
            raise Terminal("never", category="mine", detail={"a": 1})
        case "later":
            raise Retryable("busy", after=2.5)
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "not json":
            return {1: object()}
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":
            os._exit(7)
    return None


@handler("processes.noisy", runs_in="process")
def noisy() -> str:
    print("on standard output", flush=True)  # noqa: T201 -- what is tested
    os.write(1, b"straight to the descriptor\n")
    print("on standard error", file=sys.stderr, flush=True)  # noqa: T201
    return "heard"


@handler("processes.hang", runs_in="process")
def hang(config: dict[str, Any]) -> None:
    Path(config["file"]).write_text(str(os.getpid()), encoding="utf-8")
    signal.pause()


@handler("processes.tell", runs_in="process")
def tell(_config: Any, ctx: Context) -> Any:
    ctx.log.info("at work")
    logging.getLogger("elsewhere").warning("from logging")
    ctx.heartbeat({"done": 1})
    return [
        ctx.execution_id,
        ctx.node_id,
        ctx.attempt,
        ctx.idempotency_key,
        ctx.deadline,
        dict(ctx.inputs),
    ]


@handler("processes.log_and_end", runs_in="process")
def log_and_end(config: dict[str, Any], ctx: Context) -> None:
    ctx.log.info("before the end é")
    if config["how"] == "hang":
        signal.pause()
    os.kill(os.getpid(), signal.SIGKILL)


@handler("processes.chatter", runs_in="process")
def chatter(config: dict[str, Any], ctx: Context) -> None:
    for number in range(config["lines"]):
        ctx.heartbeat(number)


_called_again = threading.Event()
_threads: list[threading.Thread] = []


@handler("processes.log_elsewhere", runs_in="process")
def log_elsewhere(_config: Any, ctx: Context) -> None:
    """In a process that it forks, and in a thread that goes on until the next call."""
    if os.fork() == 0:
        ctx.heartbeat("in a fork")
        os._exit(0)
    os.wait()
    ctx.heartbeat("here")
    if _threads:
        _called_again.set()
        _threads[0].join()
    else:
        _threads.append(threading.Thread(target=_log_late, args=(ctx,)))
        _threads[0].start()


def _log_late(ctx: Context) -> None:
    _called_again.wait()
    ctx.heartbeat("too late")


@handler("processes.leak", runs_in="process")
def leak(config: dict[str, Any], ctx: Context) -> Any:
    ctx.log.info("the token is %s", config["token"])
    if config["how"] == "raise":
        raise ValueError("x" * 3980 + config["token"])
    return {config["token"]: [config["token"]]}


@handler("processes.large", runs_in="process")
def large(config: dict[str, Any]) -> str:
    return "x" * int(config["size"])


def _mine() -> list[Handler]:
    return [handler for handler in registered if handler.name.startswith("processes.")]


def test_a_handler_in_a_process_gets_its_config_and_returns_json() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine()) as harness:
            assert output_of(await harness.run("processes.echo", {"a": [1, "é", None]})) == {
                "a": [1, "é", None]
            }
            assert output_of(await harness.run("processes.pid")) != os.getpid()

    asyncio.run(scenario())


def test_one_process_serves_one_call_after_another() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine()) as harness:
            first, second = [output_of(await harness.run("processes.pid")) for _ in range(2)]
            assert first == second

    asyncio.run(scenario())


def test_no_more_processes_run_than_the_setting_says() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=2) as harness:
            tasks = await harness.give_all(["processes.pid"] * 10)
            assert len({output_of(await harness.outcome(task)) for task in tasks}) <= 2

    asyncio.run(scenario())


def test_whatever_the_handler_raises_is_its_nodes_failure() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1) as harness:

            async def outcome(how: str) -> TaskFailed:
                event = await harness.run("processes.misbehave", {"how": how})
                assert isinstance(event, TaskFailed)
                return event

            raised = await outcome("raise")
            assert (raised.error.type, raised.error.message) == ("KeyError", "KeyError: 'missing'")
            assert "in misbehave" in (raised.error.traceback or "")
            gave_up = await outcome("give up")
            assert (gave_up.retryable, gave_up.error.category, gave_up.error.detail) == (
                False,
                "mine",
                {"a": 1},
            )
            later = await outcome("later")
            assert (later.retryable, later.retry_after) == (True, 2.5)
            assert (await outcome("exit")).error.type == "SystemExit"
            assert (await outcome("interrupt")).error.type == "KeyboardInterrupt"
            not_json = await outcome("not json")
            assert (not_json.retryable, not_json.error.category) == (False, "not_json")
            assert output_of(await harness.run("processes.echo", {"a": 1})) == {"a": 1}

    asyncio.run(scenario())


@pytest.mark.parametrize(("how", "shown"), [("die", "signal SIGKILL"), ("leave", "exit code 7")])
def test_a_handler_that_ends_its_process_costs_an_attempt_while_others_go_on(
    how: str, shown: str
) -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), idle, worker_processes=2) as harness:
            victim, *survivors = await harness.give_all(
                ["processes.misbehave", "processes.misbehave", "idle"], {"how": how}
            )
            event = await harness.outcome(victim)
            assert error_of(event).category == "lost"
            assert shown in event.error.message
            assert (event.retryable, event.retry_after) == (True, 0.0)
            assert isinstance(await harness.outcome(survivors[-1]), TaskSucceeded)
            assert output_of(await harness.run("processes.echo", {"a": 1})) == {"a": 1}

    asyncio.run(scenario())


def test_what_a_handler_prints_does_not_get_into_its_answer() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1) as harness:
            for _ in range(2):
                assert output_of(await harness.run("processes.noisy")) == "heard"

    asyncio.run(scenario())


def test_a_handler_that_hangs_is_killed_at_its_timeout(tmp_path: Path) -> None:
    file = tmp_path / "pid"

    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1) as harness:
            await harness.run("processes.pid")  # so that the time isn't spent on starting Python
            event = await harness.run("processes.hang", {"file": str(file)}, timeout_seconds=0.3)
            assert error_of(event).category == "timeout"
            await until(lambda: not _is_running(int(file.read_text(encoding="utf-8"))))
            assert output_of(await harness.run("processes.echo", {"a": 1})) == {"a": 1}

    asyncio.run(scenario())


def test_starting_a_process_does_not_count_against_the_handlers_time() -> None:
    """Otherwise a module that takes longer to import than its handlers may run never runs one."""

    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1) as harness:
            assert output_of(
                await harness.run("processes.echo", {"a": 1}, timeout_seconds=0.15)
            ) == {"a": 1}

    asyncio.run(scenario())


def test_a_worker_that_stops_leaves_no_process_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=2) as harness:
            idle_pid = output_of(await harness.run("processes.pid"))
            await harness.give_all(["processes.hang"] * 2, {"file": str(tmp_path / "pid")})
            await until(
                lambda: (
                    (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(encoding="utf-8")
                )
            )
            hanging = int((tmp_path / "pid").read_text(encoding="utf-8"))
            async with asyncio.timeout(10):
                await harness.stop(0)
            await until(lambda: not _is_running(idle_pid) and not _is_running(hanging))
            me = psutil.Process()
            await until(
                lambda: (
                    not [
                        child
                        for child in me.children()
                        if "penstock.worker.child" in child.cmdline()
                    ]
                )
            )

    asyncio.run(scenario())


def test_a_handler_in_a_process_is_told_what_it_works_for_and_its_log_is_kept() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine()) as harness:
            fields = {"attempt": 3, "idempotency_key": "first:n", "timeout_seconds": 60.0}
            event = await harness.run("processes.tell", inputs=[("a", b'{"x":1}')], **fields)
            output = output_of(event)
            assert output[:4] == [EXECUTION, "n1", 3, "first:n"]
            assert output[4] == pytest.approx(event.started_at + 60)
            assert output[5] == {"a": {"x": 1}}
            assert "INFO at work" in event.logs
            assert "WARNING from logging" in event.logs
            assert 'heartbeat {"done":1}' in event.logs

    asyncio.run(scenario())


@pytest.mark.parametrize(("how", "category"), [("die", "lost"), ("hang", "timeout")])
def test_what_a_handler_logged_before_its_process_was_killed_is_kept(
    how: str, category: str
) -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1) as harness:
            await harness.run("processes.pid")  # so that the time isn't spent on starting Python
            event = await harness.run("processes.log_and_end", {"how": how}, timeout_seconds=1.0)
            assert error_of(event).category == category
            assert event.logs.endswith("INFO before the end é")

    asyncio.run(scenario())


def test_a_log_of_a_process_that_is_too_long_keeps_its_beginning() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1, log_max_bytes=30) as harness:
            for _ in range(2):
                event = await harness.run("processes.chatter", {"lines": 9})
                assert event.logs.splitlines() == [
                    "heartbeat 0",
                    "heartbeat 1",
                    "(7 more lines dropped: the log is full)",
                ]

    asyncio.run(scenario())


def test_forked_processes_and_threads_that_go_on_do_not_get_between_the_answers() -> None:
    async def scenario() -> None:
        async with WorkerHarness(*_mine(), worker_processes=1) as harness:
            logs = [(await harness.run("processes.log_elsewhere")).logs for _ in range(2)]
            assert logs == ['heartbeat "here"'] * 2
            assert output_of(await harness.run("processes.echo", {"a": 1})) == {"a": 1}

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["return", "raise"])
def test_no_secret_is_in_what_comes_out_of_a_process(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", CANARY)

    async def scenario() -> Any:
        async with WorkerHarness(*_mine()) as harness:
            secrets = (SecretText(("token",), ("", "TOKEN", "")),)
            return await harness.run("processes.leak", {"how": how, "token": None}, secrets=secrets)

    event = asyncio.run(scenario())
    pieces = [CANARY[at : at + 8] for at in range(len(CANARY) - 7)]
    assert [piece for piece in pieces if piece in str(event)] == []
    assert "***" in str(event)


def test_large_outputs_of_processes_are_blobs_up_to_the_limit() -> None:
    async def scenario() -> None:
        async with WorkerHarness(
            *_mine(), inline_max_bytes=1000, output_max_bytes=5_000_000
        ) as harness:
            event = await harness.run("processes.large", {"size": 4_000_000})
            assert event.output == Blob(event.output.key, 4_000_002)
            event = await harness.run("processes.large", {"size": 6_000_000})
            assert error_of(event).category == "too_large"

    asyncio.run(scenario())


def test_a_handler_that_its_process_cannot_find_says_where_to_put_it() -> None:
    def local() -> None:
        """Not at the top level of a module."""

    async def scenario() -> None:
        async with WorkerHarness(Handler("local", local, runs_in="process")) as harness:
            assert (
                "must be at the top level of its module"
                in error_of(await harness.run("local")).message
            )

    asyncio.run(scenario())


def test_handlers_of_a_file_run_in_processes_too(tmp_path: Path) -> None:
    file = tmp_path / "my_handlers.py"
    (tmp_path / "neighbour.py").write_text("ANSWER = 42\n", encoding="utf-8")
    file.write_text(
        "import penstock\nfrom neighbour import ANSWER\n\n"
        "@penstock.handler('processes.from_a_file', runs_in='process')\n"
        "def answer():\n    return ANSWER\n",
        encoding="utf-8",
    )
    load_handlers([str(file)])

    async def scenario() -> None:
        async with WorkerHarness(*_mine()) as harness:
            assert output_of(await harness.run("processes.from_a_file")) == 42

    asyncio.run(scenario())


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
