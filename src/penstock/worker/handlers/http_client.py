"""The HTTP client: sends requests to addresses that the policy has checked.

It follows redirects itself, so that each target is checked. It is imported on first use: importing
aiohttp takes 0.3 s, and most commands never call anything.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from penstock.engine.reasons import ErrorCategory
from penstock.errors import HandlerError, Retryable, Terminal
from penstock.telemetry.traces import HEADER, outgoing
from penstock.worker.handlers.addresses import SCHEMES, AddressPolicy, literal
from penstock.worker.handlers.http_exchange import Request, Response, shown_url
from penstock.worker.secrets import SecretInUse

CONNECT_SECONDS = 30.0
REDIRECTS_MAX = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
FAILED_BODY_BYTES = 64 * 1024
# Headers that go along to another host. All others stay with the host that they were written for: a
# key may be in `Authorization`, in `Cookie`, in `X-Api-Key`.
CARRIED_ACROSS_HOSTS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-type",
        "idempotency-key",
        "traceparent",
        "user-agent",
    }
)

BODY_HEADERS = frozenset(
    {"content-type", "content-language", "content-encoding", "idempotency-key"}
)
"""Headers that make no sense without the body that they came with."""

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\.?$){_LABEL}(\.{_LABEL})*\.?", re.IGNORECASE)


class CheckedResolver(AbstractResolver):
    """The resolver that decides where connections go.

    aiohttp doesn't ask it about hosts that are addresses: `_target` checks those.
    """

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        endpoints = await self._policy.resolve(host, port)
        numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        results = []
        for kind, address in endpoints:
            if family in {socket.AF_UNSPEC, kind}:
                result = ResolveResult(
                    hostname=host,
                    host=address[0],
                    port=address[1],
                    family=kind,
                    proto=0,
                    flags=numeric,
                )
                results.append(result)
        if not results:
            raise OSError(None, "the name has no address")
        return results

    async def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One request of a chain of redirects."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None

    def redirected(self, status: int, target: URL, secrets: Sequence[SecretInUse] = ()) -> Hop:
        """The next request of the chain.

        A header that has a secret in it stays with the host that it was written for.
        """
        method = self.method
        headers = self.headers
        body = self.body
        if _becomes_get(status, method):
            method = "GET"
            headers = _without(headers, BODY_HEADERS)
            body = None
        if not _same_site(self.url, target):
            headers = _carried_across_hosts(headers, secrets)
        return Hop(method, target, headers, body)


class HttpClient:
    """One pool of connections under one policy.

    Clients with different policies never share a pool: a connection that one of them may open would
    serve the other.
    """

    def __init__(self, policy: AddressPolicy, *, max_response_bytes: int) -> None:
        self._policy = policy
        self._max_response_bytes = max_response_bytes
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, request: Request) -> Response:
        """The final response, whatever its status.

        Raises `Retryable` if the network fails, and `Terminal` for everything else.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(request.timeout_seconds):
                return await self._follow(request, started)
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            message = f"{request.shown}: {_reason(error, request)}"
            raise Retryable(
                message, category=request.category, detail={"url": shown_url(request.url)}
            ) from None

    async def _follow(self, request: Request, started: float) -> Response:
        url, headers = self._first_target(request)
        hop = Hop(request.method, url, headers, request.body)
        for _ in range(REDIRECTS_MAX + 1):
            outcome = await self._exchange(hop, request, started)
            if isinstance(outcome, Response):
                return outcome
            hop = outcome
        raise self._refused(request, f"more than {REDIRECTS_MAX} redirects")

    async def _exchange(self, hop: Hop, request: Request, started: float) -> Response | Hop:
        async with self._open().request(
            hop.method, hop.url, headers=hop.headers, data=hop.body, allow_redirects=False
        ) as response:
            status = response.status
            location = response.headers.get("Location")
            if status in REDIRECTS and location and status not in request.expect:
                return self._redirected(hop, status, location, request)
            return Response(
                status_code=status,
                headers=_lower_case(response.headers),
                body=await self._read_body(response, request),
                url=shown_url(str(hop.url)),
                content_type=response.content_type if "Content-Type" in response.headers else "",
                charset=response.charset,
                elapsed_ms=round((time.monotonic() - started) * 1000),
            )

    def _redirected(self, hop: Hop, status: int, location: str, request: Request) -> Hop:
        target = self._redirect_target(hop.url, location, request)
        following = hop.redirected(status, target, request.secrets)
        if following.body is not None and not _same_site(hop.url, target):
            raise self._refused(
                request,
                f"answered {status}, a redirect to {str(target.origin())[:200]}, "
                "and a body isn't sent on to another host; "
                "if it should go there, use that address as the url",
            )
        return following

    async def _read_body(self, response: aiohttp.ClientResponse, request: Request) -> bytes:
        """The body of a response, up to the limit.

        What comes out of the decompression counts, so a small body that unpacks to gigabytes is
        stopped too.
        """
        accepted = request.accepts(response.status)
        limit = self._max_response_bytes
        if not accepted:
            limit = min(FAILED_BODY_BYTES, limit)

        parts: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            parts.append(chunk)
            size += len(chunk)
            if size > limit and accepted:
                setting = "PENSTOCK_HTTP_MAX_RESPONSE_BYTES"
                raise self._refused(
                    request, f"response larger than {limit} bytes ({setting} sets the limit)"
                )
            if size > limit:
                break
        return b"".join(parts)[:limit]

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                resolver=CheckedResolver(self._policy), use_dns_cache=False, limit=0
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"penstock/{_version()}"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                trust_env=False,
            )
        return self._session

    def _first_target(self, request: Request) -> tuple[URL, Mapping[str, str]]:
        url = self._parsed(request.url, request)
        headers = dict(request.headers)
        names = {name.lower() for name in headers}
        if url.user is not None and "authorization" not in names:
            credentials = b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        trace = outgoing()
        if trace and HEADER not in names:
            headers[HEADER] = trace
        return self._target(url.extend_query(request.params), request), headers

    def _redirect_target(self, base: URL, location: str, request: Request) -> URL:
        return self._target(base.join(self._parsed(location, request)), request)

    def _parsed(self, text: str, request: Request) -> URL:
        try:
            # yarl drops line breaks and tabs, and would read another URL than the one that was
            # written.
            if not re.search(r"[\x00-\x1f\x7f]", text):
                return URL(text)
        except ValueError:
            pass
        raise self._refused(request, f"'{shown_url(text)[:200]}' isn't a URL")

    def _target(self, url: URL, request: Request) -> URL:
        """The URL to call, without user and password.

        If its host is an address, that is checked and written in its plain form.
        """
        host = url.raw_host or ""
        if url.scheme not in SCHEMES or not host:
            raise self._refused(
                request, f"'{shown_url(str(url))[:200]}' isn't an http or https URL"
            )

        address = literal(host)
        if address is not None:
            self._policy.check(address, host)
            host = str(address)
        elif not _NAME.fullmatch(host):
            raise self._refused(request, f"'{host[:80]}' isn't a host name")

        for secret in request.secrets:
            if not secret.may_go_to(host):
                reason = f"the secret '{secret.name}' may not be sent to '{host[:80]}'"
                raise Terminal(
                    f"{request.shown}: {reason} (hosts of [secrets.{secret.name}])",
                    category=ErrorCategory.SECRET,
                )
        return url.with_user(None).with_host(host).with_fragment(None)

    def _refused(self, request: Request, reason: str) -> HandlerError:
        detail = {"url": shown_url(request.url)}
        return Terminal(f"{request.shown}: {reason}", category=request.category, detail=detail)


def _becomes_get(status: int, method: str) -> bool:
    """Whether a redirect is followed with GET, without the body."""
    if status == 303:  # noqa: PLR2004 -- See Other
        return method != "HEAD"
    return status in {301, 302} and method == "POST"


def _same_site(old: URL, new: URL) -> bool:
    """Whether two URLs have the same origin, or the second is the first's with https."""
    if old.host != new.host:
        return False
    if old.origin() == new.origin():
        return True
    is_upgrade = old.scheme == "http" and new.scheme == "https"
    return is_upgrade and old.is_default_port() and new.is_default_port()


def _without(headers: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def _carried_across_hosts(
    headers: Mapping[str, str], secrets: Sequence[SecretInUse]
) -> dict[str, str]:
    """The headers that may go to another host: none that has a secret in it."""
    carried = {}
    for name, value in headers.items():
        has_secret = any(secret.value in value for secret in secrets)
        if name.lower() in CARRIED_ACROSS_HOSTS and not has_secret:
            carried[name] = value
    return carried


def _lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with lower-case names, repeated ones joined: so a reference has one spelling."""
    joined: dict[str, str] = {}
    for name, raw in headers.items():
        value = raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def _reason(error: Exception, request: Request) -> str:  # noqa: PLR0911 -- a table
    """What happened, in words that never quote a URL: aiohttp's own texts do."""
    match error:
        case aiohttp.ServerTimeoutError():
            return f"no connection within {CONNECT_SECONDS:g} s"
        case TimeoutError():
            limit = request.timeout_seconds
            return f"no answer within {limit:g} s" if limit else "no answer in time"
        case aiohttp.ClientConnectorDNSError():
            return f"the name '{error.host}' can't be resolved: {error.strerror or error.os_error}"
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of '{error.host}' isn't trusted: {error.certificate_error}"
        case aiohttp.ClientConnectorError():
            reason = error.strerror or error.os_error
            return f"no connection to '{error.host}' port {error.port}: {reason}"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "the server closed the connection"
        case _:
            return f"the answer can't be read ({type(error).__name__})"


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "0"
