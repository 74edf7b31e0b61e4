"""Streams that break off."""

import asyncio

import pytest
from aiohttp import web

import penstock
from tests.worker.servers import Server, serving


class Story:
    """Ten events; `pieces` says after how many each connection is cut."""

    def __init__(self, *pieces: int, last: int = 10) -> None:
        self.pieces = list(pieces)
        self.last = last

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/events"):
            return await self._stream(request)
        return web.json_response(
            {"execution_id": "e", "workflow": "w", "version": 1, "state": "COMPLETED"}
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"retry: 1000\n\n: still here\n\n")
        first = int(request.headers.get("Last-Event-ID", "0")) + 1
        until = min(self.last, first - 1 + self.pieces.pop(0)) if self.pieces else self.last
        for seq in range(first, until + 1):
            await response.write(
                f'id: {seq}\nevent: transition\ndata: {{"seq": {seq}}}\n\n'.encode()
            )
        if until == self.last:
            await response.write(b"id: end\nevent: end\ndata: {}\n\n")
        else:
            await response.write(f'id: {until + 1}\nevent: transition\ndata: {{"se'.encode())
            assert request.transport is not None
            request.transport.abort()
        return response


def followed(story: Story, after: int = 0) -> tuple[list[int], Server]:
    async def run() -> tuple[list[int], Server]:
        async with serving(story.answer) as server, penstock.Client(server.url) as client:
            return [event["seq"] async for event in client.execution("e").events(after)], server

    return asyncio.run(run())


def test_a_stream_that_breaks_goes_on_without_a_gap_or_a_repeat():
    seen, server = followed(Story(3, 0, 1, 2))
    assert seen == list(range(1, 11))
    assert [request.headers.get("Last-Event-ID") for request in server.requests] == [
        None,
        "3",
        "3",
        "4",
        "6",
    ]


def test_it_begins_after_the_event_that_is_named():
    seen, server = followed(Story(2), after=5)
    assert seen == [6, 7, 8, 9, 10]
    assert [request.headers.get("Last-Event-ID") for request in server.requests] == ["5", "7"]


def test_a_result_waits_through_broken_streams():
    async def run() -> None:
        async with serving(Story(1, 0, 4).answer) as server, penstock.Client(server.url) as client:
            result = await client.execution("e").result(timeout=20)
            assert result.state == "COMPLETED"

    asyncio.run(run())


def test_a_result_that_takes_too_long_is_a_timeout():
    given_up = asyncio.Event()

    async def never(request: web.Request) -> web.StreamResponse:
        await given_up.wait()
        return web.Response()

    async def run() -> None:
        async with serving(never) as server, penstock.Client(server.url) as client:
            with pytest.raises(TimeoutError):
                await client.execution("e").result(timeout=0.05)
            given_up.set()

    asyncio.run(run())


def test_waiting_goes_on_when_the_server_has_too_many_streams():
    turns = {"events": 0, "status": 0}

    async def full(request: web.Request) -> web.StreamResponse:
        kind = "events" if request.path.endswith("/events") else "status"
        turns[kind] += 1
        if kind == "status":
            state = "COMPLETED" if turns["status"] == 2 else "RUNNING"
            return web.json_response(
                {"execution_id": "e", "workflow": "w", "version": 1, "state": state}
            )
        problem = {"code": "too_many_streams", "detail": "500 streams are open", "status": 503}
        return web.json_response(problem, status=503, headers={"Retry-After": "0.001"})

    async def run() -> None:
        async with serving(full) as server, penstock.Client(server.url) as client:
            assert (await client.execution("e").result(timeout=20)).completed

    asyncio.run(run())
    assert turns["status"] == 2


def test_a_server_that_stays_away_ends_the_stream_with_an_error():
    async def run() -> None:
        async with serving(Story(3).answer) as server:
            client = penstock.Client(server.url, retry_seconds=0)
            events = client.execution("e").events()
            assert [(await anext(events))["seq"] for _ in range(3)] == [1, 2, 3]
            with pytest.raises(penstock.Unreachable):
                await anext(events)
            await client.close()

    asyncio.run(run())
