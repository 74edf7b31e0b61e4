"""Large responses, outputs and documents.

They are read, resolved and compiled without blocking the event loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from penstock.config import Settings
from penstock.errors import Terminal
from penstock.runtime import Engine
from penstock.sandbox import SandboxPool, sandbox_of
from penstock.worker.handlers.http import HttpHandler
from penstock.worker.handlers.llm import LlmHandler
from penstock.worker.registry import Handler, Registry
from tests.hostile.watching import watched_loop
from tests.worker.servers import always, context, serving

MIB = 1024 * 1024
JSON = "application/json"
BLOCKED_SECONDS_MAX = 0.25  # without the sandbox it is seconds; 0.1 s is what a quiet machine shows
SMALL_VALUES = b"[" + b"[]," * 3_000_000 + b"[]]"
"""9 MB that a JSON decoder takes 0.7 s for."""


async def fetched(body: bytes, settings: Settings, content_type: str = JSON) -> Any:
    async with serving(always(body=body, content_type=content_type)) as server:
        handler = HttpHandler(settings)
        try:
            async with watched_loop() as watch:
                output = await handler({"url": f"{server.url}/"}, context())
            assert watch.blocked_seconds < BLOCKED_SECONDS_MAX
            return output
        finally:
            await handler.close()


def test_a_large_json_answer_is_read_beside_the_loop():
    output = asyncio.run(fetched(SMALL_VALUES, Settings(http_private=True)))
    assert isinstance(output, msgspec.Raw)
    assert bytes(output).count(b"[]") == 3_000_001
    head = msgspec.json.decode(output, type=dict[str, msgspec.Raw])
    assert head.keys() == {"status_code", "headers", "data", "url", "elapsed_ms"}


@pytest.mark.parametrize(
    ("body", "content_type", "data"),
    [
        (b'{"broken": ' + b" " * MIB, JSON, '{"broken": ' + " " * MIB),
        (b"[NaN" + b" " * MIB + b"]", JSON, "[NaN" + " " * MIB + "]"),
        (b"\xef\xbb\xbf[1" + b" " * MIB + b"]", JSON, [1]),
        (b"t" * MIB, "text/plain", "t" * MIB),
    ],
)
def test_a_large_answer_means_what_a_small_one_means(body: bytes, content_type: str, data: Any):
    output = asyncio.run(fetched(body, Settings(http_private=True), content_type))
    assert msgspec.json.decode(output)["data"] == data


def test_an_answer_that_needs_too_much_memory_fails_its_own_node():
    settings = Settings(http_private=True, expression_memory_bytes=16 * MIB)
    with pytest.raises(
        Terminal,
        match="the answer has 9,000,004 bytes and can't be read: it needed more than 16 MiB",
    ):
        asyncio.run(fetched(SMALL_VALUES, settings))


def test_a_large_answer_of_a_model_is_read_beside_the_loop():
    junk = msgspec.Raw(b"[" + b"1," * 2_000_000 + b"1]")
    answer = {"choices": [{"message": {"content": "yes"}}], "junk": junk}

    async def work() -> Any:
        async with serving(always(body=msgspec.json.encode(answer), content_type=JSON)) as server:
            provider = Settings.load(
                environ={"PENSTOCK_LLM_BASE_URL": server.url, "PENSTOCK_HTTP_PRIVATE": "1"}
            )
            http = HttpHandler(provider)
            handler = LlmHandler(provider, http)
            try:
                async with watched_loop() as watch:
                    output = await handler({"prompt": "?", "model": "m"}, context())
                assert watch.blocked_seconds < BLOCKED_SECONDS_MAX
                return msgspec.json.decode(output)
            finally:
                await handler.close()
                await http.close()

    assert asyncio.run(work())["response"] == "yes"


def registry(output: Any) -> Registry:
    async def give(config: dict[str, Any]) -> Any:
        return output

    return Registry([Handler("give", give)])


def test_secrets_are_taken_out_of_a_large_output_beside_the_loop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", "canary-canary")
    text = msgspec.json.encode({"list": [["canary-canary", 1]] * 200_000})
    nodes = [{"id": "a", "handler": "give", "config": {"token": "{{ secrets.TOKEN }}"}}]

    async def work() -> None:
        handlers = registry(msgspec.Raw(text))
        async with (
            Engine("memory://", settings=Settings(), registry=handlers) as engine,
            watched_loop() as watch,
        ):
            result = await (await engine.start({"name": "large", "nodes": nodes})).result()
            assert watch.blocked_seconds < BLOCKED_SECONDS_MAX
            assert result.outputs["a"] == {"list": [["***", 1]] * 200_000}

    asyncio.run(work())


@pytest.mark.parametrize(("handler", "config"), [("echo", {"x": "{{ secrets.TOKEN }}"})])
def test_a_stored_document_with_a_secret_where_it_is_shown_is_refused_at_run_time(
    handler: str, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", "canary-canary")
    document = {"name": "old", "nodes": [{"id": "a", "handler": handler, "config": config}]}

    async def work() -> None:
        async with Engine("memory://", settings=Settings()) as engine:
            now = time.time()
            await engine.stores.cold.definitions.put_workflow(
                "old", "hash", msgspec.json.encode(document), now
            )
            result = await (await engine.start("old")).result()
            assert result.error is not None
            assert result.error["category"] == "secret"
            assert "canary" not in str(result.view)

    asyncio.run(work())


def test_a_large_document_of_conditions_delays_nobody():
    condition = (
        "input.a == '" + "x" * 3500 + "' || " + " || ".join(f"input.b == {i}" for i in range(20))
    )
    nodes = [
        {"id": f"n{i}", "handler": "noop", "condition": f"{condition} || input.c == {i}"}
        for i in range(300)
    ]
    large = {"name": "large", "nodes": nodes}
    small = {"name": "small", "nodes": [{"id": "a", "handler": "noop"}]}

    async def work() -> None:
        async with Engine("memory://", settings=Settings()) as engine, watched_loop() as watch:
            compiling = asyncio.create_task(engine.plan_for(large))
            await asyncio.sleep(0)
            await engine.plan_for(small)
            assert not compiling.done(), "a document that is new too waited for it"
            await compiling
            assert watch.blocked_seconds < BLOCKED_SECONDS_MAX

    asyncio.run(work())


def test_values_out_of_60_mb_of_outputs_are_looked_up_beside_the_loop():
    text = (
        b'{"n":7,"rows":['
        + b'{"a":1,"b":"xxxxxxxxxxxxxxxxxxxx"},' * 600_000
        + b'{"a":2,"b":""}],"rest":"'
        + b"x" * (30 * MIB)
        + b'"}'
    )
    nodes = [
        {"id": "a", "handler": "give"},
        {
            "id": "b",
            "handler": "noop",
            "dependencies": ["a"],
            "condition": "a.n == 7",
            "config": {"x": "{{ a.n }}"},
        },
        {
            "id": "c",
            "handler": "decision",
            "dependencies": ["a", "b"],
            "config": {"value_a": "{{ a.rows[600000].a }}", "operator": "==", "value_b": 2},
        },
        {
            "id": "d",
            "handler": "output",
            "dependencies": ["c"],
            "config": {"n": "{{ a.n }}", "is": "{{ c.result }}"},
        },
    ]

    async def work() -> None:
        settings = Settings(output_max_bytes=128 * MIB)
        async with Engine(
            "memory://", settings=settings, registry=registry(msgspec.Raw(text))
        ) as engine:
            async with watched_loop() as watch:
                handle = await engine.start({"name": "large", "nodes": nodes})
                async for _ in handle.events():
                    pass
            result = await handle.result()
            assert result.output == {"n": 7, "is": True}, result.error
            # copies of 50 MB, here and there
            assert watch.blocked_seconds < 2 * BLOCKED_SECONDS_MAX

    asyncio.run(work())


def test_the_limits_are_settings():
    assert isinstance(sandbox_of(Settings()), SandboxPool)
    settings = Settings.load(
        environ={"PENSTOCK_EXPRESSION_SECONDS": "0.5", "PENSTOCK_EXPRESSION_MEMORY_BYTES": "64 MiB"}
    )
    assert (settings.expression_seconds, settings.expression_memory_bytes) == (0.5, 64 * MIB)
