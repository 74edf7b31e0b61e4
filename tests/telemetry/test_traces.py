"""Traces: the request's trace id reaches the outgoing call.

With spans in between, if there is a collector.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer

from penstock.config import Settings
from penstock.definition.config import SecretText
from penstock.errors import SettingsError, Terminal
from penstock.runtime import Engine
from penstock.runtime import engine as embedded
from penstock.service.submissions import StartRequest
from penstock.stores.sqlite import SqliteStores
from penstock.telemetry import traces
from penstock.worker.context import Context
from penstock.worker.handlers.http import HttpHandler
from penstock.worker.registry import Handler, Registry
from penstock.worker.runtime import Worker
from tests.contract.worker_harness import EXECUTION, WorkerHarness
from tests.worker.servers import Server, always, redirects, serving

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"
CALL = "call_external_service"


class Collected:
    """Spans that have ended, and the tracer that makes them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("test")

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def only(self) -> ReadableSpan:
        (span,) = self.spans
        return span


def ids(span: ReadableSpan) -> tuple[str, str, str | None]:
    """Trace, span, parent."""
    context = span.get_span_context()
    assert context is not None
    return (
        f"{context.trace_id:032x}",
        f"{context.span_id:016x}",
        f"{span.parent.span_id:016x}" if span.parent else None,
    )


class Traced(WorkerHarness):
    def __init__(self, tracer: Tracer | None, *handlers: Any, **settings: Any) -> None:
        super().__init__(*handlers, http_private=True, **settings)
        self.worker._tracer = tracer


def call_traced(tracer: Tracer | None, handler: Any, config: Any = None, **fields: Any) -> Any:
    async def scenario() -> Any:
        traced_handler = (
            handler if isinstance(handler, Handler) else Handler(handler.__name__, handler)
        )
        async with Traced(tracer, traced_handler) as harness:
            return await harness.run(traced_handler.name, config, **fields)

    return asyncio.run(scenario())


def sent_headers(
    tracer: Tracer | None = None, answer: Any = None, trace: str = PARENT, **config: Any
) -> list[Any]:
    """What the server got from a call that was made on behalf of a request with this trace."""

    async def scenario() -> list[Any]:
        async with serving(answer or always(text="ok")) as server:
            handler = Handler(CALL, HttpHandler(Settings(http_private=True)))
            async with Traced(tracer, handler) as harness:
                await harness.run(CALL, {"url": server.url, **config}, trace=trace)
            return [request.headers for request in server.requests]

    return asyncio.run(scenario())


def test_without_an_sdk_the_request_s_context_is_passed_on() -> None:
    (headers,) = sent_headers()
    assert headers["traceparent"] == PARENT


@pytest.mark.parametrize(
    "trace", ["", "not a trace", PARENT + "\r\nX-Forged: 1", PARENT.replace(TRACE_ID, "0" * 32)]
)
def test_without_a_context_no_header_is_sent(trace: str) -> None:
    (headers,) = sent_headers(trace=trace)
    assert "traceparent" not in headers


@pytest.mark.parametrize("name", ["traceparent", "TraceParent"])
def test_a_document_s_own_header_wins(name: str) -> None:
    (headers,) = sent_headers(Collected().tracer, headers={name: "its-own"})
    assert headers.getall("traceparent") == ["its-own"]


def test_the_context_goes_along_with_a_redirect_to_another_host() -> None:
    async def scenario() -> list[Server]:
        async with (
            serving(always(text="arrived")) as second,
            serving(redirects(second.url)) as first,
        ):
            handler = Handler(CALL, HttpHandler(Settings(http_private=True)))
            async with Traced(None, handler) as harness:
                await harness.run(CALL, {"url": first.url}, trace=PARENT)
            return [first, second]

    for server in asyncio.run(scenario()):
        assert [request.headers["traceparent"] for request in server.requests] == [PARENT]


def test_with_an_sdk_the_call_is_below_the_attempt_s_span_and_that_below_the_request() -> None:
    collected = Collected()
    (headers,) = sent_headers(collected.tracer)
    span = collected.only()
    trace, own, parent = ids(span)
    assert (trace, parent) == (TRACE_ID, SPAN_ID)
    assert headers["traceparent"] == f"00-{TRACE_ID}-{own}-01"
    assert (span.name, span.kind) == (CALL, SpanKind.CONSUMER)
    assert dict(span.attributes or {}) == {
        "penstock.execution_id": EXECUTION,
        "penstock.node_id": "n1",
        "penstock.attempt": 1,
        "penstock.workflow": "report",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_an_execution_has_one_trace_from_its_request_to_its_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = Collected()
    monkeypatch.setattr(
        embedded,
        "Worker",
        lambda *arguments, **options: Worker(*arguments, **options, tracer=collected.tracer),
    )

    async def scenario() -> list[web.Request]:
        async with serving(always(text="ok")) as server:
            settings = Settings(http_private=True)
            async with Engine(
                SqliteStores(tmp_path / "store.db"), settings=settings, registry=Registry()
            ) as engine:
                call = {"handler": CALL, "config": {"url": server.url}}
                nodes = [
                    {"id": "a", **call},
                    {"id": "b", **call, "dependencies": ["a"]},
                    {"id": "in", "handler": "input"},
                ]
                with traces.request_span(collected.tracer, "POST /executions", PARENT) as trace:
                    start_request = StartRequest(
                        workflow={"name": "w", "nodes": nodes}, trace=trace
                    )
                    submitted = await engine.service.submissions.submit(start_request)
                await engine.execution(submitted.execution_id).result()
            return server.requests

    sent = [request.headers["traceparent"] for request in asyncio.run(scenario())]
    request, first, second = collected.spans
    _, request_id, parent = ids(request)
    assert (request.kind, parent) == (SpanKind.SERVER, SPAN_ID)
    assert [ids(span)[2] for span in (first, second)] == [request_id, request_id]
    assert [(span.attributes or {})["penstock.node_id"] for span in (first, second)] == ["a", "b"]
    assert {ids(span)[0] for span in collected.spans} == {TRACE_ID}
    assert sent == [f"00-{TRACE_ID}-{ids(span)[1]}-01" for span in (first, second)]


def test_the_span_is_current_for_whatever_the_handler_does() -> None:
    collected = Collected()

    async def opens() -> None:
        with collected.tracer.start_as_current_span("inner"):
            await asyncio.to_thread(collected.tracer.start_span("in a thread").end)

    def opens_in_a_thread() -> None:
        collected.tracer.start_span("inner").end()

    call_traced(collected.tracer, opens, trace=PARENT)
    thread, inner, attempt = collected.spans
    assert (ids(inner)[2], ids(thread)[2]) == (ids(attempt)[1], ids(inner)[1])
    call_traced(collected.tracer, opens_in_a_thread)
    *_, inner, attempt = collected.spans
    assert (ids(inner)[2], ids(attempt)[2]) == (ids(attempt)[1], None)
    assert ids(attempt)[0] != TRACE_ID


def test_attempts_at_the_same_time_do_not_mix_their_spans() -> None:
    collected = Collected()
    together = asyncio.Barrier(5)

    async def opens(_config: Any, ctx: Context) -> None:
        await together.wait()
        collected.tracer.start_span(ctx.node_id).end()

    async def scenario() -> None:
        async with Traced(collected.tracer, opens) as harness:
            for task in await harness.give_all(["opens"] * 5):
                await harness.outcome(task)

    asyncio.run(scenario())
    attempts = {
        ids(span)[1]: (span.attributes or {})["penstock.node_id"]
        for span in collected.spans
        if span.attributes
    }
    inner = [span for span in collected.spans if not span.attributes]
    assert len(inner) == len(attempts) == 5
    assert all(attempts[ids(span)[2] or ""] == span.name for span in inner)


def test_a_failure_is_on_the_span_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SECRET_TOKEN", "canary-5f2a")
    collected = Collected()

    async def leaks(config: dict[str, str]) -> None:
        raise ValueError(f"the token is {config['token']}")

    secrets = (SecretText(("token",), ("", "TOKEN")),)
    call_traced(collected.tracer, leaks, {"token": ""}, secrets=secrets, attempt=3)
    span = collected.only()
    (event,) = span.events
    attributes = dict(event.attributes or {})
    assert (event.name, attributes["exception.type"]) == ("exception", "ValueError")
    assert attributes["exception.message"] == "ValueError: the token is ***"
    assert "in leaks" in str(attributes["exception.stacktrace"])
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        "ValueError: the token is ***",
    )
    assert (span.attributes or {})["penstock.attempt"] == 3
    assert "canary" not in span.to_json()


def test_a_refusal_and_a_timeout_have_their_category() -> None:
    collected = Collected()

    async def refuses() -> None:
        raise Terminal("no such user", category="lookup")

    async def hangs() -> None:
        await asyncio.Event().wait()

    call_traced(collected.tracer, refuses)
    call_traced(collected.tracer, hangs, timeout_seconds=0.02)
    refused, late = collected.spans
    assert (refused.attributes or {})["penstock.error.category"] == "lookup"
    assert refused.status.description == "no such user"
    assert (late.attributes or {})["penstock.error.category"] == "timeout"


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (PARENT, PARENT),
        (f" {PARENT} ", PARENT),
        (f"cc-{TRACE_ID}-{SPAN_ID}-01-what-the-future-is", PARENT),
        (None, ""),
        ("", ""),
        (PARENT + "-more", ""),
        (PARENT.upper(), ""),
        (PARENT[:-1], ""),
        (PARENT.replace("00-", "ff-", 1), ""),
        (PARENT.replace(SPAN_ID, "0" * 16), ""),
        (PARENT + "\n", PARENT),
        (PARENT + "\r\nx", ""),
    ],
)
def test_only_a_proper_header_is_kept(header: str | None, accepted: str) -> None:
    assert traces.incoming(header) == accepted


def test_an_application_s_current_span_is_the_parent_of_what_it_starts() -> None:
    collected = Collected()
    with collected.tracer.start_as_current_span("application"):
        accepted = traces.incoming(None)
        with traces.request_span(None, "POST /executions", PARENT) as also_accepted:
            assert also_accepted == accepted
    trace, own, _ = ids(collected.only())
    assert accepted == f"00-{trace}-{own}-01"


def in_a_process(code: str) -> str:
    """Providers are global and can be set once: each case has a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_process_without_tracing_does_not_even_import_it() -> None:
    code = """
import sys, penstock
from penstock.telemetry import traces
heavy = {"opentelemetry", "structlog", "prometheus_client"}
imported = {name.partition(".")[0] for name in sys.modules}
print(traces.active_tracer(), traces.outgoing() == "", sorted(heavy & imported))
"""
    assert in_a_process(code) == "None True []\n"


def test_the_global_provider_is_used_if_it_is_a_real_one() -> None:
    code = """
from opentelemetry import trace
from penstock.telemetry import traces
print(traces.active_tracer())
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
print(type(traces.active_tracer()).__module__)
"""
    assert in_a_process(code) == "None\nopentelemetry.sdk.trace\n"


def test_tracing_that_is_asked_for_sends_spans() -> None:
    code = """
import sys, types
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
made = InMemorySpanExporter()
module = types.ModuleType("exporter")
module.OTLPSpanExporter = lambda: made
from penstock.config import Settings
from penstock.telemetry import traces
sys.modules[traces._EXPORTER] = module
traces.configure_tracing(Settings())
print(traces.active_tracer())
traces.configure_tracing(Settings(tracing=True))
with traces.request_span(traces.active_tracer(), "POST /executions", None):
    pass
from opentelemetry import trace
trace.get_tracer_provider().shutdown()
print([(span.name, span.resource.attributes["service.name"]) for span in made.get_finished_spans()])
"""
    assert in_a_process(code) == "None\n[('POST /executions', 'penstock')]\n"


def test_tracing_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, traces._EXPORTER, None)
    with pytest.raises(SettingsError, match=r"pip install 'penstock\[otel\]'"):
        traces.configure_tracing(Settings(tracing=True))
