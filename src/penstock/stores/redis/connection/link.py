"""A link: a connection that is made again after it broke.

A broken connection leaves it open whether the calls on it were carried out. Calls that change
nothing are therefore made again on the next connection (`ask`, `pipeline`). Calls that change
something are made once (`call`): the caller, who knows what a repetition would do, decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from penstock.errors import StoreError, StoreUnavailable
from penstock.stores.redis.connection.address import Address
from penstock.stores.redis.connection.errors import Broken, NotNow
from penstock.stores.redis.connection.wire import Wire
from penstock.stores.redis.timing import RedisTiming

TRIES = 5
"""How often a repeatable call is made, on connections that break."""
T = TypeVar("T")
Locate: TypeAlias = "Callable[[], Awaitable[Address]]"
"""Answers where the master is now."""


class Link:
    """A connection that is made again after it broke."""

    def __init__(self, address: Address, timing: RedisTiming, locate: Locate | None = None) -> None:
        """`locate` answers the master's address. It is called before each connection.

        `address` is then its last answer.
        """
        self.address = address
        self._timing = timing
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
        return Link(self.address, self._timing, self._locate)

    def abort(self) -> None:
        """End the connection; the next call makes a new one."""
        if self._wire is not None:
            self._wire.abort()

    async def call(self, *arguments: Any, seconds: float | None = None) -> Any:
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

    async def ask(self, *arguments: Any, seconds: float | None = None) -> Any:
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
            async with asyncio.timeout(self._timing.connect_seconds):
                if self._locate is not None:
                    self.address = await self._locate()
                wire = await _retry_broken(lambda: _open_wire(self.address, self._timing))
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


async def _open_wire(address: Address, timing: RedisTiming) -> Wire:
    loop = asyncio.get_running_loop()
    make_wire = partial(Wire, timing)
    if address.path:
        _, wire = await loop.create_unix_connection(make_wire, address.path)
    else:
        _, wire = await loop.create_connection(
            make_wire, address.host, address.port, ssl=address.tls
        )
    try:
        for greeting in address.greetings():
            await wire.call(*greeting)
    except BaseException:
        wire.abort()
        raise
    return wire
