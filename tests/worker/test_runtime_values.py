"""What goes into a handler and what comes out: context, configs, logs, large values, secrets."""

import asyncio
import dataclasses
import logging
import threading
import time
from typing import Any

import msgspec
import pytest

from penstock.definition.config import SecretText
from penstock.engine.events import Blob, TaskFailed
from penstock.errors import StoreUnavailable, Terminal
from penstock.stores.memory import MemoryStores
from penstock.worker.context import Context
from tests.contract.worker_harness import (
    EXECUTION,
    WorkerHarness,
    error_of,
    idle,
    outcome_of,
    output_of,
)
from tests.waiting import let_others_run, until

CANARY = "canary-0123456789abcdefghijklmnopqrstuvwxyz"


@dataclasses.dataclass
class Resize:
    width: int
    mode: str = "fit"


class Crop(msgspec.Struct):
    left: int
    tags: list[str] = []


class Model:
    """What pydantic's models look like from outside."""

    def __init__(self, value: int) -> None:
        self.value = value

    @classmethod
    def model_validate(cls, config: dict[str, Any]) -> "Model":
        if "value" not in config:
            raise ValueError("value: field required")
        return cls(config["value"])


async def takes_a_dataclass(config: Resize) -> Any:
    return [type(config).__name__, config.width, config.mode]


async def takes_a_struct(config: Crop) -> Any:
    return [type(config).__name__, config.left, config.tags]


def takes_a_model(config: Model, _ctx: Context) -> Any:
    return [type(config).__name__, config.value]


TYPED = [
    (takes_a_dataclass, {"width": 5}, ["Resize", 5, "fit"]),
    (takes_a_struct, {"left": 1, "tags": ["a"]}, ["Crop", 1, ["a"]]),
    (takes_a_model, {"value": 3}, ["Model", 3]),
]


@pytest.mark.parametrize(("handler", "config", "expected"), TYPED)
def test_a_config_is_read_into_the_type_that_the_handler_asks_for(
    handler: Any, config: Any, expected: Any
) -> None:
    assert output_of(outcome_of(handler, config)) == expected


@pytest.mark.parametrize("handler", [handler for handler, _, _ in TYPED])
def test_a_config_that_does_not_fit_fails_the_node_for_good_and_says_why(handler: Any) -> None:
    event = outcome_of(handler, {"unexpected": 1})
    assert error_of(event).category == "config"
    assert event.error.message.startswith("the config doesn't fit ")
    assert not event.retryable


async def tells_its_context(_config: Any, ctx: Context) -> Any:
    names = (
        "execution_id",
        "node_id",
        "attempt",
        "idempotency_key",
        "deadline",
        "workflow",
        "cancelled",
    )
    return {**{name: getattr(ctx, name) for name in names}, "inputs": dict(ctx.inputs)}


def test_a_handler_is_told_what_it_works_for() -> None:
    inputs = [("a", b'{"x":[1]}'), ("b", b"null")]
    before = time.time()
    event = outcome_of(
        tells_its_context, attempt=3, idempotency_key="first:n", timeout_seconds=60.0, inputs=inputs
    )
    output = output_of(event)
    deadline = output.pop("deadline")
    assert output == {
        "execution_id": EXECUTION,
        "node_id": "n1",
        "attempt": 3,
        "idempotency_key": "first:n",
        "workflow": "report",
        "cancelled": False,
        "inputs": {"a": {"x": [1]}, "b": None},
    }
    assert before + 60 <= deadline <= time.time() + 60
    assert deadline == pytest.approx(event.started_at + 60)


def test_large_inputs_and_configs_are_fetched_before_the_handler_runs() -> None:
    async def sees(config: Any, ctx: Context) -> Any:
        return [config["text"], ctx.inputs["big"]]

    async def scenario() -> None:
        async with WorkerHarness(sees) as harness:
            config, large = [
                await harness.stores.blobs.put(text) for text in (b'{"text":"c"}', b'"i"')
            ]
            assert output_of(await harness.run("sees", config, inputs=[("big", large)])) == [
                "c",
                "i",
            ]

    asyncio.run(scenario())


def test_a_config_that_is_gone_fails_the_attempt() -> None:
    event = outcome_of(idle, Blob("abcdef", 1))
    assert "abcdef" in error_of(event).message


def test_what_a_handler_logs_is_kept_with_its_attempt() -> None:
    async def logs(_config: Any, ctx: Context) -> None:
        ctx.log.info("from the %s", "context")
        logging.getLogger("my.module").error("from logging é")
        ctx.heartbeat({"done": 3})
        ctx.log.debug("too fine")

    text = outcome_of(logs).logs
    assert "INFO from the context" in text
    assert "ERROR from logging é" in text
    assert 'heartbeat {"done":3}' in text
    assert "too fine" not in text


def test_a_failed_attempt_keeps_its_log() -> None:
    def logs_and_fails(_config: Any, ctx: Context) -> None:
        ctx.log.warning("about to fail")
        raise ValueError("x")

    event = outcome_of(logs_and_fails)
    assert isinstance(event, TaskFailed)
    assert "WARNING about to fail" in event.logs


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_logs_of_attempts_that_run_at_the_same_time_do_not_mix(kind: str) -> None:
    together = threading.Barrier(4)

    async def logs_async(config: Any, ctx: Context) -> None:
        for line in range(5):
            ctx.log.info("%s %d", ctx.node_id, line)
            await let_others_run(2)

    def logs_sync(config: Any, ctx: Context) -> None:
        together.wait(20)
        for line in range(5):
            ctx.log.info("%s %d", ctx.node_id, line)

    async def scenario() -> None:
        async with WorkerHarness(logs_async, logs_sync) as harness:
            for task in await harness.give_all([f"logs_{kind}"] * 4):
                lines = (await harness.outcome(task)).logs.splitlines()
                assert [line.split()[-2:] for line in lines] == [
                    [task.node_id, str(n)] for n in range(5)
                ]

    asyncio.run(scenario())


@pytest.mark.parametrize("letter", ["x", "é", "🦀"])
def test_a_log_is_bounded_in_bytes_and_says_what_was_dropped(letter: str) -> None:
    async def logs(_config: Any, ctx: Context) -> None:
        for _ in range(100):
            ctx.log.info(letter * 100)

    async def scenario() -> Any:
        async with WorkerHarness(logs, log_max_bytes=4000) as harness:
            return await harness.run("logs")

    text = asyncio.run(scenario()).logs
    assert 3000 < len(text.encode()) < 4100
    assert text.endswith("more lines dropped: the log is full)")


def test_a_log_with_half_a_character_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own can't take it

    async def logs(_config: Any, ctx: Context) -> str:
        ctx.log.info("half \ud800")
        return "fine"

    event = outcome_of(logs)
    assert output_of(event) == "fine"
    assert "half" in event.logs


def test_a_log_call_with_the_wrong_arguments_fails_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own would raise

    async def logs(_config: Any, ctx: Context) -> str:
        ctx.log.info("%d files", "three")
        return "fine"

    assert output_of(outcome_of(logs)) == "fine"


def test_a_large_output_is_a_blob_that_is_there_before_it_is_reported() -> None:
    async def large() -> str:
        return "x" * 1000

    seen: list[bytes] = []

    class Watched(MemoryStores):
        def __init__(self) -> None:
            super().__init__(time.time)
            report = self.queue.report

            async def watch(worker_id: str, events: Any) -> None:
                seen.extend([await self.blobs.get(event.output) for event in events])
                await report(worker_id, events)

            self.queue.report = watch  # type: ignore[method-assign]

    async def scenario() -> None:
        async with WorkerHarness(large, stores=Watched(), inline_max_bytes=500) as harness:
            event = await harness.run("large")
            assert isinstance(event.output, Blob)
            assert event.output.size == 1002
            assert seen == [b'"' + b"x" * 1000 + b'"']

    asyncio.run(scenario())


@pytest.mark.parametrize(("limit", "fits"), [(1002, True), (1001, False)])
def test_an_output_over_the_limit_fails_the_node_for_good(limit: int, fits: bool) -> None:  # noqa: FBT001
    async def large() -> str:
        return "x" * 1000

    async def scenario() -> Any:
        async with WorkerHarness(large, output_max_bytes=limit) as harness:
            return await harness.run("large")

    event = asyncio.run(scenario())
    if fits:
        assert output_of(event) == "x" * 1000
    else:
        assert error_of(event).category == "too_large"
        assert "1,002 bytes; the limit is 1,001" in event.error.message
        assert not event.retryable


def test_an_outcome_waits_for_a_blob_store_that_is_away() -> None:
    calls = []

    async def large() -> str:
        calls.append(1)
        return "x" * 1000

    class Away(MemoryStores):
        def __init__(self) -> None:
            super().__init__(time.time)
            put = self.blobs.put
            left = iter(range(2))

            async def fails_twice(data: bytes) -> Blob:
                if next(left, None) is not None:
                    raise StoreUnavailable("no room")
                return await put(data)

            self.blobs.put = fails_twice  # type: ignore[method-assign]

    async def scenario() -> None:
        async with WorkerHarness(large, stores=Away(), inline_max_bytes=500) as harness:
            assert isinstance((await harness.run("large")).output, Blob)

    asyncio.run(scenario())
    assert calls == [1]


def _secret(*path: str | int, before: str = "", after: str = "") -> SecretText:
    return SecretText(path, (before, "TOKEN", after))


def test_secrets_are_filled_in_where_the_config_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", CANARY)
    seen: list[Any] = []

    async def sees(config: Any) -> None:
        seen.append(config)

    secrets = (_secret("headers", "auth", before="Bearer "), _secret("list", 1, after="!"))
    outcome_of(sees, {"headers": {"auth": None}, "list": [1, None], "x": 1}, secrets=secrets)
    assert seen == [{"headers": {"auth": f"Bearer {CANARY}"}, "list": [1, f"{CANARY}!"], "x": 1}]


async def leaks_in_output(config: Any) -> Any:
    return {"deep": [f"the token is {config['token']}", {config["token"]: 1}]}


async def leaks_in_log(config: Any, ctx: Context) -> None:
    ctx.log.info("the token is %s", config["token"])
    ctx.heartbeat(config)


async def leaks_in_error(config: Any) -> None:
    token = config["token"]
    raise ValueError(f"bad token {token}")


async def leaks_in_detail(config: Any) -> None:
    raise Terminal(f"bad {config['token']}", detail={"sent": config})


def leaks_from_a_thread(config: Any) -> None:
    raise ValueError(f"bad token {config['token']}")


async def leaks_where_the_text_is_cut(config: Any) -> None:
    raise ValueError("x" * 3980 + config["token"] + "y" * 7990)


async def leaks_in_a_value_that_is_no_json(config: Any) -> Any:
    return {config["token"]: {"inner": object()}, (config["token"],): 1}


async def leaks_in_a_timed_out_log(config: Any, ctx: Context) -> None:
    ctx.log.info("the token is %s", config["token"])
    await asyncio.Event().wait()


LEAKS = [
    leaks_in_output,
    leaks_in_log,
    leaks_in_error,
    leaks_in_detail,
    leaks_from_a_thread,
    leaks_where_the_text_is_cut,
    leaks_in_a_value_that_is_no_json,
    leaks_in_a_timed_out_log,
]


@pytest.mark.parametrize("handler", LEAKS)
def test_no_secret_is_in_what_is_reported(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", CANARY)
    event = outcome_of(handler, {"token": None}, secrets=(_secret("token"),), timeout_seconds=0.05)
    reported = str(msgspec.to_builtins(event)) + str(getattr(event, "output", b""))
    pieces = [CANARY[at : at + 8] for at in range(len(CANARY) - 7)]
    assert [piece for piece in pieces if piece in reported] == []
    if handler is not leaks_in_a_value_that_is_no_json:
        assert "***" in reported


def test_a_secret_that_is_missing_fails_the_node_for_good_and_says_where_to_put_it() -> None:
    event = outcome_of(idle, {"token": None}, secrets=(_secret("token"),))
    assert error_of(event).category == "secret"
    assert "PENSTOCK_SECRET_TOKEN" in event.error.message
    assert not event.retryable


def test_a_secret_is_read_anew_for_every_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def sees(config: Any) -> None:
        seen.append(config["token"])

    async def scenario() -> None:
        async with WorkerHarness(sees) as harness:
            for value in ("first-value", "second-value"):
                monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", value)
                await harness.run("sees", {"token": None}, secrets=(_secret("token"),))

    asyncio.run(scenario())
    assert seen == ["first-value", "second-value"]


def test_what_a_handler_changes_in_its_config_stays_with_its_attempt() -> None:
    async def changes(config: Any) -> Any:
        config["list"].append(1)
        return config["list"]

    async def scenario() -> None:
        async with WorkerHarness(changes) as harness:
            for _ in range(2):
                assert output_of(await harness.run("changes", {"list": []})) == [1]
            await until(lambda: harness.worker.attempts == 2)

    asyncio.run(scenario())
