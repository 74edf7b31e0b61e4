"""A wire: one connection to Redis. Calls go out as they come, replies come back in the same order.

redis-py's client spends more time on a call than Redis does; here a call is one packed write and
one future. A call that nobody waits for any more (its caller was cancelled) still takes its own
reply, so replies never go astray.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import hiredis

from penstock.errors import StoreError, StoreUnavailable
from penstock.stores.redis.connection.errors import Broken, error_of
from penstock.stores.redis.timing import RedisTiming

_NOTHING = object()


class Wire(asyncio.Protocol):
    def __init__(self, timing: RedisTiming) -> None:
        self._timing = timing
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
        self._watch = self._loop.call_later(self._timing.watch_seconds, self._check_late)

    def call(self, *arguments: Any, seconds: float | None = None) -> asyncio.Future[Any]:
        """Send a call; its reply, or the exception for it, is the future's result."""
        if seconds is None:
            seconds = self._timing.call_seconds
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
            self._watch = self._loop.call_later(self._timing.watch_seconds, self._check_late)


def _fail(future: asyncio.Future[Any], error: StoreError) -> None:
    future.set_exception(error)
    # retrieved: if the caller was cancelled, asyncio would complain of an error that nobody saw
    future.exception()
