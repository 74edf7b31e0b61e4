"""Proxies between a role and a server, which lose or delay replies and calls.

    async with RedisProxy(plant.redis.url, choose) as proxy:
        plant.start("worker", STORE=proxy.url)
        proxy.share = 0.05      # of the calls, from now on

A call that is *unanswered* is made, and its reply thrown away with the connection. One that is
*late* is held back: its caller is cut off, and it is made only after the same role has made some
others, so that it has read again meanwhile.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import hiredis

from penstock.stores.redis.connection import Script, script
from tests.waiting import until

READ_BYTES = 1 << 16
CALLS_BEFORE_A_LATE_ONE = 8
LATEST_SECONDS = 2.0
NEVER_LATE = (b"XREAD",)
"""A read that nobody waits for shows nothing."""


class Proxy:
    """Of any protocol in which the server speaks when it was spoken to."""

    def __init__(self, url: str, choose: random.Random) -> None:
        self._url = urlsplit(url)
        self._choose = choose
        self.share = 0.0
        self.calls = self.unanswered = self.late = 0
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._busy):
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        """What the role is told in place of the server's own."""
        who, at, _ = self._url.netloc.rpartition("@")
        return urlunsplit(self._url._replace(netloc=f"{who}{at}127.0.0.1:{self.port}"))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            upstream = await asyncio.open_connection(self._url.hostname, self._url.port)
            try:
                await self._serve(reader, writer, *upstream)
            finally:
                upstream[1].transport.abort()
        writer.transport.abort()

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        raise NotImplementedError

    def _is_struck(self) -> bool:
        return self._choose.random() < self.share


class RedisProxy(Proxy):
    def __init__(self, url: str, choose: random.Random) -> None:
        super().__init__(url, choose)
        self.acquired: Counter[bytes] = Counter()
        self.late_commits = 0

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        """One call at a time, so that it is known whose reply is whose."""
        parser = hiredis.Reader()
        while data := await reader.read(READ_BYTES):
            parser.feed(data)
            while (call := parser.gets()) is not False:
                self.calls += 1
                self.acquired[_key_of(call, "acquire")] += 1
                is_struck = self._is_struck()
                if is_struck and call[0] not in NEVER_LATE and self._choose.random() < 0.5:
                    writer.transport.abort()
                    await self._hold_back(_key_of(call, "commit"))
                    await self._make(call, answers, upstream)
                    self.late += 1
                    return
                reply = await self._make(call, answers, upstream)
                if is_struck:
                    self.unanswered += 1
                    return
                writer.write(reply)
            await writer.drain()

    async def _make(
        self, call: list[bytes], answers: asyncio.StreamReader, upstream: asyncio.StreamWriter
    ) -> bytes:
        """The call, and its answer as it came."""
        return await exchange(call, answers, upstream)

    async def _hold_back(self, lease: bytes) -> None:
        """Wait until the role has made some calls on another connection.

        Or for a while, if it has nothing to do. A commit waits until its partition has been
        acquired again: an owner that lost the answer has read the store by then.
        """
        before = self.acquired[lease]
        with suppress(AssertionError):
            if lease:
                await until(
                    lambda: self.acquired[lease] > before,
                    "it is owned again",
                    seconds=LATEST_SECONDS,
                )
                self.late_commits += 1
            enough = self.calls + CALLS_BEFORE_A_LATE_ONE
            await until(lambda: self.calls >= enough, "the role goes on", seconds=LATEST_SECONDS)


def is_call_of(call: list[bytes], wanted: Script) -> bool:
    return call[0] in (b"EVALSHA", b"EVAL") and call[1].decode() in (wanted.digest, wanted.source)


def _key_of(call: list[bytes], name: str) -> bytes:
    """Of a call of this script; empty for any other."""
    return call[3] if is_call_of(call, script(name)) else b""


async def exchange(
    call: list[bytes], answers: asyncio.StreamReader, upstream: asyncio.StreamWriter
) -> bytes:
    words: Any = tuple(call)
    upstream.write(hiredis.pack_command(words))
    parser, raw = hiredis.Reader(), b""
    while True:
        data = await answers.read(READ_BYTES)
        if not data:
            raise ConnectionResetError
        raw += data
        parser.feed(data)
        if parser.gets() is not False:
            return raw


class PostgresProxy(Proxy):
    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        """Let the server do the last call, and throw its reply away with the connection."""
        cut = asyncio.Event()

        async def back() -> None:
            while data := await answers.read(READ_BYTES):
                if cut.is_set():
                    return
                writer.write(data)
                await writer.drain()
            writer.close()  # the server has hung up

        answering = asyncio.create_task(back())
        try:
            while data := await reader.read(READ_BYTES):
                self.calls += 1
                if self._is_struck():
                    cut.set()
                upstream.write(data)
                if cut.is_set():
                    self.unanswered += 1
                    await asyncio.wait((answering,), timeout=LATEST_SECONDS)
                    return
        finally:
            answering.cancel()
            await asyncio.wait((answering,))
