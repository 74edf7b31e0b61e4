"""Trace context, from the request that starts an execution to the calls that its handlers make.

An execution keeps the W3C `traceparent` of its request, and each of its tasks carries it. Without
an OpenTelemetry SDK it is passed on as it came. With one, each attempt is a span below the
request's, current while the handler runs, so that whatever the handler's libraries record hangs
below it.

The SDK is the application's: Penstock uses the global provider if there is a real one.
`configure_tracing` sets one up for processes that are ours alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.config import Settings
from penstock.errors import SettingsError
from penstock.telemetry.scope import Scope, current_scope

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

HEADER = "traceparent"
_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(-.*)?"
)
_SAMPLED = 0x01
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def checked(traceparent: str | None) -> str:
    """The `traceparent` header if it is valid, else nothing.

    A bad one must not travel on, and is no reason to refuse a request. Later versions of the header
    may have more fields behind those that we know.
    """
    match = _PARENT.fullmatch((traceparent or "").strip())
    if match is None:
        return ""
    is_version_0 = match[0].startswith("00")
    if is_version_0 and match[2]:
        return ""
    return f"00-{match[1]}"


def trace_id(traceparent: str) -> str:
    return checked(traceparent)[3:35]


def outgoing() -> str:
    """The `traceparent` for an outgoing call: of the current span, else of the execution."""
    scope = current_scope.get()
    return _of_current_span() or checked(scope.trace if scope is not None else "")


def incoming(header: str | None) -> str:
    """The `traceparent` of an execution that is started now: of the current span, else `header`."""
    return _of_current_span() or checked(header)


def active_tracer() -> Tracer | None:
    """Penstock's tracer at the global provider, if somebody collects spans.

    Called once per process: without a tracer, spans cost nothing at all.
    """
    # if it isn't imported, nobody has set a provider, and 40 ms are saved
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace  # noqa: PLC0415

    tracer = trace.get_tracer("penstock")
    return None if isinstance(tracer, (trace.ProxyTracer, trace.NoOpTracer)) else tracer


@contextmanager
def request_span(tracer: Tracer | None, name: str, header: str | None) -> Iterator[str]:
    """A span around a request; yields the `traceparent` of executions that it starts."""
    if tracer is None:
        yield incoming(header)
        return
    from opentelemetry.trace import SpanKind  # noqa: PLC0415

    with tracer.start_as_current_span(name, context=_parent(checked(header)), kind=SpanKind.SERVER):
        yield _of_current_span()


@contextmanager
def attempt_span(tracer: Tracer, name: str, scope: Scope) -> Iterator[Span]:
    """A span that is current while a handler runs.

    Errors are for `set_failed`: as they are raised they may hold secrets.
    """
    from opentelemetry.trace import SpanKind  # noqa: PLC0415

    attributes = {
        f"penstock.{mark}": value for mark, value in scope.marks.items() if mark != "trace_id"
    }
    with tracer.start_as_current_span(
        name,
        context=_parent(checked(scope.trace)),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


def set_failed(
    span: Span, category: str, message: str, *, kind: str | None, stack: str | None
) -> None:
    from opentelemetry.trace import StatusCode  # noqa: PLC0415

    parts = {"type": kind or category, "message": message, "stacktrace": stack}
    attributes = {f"exception.{key}": text for key, text in parts.items() if text}
    span.add_event("exception", attributes)
    span.set_attribute("penstock.error.category", category)
    span.set_status(StatusCode.ERROR, message)


def configure_tracing(settings: Settings) -> None:
    """Send spans to an OTLP collector if `tracing` is on.

    `OTEL_EXPORTER_OTLP_ENDPOINT` and its like say where that is.
    """
    if not settings.tracing:
        return
    from importlib import import_module  # noqa: PLC0415

    try:
        sdk = import_module("opentelemetry.sdk.trace")
        export = import_module("opentelemetry.sdk.trace.export")
        resources = import_module("opentelemetry.sdk.resources")
        exporter = import_module(_EXPORTER)
    except ImportError:
        raise SettingsError(
            "tracing is on, but there is nothing to send spans with: pip install 'penstock[otel]'"
        ) from None
    from opentelemetry import trace  # noqa: PLC0415

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over this name
    named = resources.Resource({"service.name": "penstock"})
    resource = named.merge(resources.OTELResourceDetector().detect())
    provider = sdk.TracerProvider(resource=resource)
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


def _of_current_span() -> str:
    if "opentelemetry.trace" not in sys.modules:
        return ""
    from opentelemetry import trace  # noqa: PLC0415

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    flags = context.trace_flags & _SAMPLED
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"


def _parent(traceparent: str) -> Context | None:
    """The context of a span's parent; None for whatever is current."""
    if not traceparent:
        return None
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415

    headers: Mapping[str, Any] = {HEADER: traceparent}
    return tracecontext.TraceContextTextMapPropagator().extract(headers)
