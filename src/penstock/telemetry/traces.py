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
    """The header if it is one, else nothing: a bad one must not travel on, and is no reason to refuse a request.

    Later versions of the header may have more fields behind those that we know.
    """
    found = _PARENT.fullmatch((traceparent or "").strip())
    return f"00-{found[1]}" if found and not (found[2] and found[0].startswith("00")) else ""


def trace_id(traceparent: str) -> str:
    return checked(traceparent)[3:35]


def outgoing() -> str:
    """The `traceparent` for a call that is made now: of the current span, else of the attempt's execution."""
    scope = current_scope.get()
    return _of_current_span() or checked(scope.trace if scope is not None else "")


def incoming(header: str | None) -> str:
    """What an execution that is started now keeps: the current span if there is one, else what the request brought."""
    return _of_current_span() or checked(header)


def active_tracer() -> Tracer | None:
    """Ours at the global provider, if somebody collects spans.

    Asked once: without, spans cost nothing at all.
    """
    if (
        "opentelemetry.trace" not in sys.modules
    ):  # then nobody has set a provider, and 40 ms are saved
        return None
    from opentelemetry import trace  # noqa: PLC0415

    tracer = trace.get_tracer("penstock")
    return None if isinstance(tracer, (trace.ProxyTracer, trace.NoOpTracer)) else tracer


@contextmanager
def request_span(tracer: Tracer | None, name: str, header: str | None) -> Iterator[str]:
    """Around the handling of a request; gives what an execution that it starts keeps."""
    if tracer is None:
        yield incoming(header)
        return
    from opentelemetry.trace import SpanKind  # noqa: PLC0415

    with tracer.start_as_current_span(name, context=_parent(checked(header)), kind=SpanKind.SERVER):
        yield _of_current_span()


@contextmanager
def attempt_span(tracer: Tracer, name: str, scope: Scope) -> Iterator[Span]:
    """Current while a handler runs.

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

    shown = {"type": kind or category, "message": message, "stacktrace": stack}
    span.add_event("exception", {f"exception.{key}": text for key, text in shown.items() if text})
    span.set_attribute("penstock.error.category", category)
    span.set_status(StatusCode.ERROR, message)


def configure_tracing(settings: Settings) -> None:
    """With `tracing` on, spans go to an OTLP collector, which `OTEL_EXPORTER_OTLP_ENDPOINT` and its like describe."""
    if not settings.tracing:
        return
    from importlib import import_module  # noqa: PLC0415

    try:
        sdk, export = (
            import_module("opentelemetry.sdk.trace"),
            import_module("opentelemetry.sdk.trace.export"),
        )
        resources, exporter = import_module("opentelemetry.sdk.resources"), import_module(_EXPORTER)
    except ImportError:
        raise SettingsError(
            "tracing is on, but there is nothing to send spans with: pip install 'penstock[otel]'"
        ) from None
    from opentelemetry import trace  # noqa: PLC0415

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over this name
    resource = resources.Resource({"service.name": "penstock"}).merge(
        resources.OTELResourceDetector().detect()
    )
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
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & _SAMPLED:02x}"


def _parent(traceparent: str) -> Context | None:
    """None: whatever is current."""
    if not traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    headers: Mapping[str, Any] = {HEADER: traceparent}
    return TraceContextTextMapPropagator().extract(headers)
