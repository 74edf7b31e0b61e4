"""Responses leave at once.

The kernel doesn't hold a body back until the client has acknowledged the head.
"""

from __future__ import annotations

import asyncio
import socket

from penstock.runtime.http_server import bind


def test_what_the_service_accepts_sends_without_delay() -> None:
    async def delayed() -> int:
        accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bind("127.0.0.1", 0) as listening:
            async with await asyncio.start_server(on_connection, sock=listening):
                _, writer = await asyncio.open_connection(*listening.getsockname())
                is_delayed = await accepted
                writer.close()
                await writer.wait_closed()
        return is_delayed

    assert asyncio.run(delayed()) != 0
