"""The log of outcomes: failed attempts and ended executions, as lines that can be read."""

import asyncio
import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from penstock.config import Settings
from penstock.errors import Terminal
from penstock.runtime import Engine
from penstock.telemetry.logs import INDENT, configure_logging, restore_logging
from penstock.telemetry.outcomes import MESSAGE_CHARACTERS_MAX, WINDOW_SECONDS, OutcomeLog
from penstock.testing import run_jumping
from penstock.worker.registry import Handler, Registry
from tests.contract.worker_harness import WorkerHarness

LOGGER = "penstock.executions"
MARKS = {"execution_id": "e", "node_id": "ship", "attempt": 1}
ENDED = {"execution_id": "e", "workflow": "order", "version": 2}


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, LOGGER)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and text of each line."""
    return [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == LOGGER
    ]


def run(function: Callable[[OutcomeLog], Any], **options: Any) -> None:
    async def work(_clock: Callable[[], float]) -> None:
        outcome_log = OutcomeLog(**options)
        function(outcome_log)
        outcome_log.close()

    run_jumping(work)


def no_route(config: dict[str, Any]) -> None:
    raise ConnectionError("no route")


def refused(config: dict[str, Any]) -> None:
    raise Terminal("the bank refused the card")


def quiet(config: dict[str, Any]) -> dict[str, Any]:
    return {}


def execute(*nodes: dict[str, Any]) -> None:
    """Run an execution on an engine that logs outcomes."""
    functions = {"no_route": no_route, "refused": refused, "quiet": quiet}
    registry = Registry([Handler(name, function) for name, function in functions.items()])

    async def work() -> None:
        async with Engine(
            "memory://", settings=Settings(), registry=registry, outcome_log=OutcomeLog()
        ) as engine:
            execution = await engine.start({"name": "order", "nodes": list(nodes)})
            await execution.result()

    asyncio.run(work())


RETRIED = {"max_attempts": 3, "initial_delay_seconds": 0, "jitter_seconds": 0}


def test_each_failed_attempt_is_a_line_and_the_last_one_has_the_traceback(caplog):
    execute({"id": "ship", "handler": "no_route", "retry": RETRIED})
    *attempts, end = lines(caplog)
    assert attempts == [
        ("WARNING", "ship failed, attempt 1: ConnectionError: no route"),
        ("WARNING", "ship failed, attempt 2: ConnectionError: no route"),
        ("ERROR", "ship failed after 3 attempts: ConnectionError: no route"),
    ]
    assert end[0] == "WARNING"
    assert end[1].startswith("order@1 FAILED in ")
    assert end[1].endswith(" s: ship: ConnectionError: no route")
    first, second, last = (getattr(record, "exception", "") for record in caplog.records[:3])
    assert (first, second) == ("", "")
    assert last.startswith("Traceback (most recent call last)")
    assert "in no_route" in last
    assert [record.attempt for record in caplog.records[:3]] == [1, 2, 3]


def test_an_error_that_no_retry_can_fix_is_the_last(caplog):
    execute({"id": "pay", "handler": "refused", "retry": RETRIED})
    assert lines(caplog)[0] == ("ERROR", "pay failed: the bank refused the card")


def test_a_completed_execution_is_one_line(caplog):
    execute({"id": "a", "handler": "quiet"}, {"id": "b", "handler": "quiet", "depends_on": ["a"]})
    ((level, text),) = lines(caplog)
    assert level == "INFO"
    assert text.startswith("order@1 COMPLETED in ")
    (record,) = caplog.records
    assert (record.workflow, record.version, record.state) == ("order", 1, "COMPLETED")


def test_an_engine_logs_nothing_unless_it_is_told_to(caplog):
    async def work() -> None:
        registry = Registry([Handler("refused", refused)])
        async with Engine("memory://", settings=Settings(), registry=registry) as engine:
            flow = {"nodes": [{"id": "pay", "handler": "refused"}]}
            await (await engine.start(flow)).result()

    asyncio.run(work())
    assert lines(caplog) == []


def test_a_worker_says_which_attempt_is_the_last(caplog):
    async def work() -> None:
        async with WorkerHarness(no_route, outcome_log=OutcomeLog()) as harness:
            for is_last in (False, True):
                dispatched = await harness.give("no_route", is_last=is_last)
                await harness.outcome(dispatched)

    asyncio.run(work())
    assert lines(caplog) == [
        ("WARNING", "n1 failed, attempt 1: ConnectionError: no route"),
        ("ERROR", "n2 failed: ConnectionError: no route"),
    ]
    assert "in no_route" in caplog.records[1].exception
    assert not hasattr(caplog.records[0], "exception")


def test_when_the_next_attempt_begins_is_in_the_line(caplog):
    def log_one(outcome_log: OutcomeLog) -> None:
        outcome_log.attempt_failed(
            MARKS, "no route", category="handler", is_last=False, retry_seconds=1.234
        )

    run(log_one)
    assert lines(caplog) == [("WARNING", "ship failed, attempt 1, again in 1.23 s: no route")]


def test_beyond_some_lines_in_a_second_the_rest_is_counted(caplog):
    def end_five(outcome_log: OutcomeLog) -> None:
        for state in ("COMPLETED", "COMPLETED", "FAILED", "COMPLETED", "COMPLETED"):
            outcome_log.execution_ended(ENDED, state, 0.5)

    run(end_five, lines_max=2)
    assert lines(caplog) == [
        ("INFO", "order@2 COMPLETED in 0.50 s"),
        ("INFO", "order@2 COMPLETED in 0.50 s"),
        ("INFO", "3 more executions ended: 2 COMPLETED, 1 FAILED"),
    ]


def test_a_later_second_has_lines_again(caplog):
    async def work(_clock: Callable[[], float]) -> None:
        outcome_log = OutcomeLog(lines_max=1)
        for _ in range(2):
            outcome_log.execution_ended(ENDED, "COMPLETED", 12)
            outcome_log.execution_ended(ENDED, "CANCELLED", 12)
            await asyncio.sleep(2 * WINDOW_SECONDS)

    run_jumping(work)
    second = [
        ("INFO", "order@2 COMPLETED in 12 s"),
        ("INFO", "1 more executions ended: 1 CANCELLED"),
    ]
    assert lines(caplog) == second + second


def test_failed_attempts_and_ended_executions_dont_share_their_room(caplog):
    def log_both(outcome_log: OutcomeLog) -> None:
        outcome_log.execution_ended(ENDED, "COMPLETED", 1)
        outcome_log.attempt_failed(MARKS, "no", category="handler", is_last=True)

    run(log_both, lines_max=1)
    assert len(lines(caplog)) == 2


def test_of_a_message_the_first_line_is_shown(caplog):
    def log_long(outcome_log: OutcomeLog) -> None:
        for message in ("first\nsecond", "x" * 1000):
            outcome_log.attempt_failed(MARKS, message, category="handler", is_last=True)

    run(log_long)
    short, long = [text for _, text in lines(caplog)]
    assert short == "ship failed: first …"
    assert long == f"ship failed: {'x' * MESSAGE_CHARACTERS_MAX} …"


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_traceback_is_structured_in_json_and_indented_on_a_console(form: str):
    stream = io.StringIO()
    configure_logging(Settings(log_format=form), stream)
    try:
        run(
            lambda outcome_log: outcome_log.attempt_failed(
                MARKS, "no", category="handler", is_last=True, traceback="Traceback\n  here\n"
            )
        )
    finally:
        restore_logging()
    if form == "json":
        (line,) = stream.getvalue().splitlines()
        record = json.loads(line)
        assert record["exception"] == "Traceback\n  here"
        assert (record["event"], record["node_id"]) == ("ship failed: no", "ship")
    else:
        assert f"\n{INDENT}Traceback\n{INDENT}  here" in stream.getvalue()
