"""A connection to Redis: calls go out as they come, replies come back in the same order.

redis-py's client spends more time on a call than Redis does; here a call is one packed write and
one future. A call that nobody waits for any more (its caller was cancelled) still takes its own
reply, so replies never go astray.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import hiredis

from penstock.errors import Fenced, StoreError, StoreUnavailable
from penstock.stores.redis.address import Address

CALL_SECONDS = 10.0
"""A server that takes longer for an answer counts as away."""
CONNECT_SECONDS = 5.0
WATCH_SECONDS = 1.0
TRIES = 5
"""How often a repeatable call is made, on connections that break."""
AWAY = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "MOVED",
    "ASK",
    "UNBLOCKED",
)
"""Errors of a server that can't serve anybody now; all other errors are about the call."""
_NOTHING = object()
T = TypeVar("T")
Locate: TypeAlias = "Callable[[], Awaitable[Address]]"


class Refused(StoreError):
    """Redis answered with an error; `code` is its first word."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Redis refuses: {text}")
        self.code = text.partition(" ")[0]


class Broken(StoreUnavailable):
    """The connection ended before the answer came: the call may have been carried out or not."""


class NotNow(StoreUnavailable):
    """Redis answers, but can't do it at the moment; `text` is its reply."""

    def __init__(self, text: str) -> None:
        super().__init__(f"Redis can't now: {text}")
        self.code = text.partition(" ")[0]
        self.text = text


def error_of(text: str) -> StoreError:
    code = text.partition(" ")[0]
    if code == "FENCED":
        return Fenced(text.partition(" ")[2])
    if code in AWAY:
        return NotNow(text)
    return Refused(text)


class Wire(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(replyError=error_of, notEnoughData=_NOTHING)
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._closed = self._loop.create_future()
        self._is_silent = False
        self.is_open = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.is_open = True
        self._watch = self._loop.call_later(WATCH_SECONDS, self._check_late)

    def call(self, *arguments: Any, seconds: float = CALL_SECONDS) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        if not self.is_open or self._transport is None:
            _fail(future, StoreUnavailable("the connection to Redis is closed"))
            return future
        packed = hiredis.pack_command(arguments)  # may raise: then nobody waits for a reply
        self._waiting.append((future, self._loop.time() + seconds))
        self._transport.write(packed)
        return future

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not _NOTHING:
            future, _ = self._waiting.popleft()
            if future.done():
                continue
            if isinstance(reply, StoreError):
                _fail(future, reply)
            else:
                future.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._watch is not None:
            self._watch.cancel()
        for future, _ in self._waiting:
            if not future.done():
                _fail(future, self._lost(error))
        self._waiting.clear()
        if not self._closed.done():
            self._closed.set_result(None)

    def _lost(self, error: Exception | None) -> StoreUnavailable:
        if self._is_silent:
            return StoreUnavailable("Redis doesn't answer")
        return Broken(f"the connection to Redis broke: {error or 'it was closed'}")

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            await self._closed

    def _check_late(self) -> None:
        """End the connection if a reply is late, so that nobody waits for a silent server."""
        if self._waiting and self._waiting[0][1] < self._loop.time():
            self._is_silent = True
            self.abort()
        else:
            self._watch = self._loop.call_later(WATCH_SECONDS, self._check_late)


def _fail(future: asyncio.Future[Any], error: StoreError) -> None:
    future.set_exception(error)
    # retrieved: if the caller was cancelled, asyncio would complain of an error that nobody saw
    future.exception()


class Link:
    """A connection that is made again after it broke."""

    def __init__(self, address: Address, locate: Locate | None = None) -> None:
        """`locate` answers the master's address. It is called before each connection.

        `address` is then its last answer.
        """
        self.address = address
        self._locate = locate
        self._wire: Wire | None = None
        self._connecting: asyncio.Task[Wire] | None = None
        self.failed: StoreUnavailable | None = None
        """Why the last attempt to connect failed, until one succeeds."""

    @property
    def is_open(self) -> bool:
        return self._wire is not None and self._wire.is_open

    def twin(self) -> Link:
        """Another connection to the same server."""
        return Link(self.address, self._locate)

    def abort(self) -> None:
        """End the connection; the next call makes a new one."""
        if self._wire is not None:
            self._wire.abort()

    async def call(self, *arguments: Any, seconds: float = CALL_SECONDS) -> Any:
        wire = self._wire
        if wire is None or not wire.is_open:
            wire = await self._connect()
        try:
            return await wire.call(*arguments, seconds=seconds)
        except NotNow as error:
            # the server is a replica by now: the host name may belong to another server
            if error.code == "READONLY":
                wire.abort()
            raise

    async def ask(self, *arguments: Any, seconds: float = CALL_SECONDS) -> Any:
        """Make a call that changes nothing, and make it again if the connection broke.

        Another call on the same connection may be why it broke.
        """
        return await _retry_broken(lambda: self.call(*arguments, seconds=seconds))

    def begin(self, *arguments: Any) -> asyncio.Future[Any] | None:
        """Begin a call and return its future; None if the connection has to be made first."""
        wire = self._wire
        return wire.call(*arguments) if wire is not None and wire.is_open else None

    async def pipeline(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        """Make many repeatable calls in one round trip. Raises the first error."""
        return await _retry_broken(lambda: self._pipeline(calls))

    async def _pipeline(self, calls: list[tuple[Any, ...]]) -> list[Any]:
        wire = self._wire if self.is_open else await self._connect()
        assert wire is not None  # noqa: S101 -- for the type checker
        # all replies are retrieved, also behind an error: asyncio complains of errors that nobody
        # saw
        replies = await asyncio.gather(
            *[wire.call(*arguments) for arguments in calls], return_exceptions=True
        )
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return replies

    async def _connect(self) -> Wire:
        """Connect: one attempt for all who wait for it."""
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._open())
            # retrieved: the caller may have been cancelled meanwhile
            self._connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._connecting)

    async def _open(self) -> Wire:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                if self._locate is not None:
                    self.address = await self._locate()
                wire = await _retry_broken(lambda: _open_wire(self.address))
                if self._locate is not None:
                    await _check_master(wire)
        except (OSError, TimeoutError, StoreError) as error:
            # a StoreError is Redis's reply to a greeting, such as a wrong password
            reason = str(error) or "it doesn't answer"
            self.failed = StoreUnavailable(f"Redis at {self.address} can't be reached: {reason}")
            raise self.failed from None
        self._wire = wire
        self.failed = None
        return wire

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
            if not self._connecting.cancelled():
                self._connecting.exception()
        if self._wire is not None:
            await self._wire.close()


async def _retry_broken(call: Callable[[], Awaitable[T]]) -> T:
    for _ in range(TRIES - 1):
        with suppress(Broken):
            return await call()
    return await call()


async def _check_master(wire: Wire) -> None:
    """Check that the server is a master.

    One that was demoted a moment ago may still be named as such.
    """
    role = await wire.call("ROLE")
    if role[0] != b"master":
        wire.abort()
        raise StoreUnavailable(f"it is a {role[0].decode()}, not the master")


async def _open_wire(address: Address) -> Wire:
    loop = asyncio.get_running_loop()
    if address.path:
        _, wire = await loop.create_unix_connection(Wire, address.path)
    else:
        _, wire = await loop.create_connection(Wire, address.host, address.port, ssl=address.tls)
    try:
        for greeting in address.greetings():
            await wire.call(*greeting)
    except BaseException:
        wire.abort()
        raise
    return wire
