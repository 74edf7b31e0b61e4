"""TLS in front of a Redis that has none: the servers that tests start are built without it.

with TlsProxy(server.url) as proxy:
    Server(proxy.url)
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit, urlunsplit

FOLDER = Path(__file__).with_name("tls")
CERTIFICATE = FOLDER / "certificate.pem"
"""Signed by itself, for 127.0.0.1, until 2126: a test must not depend on a program that makes one.
"""
KEY = FOLDER / "key.pem"
READ_BYTES = 1 << 16


class TlsProxy:
    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(CERTIFICATE, KEY)
        self._port = 0

    @property
    def untrusted_url(self) -> str:
        """Nothing in it says who signed the certificate."""
        user, at, _ = self._target.netloc.rpartition("@")
        return urlunsplit(
            self._target._replace(scheme="rediss", netloc=f"{user}{at}127.0.0.1:{self._port}")
        )

    @property
    def url(self) -> str:
        return f"{self.untrusted_url}?{urlencode({'ssl_ca_certs': str(CERTIFICATE)})}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port = self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis_reader, redis_writer = await asyncio.open_connection(
            self._target.hostname, self._target.port
        )
        try:
            await asyncio.gather(_copy(reader, redis_writer), _copy(redis_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one side has gone, or the test has ended
        finally:
            writer.transport.abort()
            redis_writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
