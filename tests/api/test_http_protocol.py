"""Connections with limits.

Raw sockets against a server with small limits, and against the service with its own.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from penstock.api.http_protocol import HttpLimits, connections_of, limited_protocol
from tests.api.caller import Caller
from tests.api_server import running_service
from tests.faults.table import Fault
from tests.waiting import until, until_now

KIB = 1024
START = b"GET / HTTP/1.1\r\nHost: here\r\n"
WHOLE = START + b"\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
TWO_LENGTHS = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
PATIENCE = 20.0


class EchoServer:
    """A server whose application reads the whole body and answers with its length."""

    def __init__(self) -> None:
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.state = ServerState()
        self.disconnects = 0
        self.began = asyncio.Event()
        self.wait_before_reading = 0.0
        self.answer_bytes = 0

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.began.set()
        await asyncio.sleep(self.wait_before_reading)
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnects += 1
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        body = str(size).encode() + b"." * self.answer_bytes
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        message = await receive()
        self.disconnects += message["type"] == "http.disconnect"

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer

    async def exchange(self, *parts: bytes) -> bytes:
        """Everything that is answered until the server hangs up."""
        reader, writer = await self.open()
        for part in parts:
            writer.write(part)
        async with asyncio.timeout(PATIENCE):
            return await reader.read()


@asynccontextmanager
async def served(**limits: Any) -> AsyncIterator[EchoServer]:
    server = EchoServer()
    protocol = limited_protocol(HttpLimits(**limits))
    config = uvicorn.Config(
        server.app,
        interface="asgi3",
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    config.load()
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: protocol(config, server.state, {}), "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for writer in server.writers:
            writer.close()
        for connection in list(server.state.connections):
            connection.transport.abort()


def with_server(scenario: Callable[[EchoServer], Awaitable[None]], **limits: Any) -> None:
    async def main() -> None:
        async with served(**limits) as server:
            await scenario(server)

    asyncio.run(main())


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


CLOSING = b"Connection: close\r\n"
AT_THE_LIMIT = {
    "url": b"GET /" + b"a" * (16 * KIB - 1) + b" HTTP/1.1\r\nHost: here\r\n" + CLOSING + b"\r\n",
    "size": START + CLOSING + b"A: " + b"a" * (63 * KIB) + b"\r\n\r\n",
    "number": START + CLOSING + b"A: a\r\n" * 98 + b"\r\n",
}
OVER_THE_LIMIT = {
    "url": (414, b"GET /" + b"a" * (16 * KIB) + b" HTTP/1.1\r\nHost: here\r\n\r\n"),
    "query": (414, b"GET /?" + b"a=b&" * (4 * KIB) + b" HTTP/1.1\r\nHost: here\r\n\r\n"),
    "url without end": (414, b"GET /" + b"a" * (100 * KIB)),
    "size": (431, START + b"A: " + b"a" * (64 * KIB) + b"\r\n\r\n"),
    "sizes": (431, START + (b"A: " + b"a" * KIB + b"\r\n") * 65 + b"\r\n"),
    "number": (431, START + b"A: a\r\n" * 100 + b"\r\n"),
    "name without end": (431, START + b"A" * (100 * KIB)),
    "value without end": (431, START + b"A: " + b"a" * (100 * KIB)),
    "trailer": (400, CHUNKED + b"1\r\na\r\n0\r\nA: a\r\n\r\n"),
    "trailer without end": (431, CHUNKED + b"1\r\na\r\n0\r\nA: " + b"a" * (100 * KIB)),
    "chunk extension without end": (431, CHUNKED + b"1;" + b"a" * (100 * KIB)),
    "nonsense": (400, b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, START + b"Host: there\r\n\r\n"),
    "another host in the URL": (421, b"GET http://there/ HTTP/1.1\r\nHost: here\r\n\r\n"),
    "a user in the URL": (421, b"GET http://here@there/ HTTP/1.1\r\nHost: here\r\n\r\n"),
    "a URL without a path": (400, b"GET http://here HTTP/1.1\r\nHost: here\r\n\r\n"),
    "connect": (400, b"CONNECT here:80 HTTP/1.1\r\nHost: here:80\r\n\r\n"),
    "asterisk": (400, b"OPTIONS * HTTP/1.1\r\nHost: here\r\n\r\n"),
    "length twice": (400, TWO_LENGTHS),
    "length and chunks": (400, CHUNKED.replace(b"Transfer", b"Content-Length: 1\r\nTransfer")),
    "negative length": (400, b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: -1\r\n\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("request_bytes", AT_THE_LIMIT.values(), ids=AT_THE_LIMIT)
def test_a_head_at_the_limit_is_read(request_bytes: bytes) -> None:
    async def scenario(server: EchoServer) -> None:
        assert status(await server.exchange(request_bytes)) == 200

    with_server(scenario)


@pytest.mark.parametrize(("expected", "request_bytes"), OVER_THE_LIMIT.values(), ids=OVER_THE_LIMIT)
def test_a_request_over_a_limit_is_refused_and_the_connection_ends(
    expected: int, request_bytes: bytes
) -> None:
    async def scenario(server: EchoServer) -> None:
        answer = await server.exchange(request_bytes)
        assert status(answer) == expected
        assert b"application/problem+json" in answer
        assert not server.state.connections

    with_server(scenario)


def test_the_host_may_stand_in_the_url_too() -> None:
    async def scenario(server: EchoServer) -> None:
        request = b"GET http://here/ HTTP/1.1\r\nHost: HERE\r\nConnection: close\r\n\r\n"
        assert status(await server.exchange(request)) == 200
        assert status(await server.exchange(b"GET / HTTP/1.0\r\n\r\n")) == 200

    with_server(scenario)


def test_headers_without_end_take_no_memory() -> None:
    """64 MB are offered; what the server takes before it hangs up is far less."""

    async def scenario(server: EchoServer) -> None:
        _, writer = await server.open()
        writer.write(START + b"A: ")
        taken = 0
        try:
            async with asyncio.timeout(PATIENCE):
                for _ in range(1024):
                    writer.write(b"a" * (64 * KIB))
                    await writer.drain()
                    taken += 64 * KIB
        except (ConnectionError, TimeoutError):
            pass
        assert taken < 32 * KIB * KIB
        assert not server.state.connections

    with_server(scenario)


HALVES = {
    "nothing": [b""],
    "half a line": [b"GE"],
    "half a head": [START],
    "empty lines": [b"\r\n"],
    "half a second head": [WHOLE, START],
    "empty lines after a request": [WHOLE, b"\r\n"],
}


@pytest.mark.parametrize("parts", HALVES.values(), ids=HALVES)
def test_a_half_sent_request_is_given_up(parts: list[bytes]) -> None:
    async def scenario(server: EchoServer) -> None:
        reader, writer = await server.open()
        for part in parts[:-1]:
            writer.write(part)
            await reader.readuntil(b"\r\n\r\n0")
        writer.write(parts[-1])
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
        assert status(answer) in {0, 408}
        assert not server.state.connections

    with_server(scenario, head_seconds=0.1)


@pytest.mark.parametrize("drop", [b"\r\n", b"A: a\r\n"])
def test_a_head_that_comes_drop_by_drop_is_given_up(drop: bytes) -> None:
    async def scenario(server: EchoServer) -> None:
        reader, writer = await server.open()
        writer.write(START if drop.strip() else b"")
        reading = asyncio.create_task(reader.read())
        async with asyncio.timeout(PATIENCE):
            while not reading.done():
                writer.write(drop)
                await asyncio.wait({reading}, timeout=0.02)
        assert not server.state.connections

    with_server(scenario, head_seconds=0.3, headers_max=10_000)


def test_a_body_that_stops_is_given_up_and_the_application_hears_of_it() -> None:
    async def scenario(server: EchoServer) -> None:
        for begun in (POST + b"a", CHUNKED + b"5\r\nab"):
            assert status(await server.exchange(begun)) == 408
        assert server.disconnects == 2
        assert not server.state.connections

    with_server(scenario, body_seconds=0.1)


def test_a_body_that_comes_drop_by_drop_is_given_up() -> None:
    async def scenario(server: EchoServer) -> None:
        reader, writer = await server.open()
        writer.write(POST)
        reading = asyncio.create_task(reader.read())
        async with asyncio.timeout(PATIENCE):
            while not reading.done():
                writer.write(b"a")
                await asyncio.wait({reading}, timeout=0.02)
        assert status(reading.result()) == 408

    with_server(scenario, body_seconds=0.2, body_bytes_min=500)


def test_a_slow_application_is_not_held_against_its_client() -> None:
    async def scenario(server: EchoServer) -> None:
        server.wait_before_reading = 0.5
        size = 4 * KIB * KIB
        head = (
            b"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            % size
        )
        answer = await server.exchange(head, b"a" * size)
        assert (status(answer), answer.split(b"\r\n\r\n")[1]) == (200, str(size).encode())

    with_server(scenario, body_seconds=0.1)


def test_a_client_that_does_not_read_its_answer_is_given_up() -> None:
    async def scenario(server: EchoServer) -> None:
        server.answer_bytes = 64 * KIB * KIB
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
            client.connect(("127.0.0.1", server.port))
            client.sendall(WHOLE)
            await until(
                lambda: server.began.is_set() and not server.state.connections, "it was given up"
            )

    with_server(scenario, unread_seconds=0.1)


def test_half_sent_requests_make_room_for_new_ones() -> None:
    async def scenario(server: EchoServer) -> None:
        for n in range(40):
            _, writer = await server.open()
            writer.write(START if n % 2 else POST)
            whole = await server.exchange(START + CLOSING + b"\r\n")
            assert status(whole) == 200
            assert len(server.state.connections) <= 5

    with_server(scenario, connections_max=5)


def test_a_request_that_is_being_answered_makes_no_room() -> None:
    async def scenario(server: EchoServer) -> None:
        server.wait_before_reading = 0.5
        answering = [
            asyncio.create_task(server.exchange(START + CLOSING + b"\r\n")) for _ in range(3)
        ]
        await until(lambda: len(server.state.tasks) == 3, "all are being answered")
        assert status(await server.exchange(b"")) == 503
        assert [status(answer) for answer in await asyncio.gather(*answering)] == [200] * 3

    with_server(scenario, connections_max=3)


def test_requests_may_be_sent_ahead_but_not_without_end() -> None:
    async def scenario(server: EchoServer) -> None:
        few = await server.exchange(WHOLE * 4 + START + CLOSING + b"\r\n")
        assert few.count(b"HTTP/1.1 200 OK") == 5
        many = await server.exchange(WHOLE * 10_000)
        assert 1 <= many.count(b"HTTP/1.1 200 OK") <= 20
        assert not server.state.connections

    with_server(scenario)


def test_an_upgrade_is_not_done_and_the_request_is_answered() -> None:
    async def scenario(server: EchoServer) -> None:
        for upgrade in (b"websocket", b"h2c"):
            upgrade_headers = b"Connection: Upgrade\r\nUpgrade: " + upgrade + b"\r\n\r\n"
            assert status(await server.exchange(START + upgrade_headers)) == 200

    with_server(scenario)


def test_what_is_no_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Anybody could fill the log with it."""

    async def scenario(server: EchoServer) -> None:
        await server.exchange(b"nonsense\r\n\r\n")
        await server.exchange(START + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n")

    with caplog.at_level(logging.INFO):
        with_server(scenario)
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []


def test_the_stores_keep_open_files_for_themselves() -> None:
    assert [connections_of(files) for files in (20, 256, 1024, 1_000_000)] == [16, 192, 768, 10_000]


@pytest.mark.fault("security", "half-sent requests and endless headers")
def test_health_checks_are_answered_beside_half_sent_requests(tmp_path: Path, fault: Fault) -> None:
    many = 300
    with running_service(tmp_path) as service, ExitStack() as stack:
        host, _, port = service.address.removeprefix("http://").rpartition(":")
        for n in range(many):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            connection.sendall(START if n % 2 else POST)
        api = Caller(service.address)
        for _ in range(5):
            assert api.send("GET", "/health/live").status == 200
        endless = stack.enter_context(socket.create_connection((host, int(port))))
        endless.sendall(START + b"A: ")
        with pytest.raises(ConnectionError):
            endless.sendall(b"a" * (64 * KIB * KIB))
        assert api.send("GET", "/health/live").status == 200
    fault.shows(half_sent=many)


def test_a_client_that_goes_before_its_body_is_complete_is_no_mistake_of_the_service(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), running_service(tmp_path) as service:
        host, _, port = service.address.removeprefix("http://").rpartition(":")
        for path in (
            b"/api/v1/executions",
            b"/api/v1/workflows",
            b"/workflow",
            b"/api/v1/executions/batch",
        ):
            with socket.create_connection((host, int(port))) as connection:
                head = (
                    b"POST "
                    + path
                    + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                )
                connection.sendall(head + b"Content-Length: 1000\r\n\r\n{")
        api = Caller(service.address)
        lines = until_now(
            lambda: [line["status"] for line in api.items("/audit")] == [400] * 4, "four lines"
        )
        assert lines
    assert [
        record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR
    ] == []
