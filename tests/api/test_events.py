"""Live events over real HTTP: as they are on the wire, taken up again, refused, and read slowly."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec
import pytest

import penstock
from penstock.api import events
from penstock.api.app import create_app
from penstock.api.timing import ApiTiming
from penstock.config import Settings
from penstock.service.fleet import EmbeddedFleet
from penstock.stores.memory import MemoryStores
from penstock.views.executions import history_view
from tests.api.asgi import bearer
from tests.api.caller import Caller, assert_problem
from tests.api.event_server import (
    SMALL_BUFFER,
    Events,
    Served,
    connected,
    read_all,
    refusal,
    served,
    served_app,
)
from tests.api_server import running_service
from tests.service.chronicle import Chronicle
from tests.waiting import until, until_now

Scenario = Callable[[Chronicle, Served], Awaitable[None]]


def over_http(
    scenario: Scenario, path: Path | None = None, *, streams: int = 500, **times: float
) -> None:
    async def main() -> None:
        chronicle = await Chronicle.begin(path, streams_max=streams)
        try:
            async with served(chronicle.live_events, **times) as server:
                await scenario(chronicle, server)
            assert chronicle.live_events.streams == 0
        finally:
            await chronicle.end()

    asyncio.run(main())


def over_whole_api(scenario: Callable[[str], None], **times: float) -> None:
    """With keys, and all that a request passes. The scenario gets the address, in a thread."""

    async def main() -> None:
        settings = Settings()
        async with penstock.Engine("memory://", settings=settings) as engine:
            fleet = EmbeddedFleet(engine.stores, engine.worker, engine.orchestrator)
            timing = ApiTiming(**times)
            app = create_app(engine.service, fleet, settings, version="1", timing=timing)
            async with served_app(app, engine.service.live_events) as server:
                await asyncio.to_thread(scenario, server.url)

    asyncio.run(main())


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["data"]["seq"] for event in events if event["event"] == "transition"]


def test_an_execution_is_followed_from_its_first_line_to_its_end() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 2)
        async with connected(server, "/executions/a/events") as (response, events):
            assert response.status == 200
            assert response.content_type == "text/event-stream"
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["X-Accel-Buffering"] == "no"
            first = await events.take(2)
            assert events.retry == 1000
            await chronicle.commit("a")
            await chronicle.finish("a")
            rest = [event async for event in events]
        history = history_view(await chronicle.stores.cold.executions.history("a") or [])
        assert [event["data"] for event in [*first, *rest[:-1]]] == [
            {**msgspec.to_builtins(line), "execution_id": "a"} for line in history
        ]
        assert [event["id"] for event in [*first, *rest[:-1]]] == ["1", "2", "3", "4"]
        assert rest[-1] == {
            "id": "end",
            "event": "end",
            "data": {"execution_id": "a", "state": "COMPLETED"},
        }

    over_http(scenario)


def test_a_client_goes_on_behind_its_last_event() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 4)
        await chronicle.finish("a")
        assert numbers(await read_all(server, "/executions/a/events", "3")) == [4, 5]
        assert numbers(await read_all(server, "/executions/a/events?after=3")) == [4, 5]
        # a browser comes back to the address that it had, with a newer id in the header
        assert numbers(await read_all(server, "/executions/a/events?after=1", "4")) == [5]
        only_end = await read_all(server, "/executions/a/events", "5")
        assert [event["event"] for event in only_end] == ["end"]

    over_http(scenario)


def test_a_client_that_has_had_the_end_is_told_to_stay_away() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.finish("a")
        last = (await read_all(server, "/executions/a/events"))[-1]["id"]
        async with connected(server, "/executions/a/events", last) as (response, _):
            assert response.status == 204

    over_http(scenario)


def test_all_executions_are_followed_in_the_order_of_commits_and_taken_up_again() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a", "b")
        await chronicle.commit("a", 2)
        async with connected(server, "/events?after=0") as (_, events):
            first = await events.take(2)
            await chronicle.commit("b", 3)
            await chronicle.finish("a")
            rest = await events.take(4)
        assert [(e["data"]["execution_id"], e["data"]["seq"]) for e in [*first, *rest]] == [
            ("a", 1),
            ("a", 2),
            ("b", 1),
            ("b", 2),
            ("b", 3),
            ("a", 3),
        ]
        async with connected(server, "/events", rest[1]["id"]) as (_, events):
            assert await events.take(2) == rest[2:]

    over_http(scenario)


@pytest.mark.parametrize(
    ("path", "last", "status", "code"),
    [
        ("/executions/ghost/events", None, 404, "not_found"),
        ("/executions/ghost/events", "7", 404, "not_found"),
        ("/executions/a/events", "2", 422, "invalid_request"),
        ("/executions/a/events", "x", 422, "invalid_request"),
        ("/executions/a/events", "-1", 422, "invalid_request"),
        ("/executions/a/events", "1.0", 422, "invalid_request"),
        ("/executions/a/events", "9" * 30, 422, "invalid_request"),
        ("/executions/a/events?after=%00", None, 422, "invalid_request"),
        ("/executions/a/events?after=1%0A", None, 422, "invalid_request"),
        ("/events", "999.0", 422, "invalid_request"),
        ("/events", "end", 422, "invalid_request"),
        ("/events?after=1.x", None, 422, "invalid_request"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_a_stream_begins(
    path: str, last: str | None, status: int, code: str
) -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a")
        refused_status, problem, _ = await refusal(server, path, last)
        assert (refused_status, problem["code"]) == (status, code)

    over_http(scenario)


def test_one_stream_too_many_is_refused_and_told_when_to_come_back() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        async with connected(server, "/executions/a/events"), connected(server, "/events"):
            for path in ("/executions/a/events", "/events"):
                status, problem, headers = await refusal(server, path)
                assert (status, problem["code"]) == (503, "too_many_streams")
                assert int(headers["Retry-After"]) > 0
        await until(lambda: chronicle.live_events.streams == 0, "clients that went leave room")
        async with connected(server, "/events") as (response, _):
            assert response.status == 200

    over_http(scenario, streams=2)


def test_a_silent_stream_has_heartbeats() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        for path in ("/executions/a/events", "/events"):
            async with connected(server, path) as (response, _):
                text = b""
                while text.count(b"\n\n: ") < 3:
                    text += await response.content.readany()
                assert b"data" not in text

    over_http(scenario, heartbeat_seconds=0.01)


def test_a_stream_ends_after_its_longest_time_and_the_next_one_misses_nothing() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 3)
        first = await read_all(server, "/executions/a/events")
        await chronicle.commit("a", 2)
        second = await read_all(server, "/executions/a/events", first[-1]["id"])
        assert (numbers(first), numbers(second)) == ([1, 2, 3], [4, 5])

    over_http(scenario, stream_seconds_max=0.1)


def test_stopping_the_service_ends_the_streams_and_is_not_held_up_by_them() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        async with (
            connected(server, "/executions/a/events") as (_, single),
            connected(server, "/events") as (_, everything),
        ):
            await chronicle.commit("a")
            await single.take(1)
            await server.stop()
            assert [event async for event in single] == []
            assert len(await everything.take(2)) <= 1

    over_http(scenario)


def test_ids_hold_across_a_restart_of_the_service(tmp_path: Path) -> None:
    seen: dict[str, list[dict[str, Any]]] = {"/executions/a/events": [], "/events": []}

    async def before(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 3)
        for path, got in seen.items():
            async with connected(server, f"{path}?after=0") as (_, events):
                got.extend(await events.take(2))

    async def after(chronicle: Chronicle, server: Served) -> None:
        await chronicle.commit("a", 2)
        for path, got in seen.items():
            async with connected(server, path, got[-1]["id"]) as (_, events):
                got.extend(await events.take(3))
        await chronicle.finish("a")
        for path, got in seen.items():
            async with connected(server, path, got[-1]["id"]) as (_, events):
                got.extend(await events.take(1))
        for got in seen.values():
            assert numbers(got) == [1, 2, 3, 4, 5, 6]
            assert len({event["id"] for event in got}) == 6

    over_http(before, tmp_path / "work.db")
    over_http(after, tmp_path / "work.db")


def test_a_hundred_readers_of_one_execution_get_the_same_bytes() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")

        async def read() -> bytes:
            async with connected(server, "/executions/a/events") as (response, _):
                return await response.content.read()

        readers = [asyncio.create_task(read()) for _ in range(100)]
        await until(lambda: chronicle.live_events.streams == 100, "all readers listen")
        for _ in range(20):
            await chronicle.commit("a", 5)
        await chronicle.finish("a")
        texts = await asyncio.gather(*readers)
        assert len(set(texts)) == 1
        assert texts[0].count(b"event: transition") == 101

    over_http(scenario)


NODES = 5_000


class Sleeper:
    """A client that sends a request and then doesn't read.

    Its receive buffer is as small as the kernel allows.
    """

    async def ask(self, server: Served, path: str) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self.socket.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self.socket, ("127.0.0.1", server.port))
        await loop.sock_sendall(
            self.socket, f"GET /api/v1{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )

    async def lines(self) -> AsyncIterator[bytes]:
        """The body without its chunked encoding.

        Each chunk has a line of hexadecimal digits before it and an empty line behind it.
        """
        reader, writer = await asyncio.open_connection(sock=self.socket)
        await reader.readuntil(b"\r\n\r\n")
        try:
            while size := int(await reader.readline(), 16):
                for line in (await reader.readexactly(size)).splitlines(keepends=True):
                    yield line
                await reader.readexactly(2)
        finally:
            writer.close()


def test_a_client_that_does_not_read_holds_nobody_up_and_later_gets_every_event_once() -> None:
    document = {"name": "wide", "nodes": [{"id": f"n{n}", "handler": "noop"} for n in range(NODES)]}

    async def main() -> None:
        async with penstock.Engine(MemoryStores(time.time)) as engine:
            live_events = engine.service.live_events
            async with served(live_events) as server:
                slow, slow_of_all = Sleeper(), Sleeper()
                await slow_of_all.ask(server, "/events")
                execution = await engine.start(document)
                await slow.ask(server, f"/executions/{execution.id}/events")
                await until(lambda: live_events.streams == 2, "both wait")
                peak = 0
                ended = asyncio.ensure_future(execution.result())
                while not ended.done():
                    await asyncio.wait((ended,), timeout=0.002)
                    peak = max(peak, live_events.waiting)
                assert (await ended).completed  # while nobody reads
                assert live_events.streams == 2
                assert peak < 2 * (live_events._waiting_max + 1)
                events = [event async for event in Events(slow.lines())]
                assert events[-1]["event"] == "end"
                assert numbers(events) == list(range(1, len(events)))
                assert len(events) > 2 * NODES
                everything = Events(slow_of_all.lines())
                assert numbers(await everything.take(len(events) - 1)) == numbers(events)

    asyncio.run(main())


def test_a_client_that_goes_without_reading_frees_its_stream() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 3_000)
        sleeper = Sleeper()
        await sleeper.ask(server, "/executions/a/events")
        await until(lambda: chronicle.live_events.streams == 1, "it has begun")
        sleeper.socket.close()
        await until(lambda: chronicle.live_events.streams == 0, "it has gone")

    over_http(scenario)


def test_a_client_that_never_reads_loses_its_stream_after_the_longest_time() -> None:
    async def scenario(chronicle: Chronicle, server: Served) -> None:
        await chronicle.record_intents("a")
        await chronicle.commit("a", 3_000)
        sleeper = Sleeper()
        await sleeper.ask(server, "/executions/a/events")
        await until(lambda: chronicle.live_events.streams == 1, "it has begun")
        await until(lambda: chronicle.live_events.streams == 0, "its time is over")
        sleeper.socket.close()

    over_http(scenario, stream_seconds_max=0.2)


def opened(address: str, headers: dict[str, str] | None = None) -> Any:
    """The stream of all events, to be read line by line."""
    return urlopen(Request(f"{address}/api/v1/events", headers=headers or {}))  # noqa: S310 -- our own service


def test_the_streams_of_a_revoked_key_end_and_others_go_on() -> None:
    def scenario(address: str) -> None:
        api = Caller(address)
        with opened(address) as without_key:
            assert without_key.readline()
            admin = bearer(api.post("/keys", {"name": "admin", "scopes": ["admin"]}).body["key"])
            without_key.read()  # ends: there is a key now
        api_keys = [
            api.post("/keys", {"name": "reader", "scopes": ["read"]}, admin).body for _ in range(2)
        ]
        with ExitStack() as stack:
            ended, going = (
                stack.enter_context(opened(address, bearer(key["key"]))) for key in api_keys
            )
            assert ended.readline()
            assert api.call("DELETE", f"/keys/{api_keys[0]['id']}", headers=admin).status == 204
            ended.read()
            document = {"name": "one", "nodes": [{"id": "a", "handler": "noop"}]}
            assert api.post("/executions", {"definition": document}, admin).status == 201
            lines = iter(going.readline, b"")
            assert any(line.startswith(b"data: ") for line in lines), (
                "the other key's stream has the event"
            )

    over_whole_api(scenario, recheck_seconds=0.05)


def test_one_caller_cannot_have_all_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS_PER_CALLER_MAX", 3)
    with running_service(tmp_path) as service:
        api = Caller(service.address)
        admin = bearer(api.post("/keys", {"name": "admin", "scopes": ["admin"]}).body["key"])
        first, second = (
            bearer(api.post("/keys", {"name": "r", "scopes": ["read"]}, admin).body["key"])
            for _ in range(2)
        )
        with ExitStack() as stack:
            for _ in range(3):
                assert stack.enter_context(opened(service.address, first)).readline()
            refused = api.call("GET", "/events", headers=first)
            assert_problem(refused, 429, "too_many_streams")
            assert refused.headers["retry-after"]
            assert stack.enter_context(opened(service.address, second)).readline()

        def again() -> bool:
            with suppress(HTTPError), opened(service.address, first) as stream:
                return bool(stream.readline())
            return False

        until_now(again, "streams that ended make room")
