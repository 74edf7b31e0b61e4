"""Logs: one record is one line, whatever logged it and whatever is in it.

Lines of an attempt name the attempt.
"""

import asyncio
import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from penstock.config import Settings
from penstock.definition.config import SecretText
from penstock.telemetry.logs import INDENT, LineHandler, configure_logging, restore_logging
from penstock.worker.context import Context
from tests.contract.worker_harness import EXECUTION, WorkerHarness, output_of

HOSTILE = (
    'a\n{"level":"info","event":"forged"}\r2026-01-01T00:00:00.000Z [info     ] '
    "forged\x1b[2J\x1b]0;title\x07"
    "\x85\u2028\u2029\x9b31m\x7f\u202e\x00\ud800 end"
)
ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e\ud800-\udfff]")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

log = logging.getLogger("penstock.test")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Configure = Callable[..., io.StringIO]


@pytest.fixture
def configured() -> Iterator[Configure]:
    root = logging.getLogger()

    def configure(stream: io.StringIO | None = None, **settings: Any) -> io.StringIO:
        # pytest's own raise what they can't format; it puts them back for each test
        root.handlers = [record for record in root.handlers if isinstance(record, LineHandler)]
        stream = stream or io.StringIO()
        configure_logging(Settings(**settings), stream)
        return stream

    yield configure
    restore_logging()


def records(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().split("\n")[:-1]]


def test_our_log_and_the_libraries_are_json_line_by_line(configured: Configure) -> None:
    stream = configured()
    log.info("took %d of %s", 3, "them")
    logging.getLogger("aiohttp.access").warning(
        "slow", extra={"seconds": 1.5, "execution_id": "e1"}
    )
    structlog.get_logger("app").error("no letter", node_id="n1")
    ours, library, bound = records(stream)
    assert TIME.fullmatch(ours.pop("timestamp"))
    assert ours == {"level": "info", "logger": "penstock.test", "event": "took 3 of them"}
    assert library["logger"] == "aiohttp.access"
    assert (library["seconds"], library["execution_id"]) == (1.5, "e1")
    assert (bound["level"], bound["logger"], bound["event"], bound["node_id"]) == (
        "error",
        "app",
        "no letter",
        "n1",
    )
    assert list(records(stream)[1])[:4] == ["timestamp", "level", "logger", "event"]


def say_it_in_every_way(text: str) -> int:
    """How many records that makes."""
    log.info(text)
    log.info("the node %s", text)
    log.info("extra", extra={"node_id": text, text: [text, {text: text}]})
    logging.getLogger(text).info("a logger of that name")
    structlog.get_logger("app").info(text, node_id=text)
    log.error("failed: %s", text, exc_info=ValueError(text))
    log.info("with a stack", stack_info=True)
    return 7


@pytest.mark.fault("security", "CR, LF and escape codes in what is logged as JSON")
def test_hostile_text_forges_no_line_of_json(configured: Configure) -> None:
    stream = configured()
    said = say_it_in_every_way(HOSTILE)
    assert stream.getvalue().isascii()
    assert not ACTING.search(stream.getvalue())
    written = records(stream)
    assert len(written) == said
    assert written[0]["event"] == HOSTILE
    assert written[2]["node_id"] == HOSTILE
    assert HOSTILE in written[5]["exception"]


@pytest.mark.fault("security", "CR, LF and escape codes in what is logged to a terminal")
def test_hostile_text_forges_no_line_on_a_terminal(configured: Configure) -> None:
    stream = configured(log_format="console")
    said = say_it_in_every_way(HOSTILE)
    assert not ACTING.search(stream.getvalue())
    lines = stream.getvalue().split("\n")[:-1]
    assert sum(bool(TIME.match(line)) for line in lines) == said
    assert all(TIME.match(line) or line.startswith(INDENT) for line in lines)
    assert r"a\n{" in lines[0]


def test_a_value_on_a_terminal_does_not_pass_for_several(configured: Configure) -> None:
    stream = configured(log_format="console")
    log.info("started", extra={"node_id": 'a execution_id="forged"', "plain": "b"})
    assert r'node_id="a execution_id=\"forged\""' in stream.getvalue()
    assert "plain=b" in stream.getvalue()


def endless() -> list[Any]:
    around: list[Any] = []
    around.append(around)
    return around


@pytest.mark.parametrize(
    "value", [float("nan"), {("a", 1): 2}, object(), b"\x00\xff", {1, 2}, endless()]
)
@pytest.mark.parametrize("form", ["json", "console"])
def test_any_value_can_be_logged(configured: Configure, value: Any, form: str) -> None:
    stream = configured(log_format=form)
    log.info("odd", extra={"value": value})
    assert stream.getvalue().count("\n") == 1
    if form == "json":
        (last_line,) = records(stream)
        assert last_line["event"] == "odd"
        json.dumps(last_line, allow_nan=False)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "arguments", [("%d apples", "x\nforged"), ("%s and %s", 1), ("%s", Unspeakable())]
)
def test_a_wrong_log_call_is_a_line_too(
    configured: Configure, arguments: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    stream = configured()
    log.error(*arguments)
    (last_line,) = records(stream)
    assert "can't be logged" in last_line["event"]
    assert last_line["level"] == "error"
    assert capsys.readouterr().err == ""


def test_the_form_follows_the_stream_unless_it_is_chosen(configured: Configure) -> None:
    for stream, form, is_json in (
        (io.StringIO(), "auto", True),
        (Terminal(), "auto", False),
        (Terminal(), "json", True),
        (io.StringIO(), "console", False),
    ):
        configured(stream, log_format=form)
        log.warning("hello")
        assert stream.getvalue().startswith("{") == is_json


def test_the_level_is_the_setting_s(configured: Configure) -> None:
    stream = configured(log_level="WARNING")
    log.info("fine")
    log.warning("not fine")
    assert [record["event"] for record in records(stream)] == ["not fine"]
    stream = configured(log_level="DEBUG")
    log.debug("finest")
    assert [record["event"] for record in records(stream)] == ["finest"]


def test_configured_again_it_replaces_and_restored_it_is_gone() -> None:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    first, second = io.StringIO(), io.StringIO()
    configure_logging(Settings(log_level="DEBUG"), first)
    configure_logging(Settings(), second)
    log.warning("hello")
    assert (first.getvalue(), len(records(second))) == ("", 1)
    assert sum(isinstance(record, LineHandler) for record in root.handlers) == 1
    restore_logging()
    assert (root.level, root.handlers) == (level, handlers)
    assert not structlog.is_configured()


def test_it_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        configure_logging(Settings())
        log.warning("hello")
    finally:
        restore_logging()
    out, error = capsys.readouterr()
    assert (out, json.loads(error)["event"]) == ("", "hello")


def run(handler: Callable[..., Any], **fields: Any) -> Any:
    async def scenario() -> Any:
        async with WorkerHarness(handler) as harness:
            return await harness.run(handler.__name__, **fields)

    return asyncio.run(scenario())


def test_what_a_handler_logs_carries_its_ids_and_is_kept_with_its_attempt(
    configured: Configure,
) -> None:
    stream = configured()

    async def works(_config: Any, ctx: Context) -> str:
        ctx.log.info("from the context")
        await asyncio.create_task(helps())
        await asyncio.to_thread(logging.getLogger("library").warning, "from a thread")
        return "done"

    async def helps() -> None:
        log.info("from a task")

    event = run(works, attempt=2)
    assert output_of(event) == "done"
    log.info("outside")
    *inside, outside = [
        record for record in records(stream) if record["event"].startswith(("from", "outside"))
    ]
    assert [record["event"] for record in inside] == [
        "from the context",
        "from a task",
        "from a thread",
    ]
    for record in inside:
        assert (record["execution_id"], record["node_id"], record["attempt"]) == (
            EXECUTION,
            "n1",
            2,
        )
        assert record["workflow"] == "report"
    assert "execution_id" not in outside
    lines = [line.partition(" ")[2] for line in event.logs.split("\n")]
    assert lines == ["INFO from the context", "INFO from a task", "WARNING from a thread"]


def test_a_sync_handler_s_lines_carry_its_ids_too(configured: Configure) -> None:
    stream = configured()

    def works(_config: Any, ctx: Context) -> None:
        log.error("in its thread")

    run(works, trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    last_line = next(record for record in records(stream) if record["event"] == "in its thread")
    assert (last_line["execution_id"], last_line["trace_id"]) == (
        EXECUTION,
        "0af7651916cd43dd8448eb211c80319c",
    )


def test_a_bad_trace_is_no_trace_id(configured: Configure) -> None:
    stream = configured()

    async def works() -> None:
        log.error("here")

    run(works, trace="no trace at all, and long enough for its id to be cut out")
    assert "trace_id" not in next(record for record in records(stream) if record["event"] == "here")


def test_a_handler_can_t_log_in_another_s_name(configured: Configure) -> None:
    stream = configured()

    async def lies() -> None:
        log.info("it was me", extra={"execution_id": "another", "attempt": 99})

    run(lies)
    last_line = next(record for record in records(stream) if record["event"] == "it was me")
    assert (last_line["execution_id"], last_line["attempt"]) == (EXECUTION, 1)


class Holder:
    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"Holder({self.secret})"


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_handler_s_secrets_are_not_in_the_log(
    configured: Configure, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    stream = configured(log_format=form)
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", "canary-5f2a")

    async def chatters(config: dict[str, str]) -> None:
        token = config["token"]
        log.info("the token is %s", token)
        log.info(
            "and",
            extra={
                "config": config,
                "holder": Holder(token),
                "in": [Holder(token), {token: token}],
            },
        )
        log.error("oh", exc_info=ValueError(token))

    event = run(chatters, config={"token": ""}, secrets=(SecretText(("token",), ("", "TOKEN")),))
    assert "the token is ***" in stream.getvalue()
    assert "Holder(***)" in stream.getvalue()
    assert "canary" not in stream.getvalue() + event.logs


def test_a_quiet_service_still_keeps_what_a_handler_logs(configured: Configure) -> None:
    stream = configured(log_level="CRITICAL")

    async def warns(_config: Any, ctx: Context) -> None:
        ctx.log.info("noted")
        logging.getLogger("library").warning("careful")

    event = run(warns)
    assert stream.getvalue() == ""
    assert [line.partition(" ")[2] for line in event.logs.split("\n")] == [
        "INFO noted",
        "WARNING careful",
    ]
