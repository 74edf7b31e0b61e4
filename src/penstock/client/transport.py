"""One call to a server: JSON there and back.

A call that may be repeated is, as long as that can help.

What may be: reading; whatever has an idempotency key; whatever never reached the server. Nothing
else: when the answer to a `cancel` is lost, only the caller can know whether to ask again.
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
FIRST_DELAY_SECONDS, LAST_DELAY_SECONDS = 0.1, 2.0
RATE_LIMIT_WAITS, RATE_LIMIT_SECONDS_MAX = 5, 60.0
CONNECTIONS_MAX = 100
SILENCE_SECONDS = 60.0
"""A stream without even a heartbeat for so long is dead."""
FAILURES = (aiohttp.ClientError, TimeoutError, ConnectionError)

Query = Mapping[str, Any] | Sequence[tuple[str, Any]]


def path_of(*parts: str | int) -> str:
    """Names may hold anything, also slashes."""
    return "".join("/" + quote(str(part), safe="") for part in parts)


class Request(NamedTuple):
    method: str
    url: URL
    data: bytes | None
    headers: Mapping[str, str]
    read_seconds: float


class Transport:
    def __init__(
        self, url: str, api_key: str | None, timeout_seconds: float, retry_seconds: float
    ) -> None:
        self.url = url.rstrip("/")
        parsed = URL(self.url)
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise SettingsError(f"{url!r} isn't a server's address; write it as http://HOST:PORT")
        self._api_key = api_key
        self.timeout_seconds, self.retry_seconds = timeout_seconds, retry_seconds
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
        """The answer's JSON; None where there is none.

        `fine` is a status that is an answer too, not an error.

        `path` may be `/health`, which has no prefix.
        """
        data = None if body is None else encode(body)
        headers = {"Idempotency-Key": key} if key else {}
        headers |= {"Content-Type": "application/json"} if method in ("POST", "PUT") else {}
        request = Request(
            method, self.address(path, query), data, headers, self.timeout_seconds + wait_seconds
        )
        patience = Patience(self.retry_seconds, repeatable=method == "GET" or key is not None)
        while True:
            try:
                return await self._once(request, fine)
            except (Unreachable, Throttled) as error:
                await patience.wait(error)

    def address(self, path: str, query: Query | None = None) -> URL:
        pairs = query.items() if isinstance(query, Mapping) else query or ()
        asked = urlencode([(name, _text(value)) for name, value in pairs if value is not None])
        prefix = "" if path.startswith("/health") else API
        return URL(self.url + prefix + path + (f"?{asked}" if asked else ""), encoded=True)

    async def _once(self, request: Request, fine: int) -> Any:
        # Per read, not in total: a call that waits for its turn behind many others hasn't been sent
        # yet.
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
        """Bytes of an event stream; connections of their own, so that no number of them holds back a call."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
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
            raise self._stranger(answer.status) from None

    def _refusal(self, answer: aiohttp.ClientResponse, data: bytes) -> Exception:
        if answer.status < 400:  # noqa: PLR2004
            target = answer.headers.get("Location", "another address")
            return RequestFailed(
                f"{self.url} leads on to {target}; name that server instead", status=answer.status
            )
        after = _seconds(answer.headers.get("Retry-After"))
        error = error_from(answer.status, data, after)
        if isinstance(error, RateLimited) or (answer.status in UNAVAILABLE and after is not None):
            return Throttled(error, after or 1.0)
        return error

    def _stranger(self, status: int) -> RequestFailed:
        return RequestFailed(
            f"what answers at {self.url} isn't Penstock; name another address", status=status
        )

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, aiohttp.ClientSSLError):
            return Unreachable(f"{self.url} can't be trusted: {error}")
        if isinstance(error, aiohttp.ClientConnectorError):
            return Unsent(
                f"nothing answers at {self.url}; start a server with 'penstock dev', or name another with --url"
                " or PENSTOCK_URL"
            )
        if isinstance(error, TimeoutError):
            return Unreachable(
                f"{self.url} didn't answer within {self.timeout_seconds:g} s; look at the server's log"
            )
        return Unreachable(
            f"the connection to {self.url} broke before the answer came; look whether it was done"
        )

    async def close(self) -> None:
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()
        self._session = self._streams = None


class Unsent(Unreachable):
    """The call never reached a server, so it can be repeated whatever it is."""


class Throttled(Exception):
    """The server named the time after which to ask again; `error` is what to raise when that is too late."""

    def __init__(self, error: Exception, after: float) -> None:
        super().__init__(str(error))
        self.error, self.after = error, after
        self.limited = isinstance(error, RateLimited)


class Patience:
    """How often and how long to ask again."""

    def __init__(self, seconds: float, *, repeatable: bool) -> None:
        self._seconds, self._repeatable = seconds, repeatable
        self._began = time.monotonic()
        self._delay = FIRST_DELAY_SECONDS
        self._waits = 0

    def answered(self) -> None:
        """The server is there; how soon to come back if it goes away again is another question."""
        self._began = time.monotonic()

    def progressed(self) -> None:
        self._began, self._delay, self._waits = time.monotonic(), FIRST_DELAY_SECONDS, 0

    async def wait(self, error: Unreachable | Throttled) -> None:
        """Until it is time to ask again; raises the error when it isn't worth it."""
        if isinstance(error, Throttled):
            await asyncio.sleep(self._throttled(error))
            return
        past = time.monotonic() - self._began + self._delay > self._seconds
        if past or not (self._repeatable or isinstance(error, Unsent)):
            raise error
        # Clients that lost the same server must not all come back in the same moment.
        await asyncio.sleep(self._delay * random.uniform(0.5, 1.0))  # noqa: S311
        self._delay = min(self._delay * 2, LAST_DELAY_SECONDS)

    def _throttled(self, refusal: Throttled) -> float:
        """A limit that was hit is the server's answer: nothing was done, so everything may be repeated."""
        self._waits += 1
        past = (
            not refusal.limited and time.monotonic() - self._began + refusal.after > self._seconds
        )
        if self._waits >= RATE_LIMIT_WAITS or refusal.after > RATE_LIMIT_SECONDS_MAX or past:
            raise refusal.error
        if not (refusal.limited or self._repeatable):
            raise refusal.error
        return refusal.after


def encode(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"what is to be sent isn't JSON: {error}") from None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None  # a date: our servers send seconds
