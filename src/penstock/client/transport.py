"""Calls to a server, with JSON in both directions.

A call is repeated if it only reads, has an idempotency key, or never reached the server. No other
call is: when the answer to a `cancel` is lost, only the caller knows whether to send it again.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
import msgspec
from yarl import URL

from penstock.client.answers import UNAVAILABLE, error_from
from penstock.errors import InvalidInput, RateLimited, RequestFailed, SettingsError, Unreachable

API = "/api/v1"
FIRST_DELAY_SECONDS = 0.1
LAST_DELAY_SECONDS = 2.0
RATE_LIMIT_WAITS = 5
RATE_LIMIT_SECONDS_MAX = 60.0
CONNECTIONS_MAX = 100
SILENCE_SECONDS = 60.0
"""A stream without a heartbeat for this long is dead."""
FAILURES = (aiohttp.ClientError, TimeoutError, ConnectionError)

Query = Mapping[str, Any] | Sequence[tuple[str, Any]]


def path_of(*parts: str | int) -> str:
    """A path of quoted parts, since names may contain anything, also slashes."""
    return "".join("/" + quote(str(part), safe="") for part in parts)


class Request(NamedTuple):
    method: str
    url: URL
    data: bytes | None
    headers: Mapping[str, str]
    read_seconds: float


class Transport:
    """The connections to one server."""

    def __init__(
        self, url: str, api_key: str | None, timeout_seconds: float, retry_seconds: float
    ) -> None:
        self.url = url.rstrip("/")
        parsed = URL(self.url)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise SettingsError(
                f"{url!r} is not the address of a server; write it as http://HOST:PORT"
            )
        self._api_key = api_key
        self.timeout_seconds = timeout_seconds
        self.retry_seconds = retry_seconds
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def call(  # noqa: PLR0913 -- each is a part of a request
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        key: str | None = None,
        wait_seconds: float = 0.0,
        fine: int = 0,
    ) -> Any:
        """Make a call and return the JSON of the answer, or None if it has none.

        `fine` is a status that is not an error here. `path` may be `/health`, which has no prefix.
        """
        data = None if body is None else encode(body)
        headers: dict[str, str] = {}
        if key:
            headers["Idempotency-Key"] = key
        if method in ("POST", "PUT"):
            headers["Content-Type"] = "application/json"
        url = self.address(path, query)
        request = Request(method, url, data, headers, self.timeout_seconds + wait_seconds)

        patience = Patience(self.retry_seconds, repeatable=method == "GET" or key is not None)
        while True:
            try:
                return await self._send(request, fine)
            except (Unreachable, Throttled) as error:
                await patience.wait(error)

    def address(self, path: str, query: Query | None = None) -> URL:
        pairs = query.items() if isinstance(query, Mapping) else query or ()
        query_text = urlencode([(name, _text(value)) for name, value in pairs if value is not None])
        prefix = "" if path.startswith("/health") else API
        address = self.url + prefix + path
        if query_text:
            address += f"?{query_text}"
        return URL(address, encoded=True)

    async def _send(self, request: Request, fine: int) -> Any:
        # The limit is per read, not in total: a call may wait for a free connection first.
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self.timeout_seconds, sock_read=request.read_seconds
        )
        if self._session is None:
            self._session = self._open(CONNECTIONS_MAX)
        try:
            async with self._session.request(
                request.method,
                request.url,
                data=request.data,
                headers=request.headers,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                return self._read(answer, await answer.read(), fine)
        except FAILURES as error:
            raise self._unreachable(error) from error

    @asynccontextmanager
    async def stream(self, path: str, last_id: str | None) -> AsyncIterator[aiohttp.StreamReader]:
        """The bytes of an event stream.

        Streams have connections of their own, so that they never hold back a call.
        """
        headers = {"Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self.timeout_seconds, sock_read=SILENCE_SECONDS
        )
        if self._streams is None:
            self._streams = self._open(0)
        try:
            async with self._streams.get(
                self.address(path), headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                if answer.status != 200:  # noqa: PLR2004
                    self._read(answer, await answer.read())
                yield answer.content
        except FAILURES as error:
            raise self._unreachable(error) from error

    def _open(self, connections: int) -> aiohttp.ClientSession:
        headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        connector = aiohttp.TCPConnector(limit=connections)
        return aiohttp.ClientSession(connector=connector, headers=headers, read_bufsize=2**20)

    def _read(self, answer: aiohttp.ClientResponse, data: bytes, fine: int = 0) -> Any:
        if answer.status >= 300 and answer.status != fine:  # noqa: PLR2004
            raise self._refusal(answer, data)
        try:
            return msgspec.json.decode(data) if data else None
        except msgspec.DecodeError:
            raise self._not_penstock(answer.status) from None

    def _refusal(self, answer: aiohttp.ClientResponse, data: bytes) -> Exception:
        if answer.status < 400:  # noqa: PLR2004
            target = answer.headers.get("Location", "another address")
            message = f"{self.url} redirects to {target}; use that address instead"
            return RequestFailed(message, status=answer.status)

        after = _seconds(answer.headers.get("Retry-After"))
        error = error_from(answer.status, data, after)
        if isinstance(error, RateLimited) or (answer.status in UNAVAILABLE and after is not None):
            return Throttled(error, after or 1.0)
        return error

    def _not_penstock(self, status: int) -> RequestFailed:
        message = f"the server at {self.url} is not Penstock; use another address"
        return RequestFailed(message, status=status)

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, aiohttp.ClientSSLError):
            return Unreachable(f"{self.url} can't be trusted: {error}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return Unsent(
                f"no server answers at {self.url}; start one with 'penstock dev', "
                "or name another with --url or PENSTOCK_URL"
            )
        if isinstance(error, TimeoutError):
            seconds = f"{self.timeout_seconds:g} s"
            return Unreachable(
                f"{self.url} didn't answer within {seconds}; look at the server's log"
            )
        return Unreachable(
            f"the connection to {self.url} broke before the answer came; "
            "check whether the call was carried out"
        )

    async def close(self) -> None:
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()
        self._session = None
        self._streams = None


class Unsent(Unreachable):
    """The call never reached a server, so any call can be repeated."""


class Throttled(Exception):
    """The server said when to call again; `error` is raised if that is too late."""

    def __init__(self, error: Exception, after: float) -> None:
        super().__init__(str(error))
        self.error = error
        self.after = after
        self.limited = isinstance(error, RateLimited)


class Patience:
    """How often and how long a call is repeated."""

    def __init__(self, seconds: float, *, repeatable: bool) -> None:
        self._seconds = seconds
        self._repeatable = repeatable
        self._began = time.monotonic()
        self._delay = FIRST_DELAY_SECONDS
        self._waits = 0

    def answered(self) -> None:
        """The server answers: the time to reach it starts anew, the delay stays."""
        self._began = time.monotonic()

    def progressed(self) -> None:
        self._began = time.monotonic()
        self._delay = FIRST_DELAY_SECONDS
        self._waits = 0

    async def wait(self, error: Unreachable | Throttled) -> None:
        """Wait until the call can be repeated; raises the error if it can't be."""
        if isinstance(error, Throttled):
            await asyncio.sleep(self._throttled_seconds(error))
            return

        is_late = time.monotonic() - self._began + self._delay > self._seconds
        if is_late or not (self._repeatable or isinstance(error, Unsent)):
            raise error
        # Clients that lost the same server must not all come back at the same moment.
        await asyncio.sleep(self._delay * random.uniform(0.5, 1.0))  # noqa: S311
        self._delay = min(self._delay * 2, LAST_DELAY_SECONDS)

    def _throttled_seconds(self, refusal: Throttled) -> float:
        """How long to wait; after a rate limit any call is repeated, since nothing was done."""
        self._waits += 1
        if self._waits >= RATE_LIMIT_WAITS or refusal.after > RATE_LIMIT_SECONDS_MAX:
            raise refusal.error
        if not refusal.limited:
            is_late = time.monotonic() - self._began + refusal.after > self._seconds
            if is_late or not self._repeatable:
                raise refusal.error
        return refusal.after


def encode(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the body can't be written as JSON: {error}") from None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None  # a date: our servers send seconds
