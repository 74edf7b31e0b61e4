"""HTTP connections with limits on what a client may send before its key is checked.

uvicorn and its parser take any number of headers of any size, and wait forever for the rest of a
request. Here

- the head of a request (its URL and headers) is limited in size and must be complete within
  seconds;
- a body must keep coming, and a client that doesn't read its answer is disconnected;
- connections that wait for a request make room for new ones, the oldest first, so half-sent
  requests can't shut out a health check;
- a request names one host, and its URL no other.

A request that exceeds a limit is answered with a problem document, if an answer can still be sent,
and the connection ends.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from penstock.api.problems import problem_response

KIB = 1024
PORTION_BYTES = 8 * KIB
"""Bytes that the parser is given at once.

It doesn't say where in them a header began, so the size limit is exact up to this number.
"""


DEFAULT_REFUSAL = (400, "invalid_request", "this isn't a request of HTTP/1.1")


class HttpLimits:
    """The limits of HTTP connections; tests have smaller ones."""

    def __init__(  # noqa: PLR0913 -- one for each limit
        self,
        *,
        url_bytes_max: int = 16 * KIB,
        head_bytes_max: int = 64 * KIB,
        headers_max: int = 100,
        head_seconds: float = 10.0,
        body_seconds: float = 20.0,
        body_bytes_min: int = KIB,
        unread_seconds: float = 60.0,
        pipelined_max: int = 16,
        connections_max: int | None = None,
    ) -> None:
        self.url_bytes_max = url_bytes_max
        self.head_bytes_max = head_bytes_max
        self.headers_max = headers_max
        self.head_seconds = head_seconds
        """How long a head may take.

        It counts from the connection, or the first byte of a later request.
        """
        self.body_seconds = body_seconds
        self.body_bytes_min = body_bytes_min
        """Bytes of a body that must come within `body_seconds`, if the application reads them."""
        self.unread_seconds = unread_seconds
        """How long a client may leave its answer unread."""
        self.pipelined_max = pipelined_max
        """Requests that may be sent before the first is answered."""
        self.connections_max = connections_max or connections_of(_open_files_max())


def connections_of(files_max: int) -> int:
    """The limit on connections, given that on open files, of which the stores need some too."""
    reserved = min(256, files_max // 4)
    return max(16, min(10_000, files_max - reserved))


def _open_files_max() -> int:
    try:
        import resource  # noqa: PLC0415 -- there is none on Windows
    except ImportError:
        return 2048
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft


class _Phase(Enum):
    """The part of a request that is being received."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class _Refused(Exception):
    """Raised in a callback of the parser, which then stops."""


class Connections:
    """Connections that a new one may replace, the oldest first."""

    def __init__(self) -> None:
        self.waiting: dict[LimitedProtocol, None] = {}
        """Connections that wait for a request, or for the rest of its head."""
        self.uploading: dict[LimitedProtocol, None] = {}
        """Connections that send a body."""

    def oldest(self) -> LimitedProtocol | None:
        return next(iter(self.waiting or self.uploading), None)

    def forget(self, protocol: LimitedProtocol) -> None:
        self.waiting.pop(protocol, None)
        self.uploading.pop(protocol, None)


class LimitedProtocol(HttpToolsProtocol):
    """A connection of uvicorn with limits."""

    limits: HttpLimits
    replaceable: Connections

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._phase = _Phase.NOTHING
        self._watched = _Phase.NOTHING
        self._timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._unparsed_bytes = 0
        """Bytes received since the parser's last callback.

        The parser collects a header, however long, until its end.
        """
        self._body_bytes = 0
        """Bytes of the body since the timer was set."""
        self._refusal: tuple[int, str, str] | None = None
        self._is_gone = False
        self._is_over = False
        """Nothing more is read: the connection ends after the answers to earlier requests."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections_max:
            oldest = self.replaceable.oldest()
            if oldest is None:
                self._refuse(
                    503, "too_many_connections", "too many connections are open; try again later"
                )
                self.send_400_response("")
                return
            oldest.transport.abort()
            oldest.connection_lost(None)
        self.replaceable.waiting[self] = None
        self._watch(_Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_gone:
            return  # another connection has replaced it already
        self._is_gone = True
        self.replaceable.forget(self)
        self._watch(_Phase.NOTHING)
        self._stop_unread_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_gone or self._is_over or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        try:
            for start in range(0, len(data), PORTION_BYTES):
                self._feed(data[start : start + PORTION_BYTES])
        except (httptools.HttpParserError, _Refused):
            self.send_400_response("")
            return
        except httptools.HttpParserUpgrade:
            # no upgrade is supported: the request is answered as it is
            self.send_400_response("")
            return

        phase = self._phase
        if phase is _Phase.NOTHING and self._is_idle:
            # bytes that begin no request, such as empty lines, don't keep a connection open
            phase = _Phase.HEAD
        self._watch(phase)

    def _feed(self, data: bytes) -> None:
        self._unparsed_bytes += len(data)
        self.parser.feed_data(data)
        if self._unparsed_bytes > self.limits.head_bytes_max:
            self._refuse_head()

    @property
    def _is_idle(self) -> bool:
        """Every request was answered."""
        cycle: RequestResponseCycle | None = self.cycle  # there is none before the first request
        return cycle is None or cycle.response_complete

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = _Phase.HEAD
        self._head_bytes = 0
        self._unparsed_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self.limits.url_bytes_max:
            self._refuse(
                414, "url_too_long", f"the URL has more than {self.limits.url_bytes_max:,} bytes"
            )
            raise _Refused

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is _Phase.BODY:
            self._refuse(
                400, "invalid_request", "headers behind a body aren't read; leave them out"
            )
            raise _Refused
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value)
        self._unparsed_bytes = 0

        too_many = len(self.headers) > self.limits.headers_max
        if too_many or self._head_bytes > self.limits.head_bytes_max:
            self._refuse_head()

    def on_headers_complete(self) -> None:
        self._check_host()
        if len(self.pipeline) >= self.limits.pipelined_max:
            self._refuse(
                400, "invalid_request", "too many requests were sent before the first was answered"
            )
            raise _Refused

        self._phase = _Phase.BODY
        self._unparsed_bytes = 0
        self._body_bytes = 0
        self.replaceable.waiting.pop(self, None)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = _Phase.NOTHING
        self._unparsed_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._phase is not _Phase.BODY and self._is_idle:
            self.replaceable.waiting[self] = None

    def _check_host(self) -> None:
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and self.parser.get_http_version() != "1.0"):
            self._refuse(400, "invalid_request", "a request needs exactly one Host header")
            raise _Refused
        if self.url.startswith(b"/"):
            return

        scheme, _, rest = self.url.partition(b"://")
        authority, slash, _ = rest.partition(b"/")
        if scheme.lower() not in {b"http", b"https"} or not slash:
            self._refuse(400, "invalid_request", "the URL of a request begins with '/'")
            raise _Refused
        if not hosts or authority.lower() != hosts[0].strip().lower():
            self._refuse(421, "foreign_host", "the URL names another host than the Host header")
            raise _Refused

    # Timers.

    def _watch(self, phase: _Phase) -> None:
        """Start the timer of a phase. One that runs for it continues, however many bytes come."""
        if phase is self._watched and (self._timer is not None or phase is _Phase.NOTHING):
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

        self._watched = phase
        self.replaceable.uploading.pop(self, None)
        if phase is _Phase.HEAD:
            self._timer = self.loop.call_later(self.limits.head_seconds, self._head_is_late)
        elif phase is _Phase.BODY:
            self.replaceable.uploading[self] = None
            self._watch_body()

    def _watch_body(self) -> None:
        self._body_bytes = 0
        self._timer = self.loop.call_later(self.limits.body_seconds, self._look_at_body)

    def _head_is_late(self) -> None:
        self._timer = None
        if self._phase is _Phase.HEAD:
            seconds = self.limits.head_seconds
            self._refuse(
                408, "request_timeout", f"the request wasn't complete after {seconds:g} seconds"
            )
            self.send_400_response("")
        elif self._is_idle:
            self.transport.close()

    def _look_at_body(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused or self._body_bytes >= self.limits.body_bytes_min:
            self._watch_body()
            return
        self._refuse(408, "request_timeout", "the body of the request came too slowly")
        self.send_400_response("")

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(
                self.limits.unread_seconds, self.transport.abort
            )

    def resume_writing(self) -> None:
        self._stop_unread_timer()
        super().resume_writing()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    # Refusals.

    def _refuse(self, status: int, code: str, detail: str) -> None:
        self._refusal = status, code, detail

    def _refuse_head(self) -> None:
        number = self.limits.headers_max
        kibibytes = self.limits.head_bytes_max // KIB
        self._refuse(
            431,
            "headers_too_large",
            f"at most {number} headers with {kibibytes} KiB in all are read",
        )
        raise _Refused

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 -- uvicorn's
        """Answer with the refusal and close the connection."""
        self._watch(_Phase.NOTHING)
        if not self._is_idle and self._phase is not _Phase.BODY:
            # earlier requests are answered first
            self.cycle.keep_alive = False
            self._is_over = True
            return
        if self._phase is _Phase.BODY and self.cycle.response_started:
            # the answer began before the request was complete
            self.transport.close()
            return

        status, code, detail = self._refusal or DEFAULT_REFUSAL
        response = problem_response(status, code, detail, headers={"Connection": "close"})
        lines = [STATUS_LINE[status]]
        for name, value in response.raw_headers:
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join([*lines, b"\r\n", bytes(response.body)]))
        self.transport.close()

        if self.cycle is not None:  # the application may wait for a body that won't come
            self.cycle.disconnected = True
            self.cycle.message_event.set()


def limited_protocol(limits: HttpLimits | None = None) -> type[LimitedProtocol]:
    """The protocol class of one server: its connections share the limits."""
    members = {"limits": limits or HttpLimits(), "replaceable": Connections()}
    return type("ServerProtocol", (LimitedProtocol,), members)
