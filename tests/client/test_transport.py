"""One call: what is sent, what is repeated and what isn't, what is said when nothing answers."""

import asyncio
import json
from collections.abc import Callable

import pytest
from aiohttp import web

import penstock
from penstock.client.transport import RATE_LIMIT_WAITS
from tests.worker.servers import Answer, Server, always, serving

STARTED = {
    "execution_id": "e1",
    "workflow": "w",
    "version": 1,
    "state": "PENDING",
    "created_at": "x",
    "labels": {},
}
JSON = "application/json"


def asking(answer: Answer, work: Callable, **options: object) -> tuple[object, Server]:
    async def run() -> tuple[object, Server]:
        async with serving(answer) as server, penstock.Client(server.url, **options) as client:  # type: ignore[arg-type]
            return await work(client), server

    return asyncio.run(run())


def failing(
    times: int, fail: Callable[[web.Request], web.Response], then: object = STARTED
) -> Answer:
    """The first calls fail like that, the next one is answered."""
    left = [times]

    async def answer(request: web.Request) -> web.StreamResponse:
        if left[0]:
            left[0] -= 1
            return fail(request)
        return web.json_response(then, status=201)

    return answer


def hang_up(request: web.Request) -> web.Response:
    """After the server has got the call: nobody knows whether it was done."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def test_a_start_whose_answer_is_lost_is_repeated_with_the_same_key():
    handle, server = asking(
        failing(2, hang_up), lambda client: client.start("w", {"x": 1}, labels={"a": "b"})
    )
    assert isinstance(handle, penstock.Execution)
    assert handle.id == "e1"
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert json.loads(server.bodies[-1]) == {
        "workflow": "w",
        "input": {"x": 1},
        "labels": {"a": "b"},
    }


def test_two_starts_have_two_keys():
    async def twice(client: penstock.Client) -> None:
        await client.start("w")
        await client.start("w", idempotency_key="mine")

    _, server = asking(failing(0, hang_up), twice)
    first, second = (request.headers["Idempotency-Key"] for request in server.requests)
    assert first != second == "mine"


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.execution("e").cancel(),
        lambda client: client.execution("e").retry(),
        lambda client: client.start_many("w", [{}]),
        lambda client: client.retry_dead_letters(workflow="w"),
    ],
)
def test_what_might_be_done_twice_is_not_repeated(call: Callable):
    async def refused(client: penstock.Client) -> None:
        with pytest.raises(penstock.Unreachable, match="broke before the answer came"):
            await call(client)

    _, server = asking(failing(1, hang_up), refused)
    assert len(server.requests) == 1


def test_reading_is_repeated_while_the_store_is_away():
    def away(_: web.Request) -> web.Response:
        body = json.dumps({"code": "unavailable", "detail": "the store is away", "status": 503})
        return web.Response(
            status=503, text=body, content_type=JSON, headers={"Retry-After": "0.01"}
        )

    view = {"execution_id": "e", "workflow": "w", "version": 1, "state": "RUNNING"}
    result, server = asking(failing(2, away, view), lambda client: client.execution("e").status())
    assert isinstance(result, penstock.Result)
    assert (result.state, len(server.requests)) == ("RUNNING", 3)

    async def refused(client: penstock.Client) -> None:
        with pytest.raises(penstock.Unreachable, match="the store is away"):
            await client.execution("e").status()

    asking(failing(9, away), refused, retry_seconds=0)


def limited(_: web.Request) -> web.Response:
    body = json.dumps({"code": "rate_limited", "detail": "60/minute", "status": 429})
    return web.Response(status=429, text=body, content_type=JSON, headers={"Retry-After": "0.01"})


def test_a_rate_limit_is_waited_out_also_by_what_may_not_be_repeated_otherwise():
    _, server = asking(failing(2, limited, None), lambda client: client.execution("e").cancel())
    assert len(server.requests) == 3


def test_a_rate_limit_that_never_ends_is_an_error():
    async def refused(client: penstock.Client) -> None:
        with pytest.raises(penstock.RateLimited, match="60/minute") as caught:
            await client.execution("e").cancel()
        assert caught.value.retry_after == 0.01

    _, server = asking(failing(99, limited), refused)
    assert len(server.requests) == RATE_LIMIT_WAITS


def test_nothing_there_says_what_to_do():
    async def refused() -> str:
        async with serving(always()) as server:
            url = server.url
        async with penstock.Client(url + "/", retry_seconds=0) as client:
            with pytest.raises(penstock.Unreachable) as caught:
                await client.execution("e").cancel()
        return str(caught.value).replace(url, "URL")

    assert asyncio.run(refused()) == (
        "no server answers at URL; start one with 'penstock dev', or name another with --url "
        "or PENSTOCK_URL"
    )


def test_a_server_that_comes_back_is_found_again():
    async def run() -> None:
        async with serving(always()) as server:
            port = server.port
        async with penstock.Client(f"http://127.0.0.1:{port}") as client:
            cancelling = asyncio.create_task(client.execution("e").cancel())
            await asyncio.sleep(0)
            runner = web.AppRunner(web.Application())
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            with pytest.raises(penstock.NotFound):
                await cancelling
            await runner.cleanup()

    asyncio.run(run())


def test_a_server_that_says_nothing_is_given_up():
    given_up = asyncio.Event()

    async def silence(_: web.Request) -> web.StreamResponse:
        await given_up.wait()
        return web.Response()

    async def refused(client: penstock.Client) -> None:
        with pytest.raises(penstock.Unreachable, match="didn't answer within"):
            await client.execution("e").status()
        given_up.set()

    asking(silence, refused, timeout_seconds=0.05, retry_seconds=0)


def test_the_key_is_sent_and_never_follows_a_redirect():
    async def redirected(client: penstock.Client) -> None:
        with pytest.raises(
            penstock.RequestFailed, match=r"redirects to http://elsewhere\.example/"
        ):
            await client.health()

    answer = always(status=302, headers={"Location": "http://elsewhere.example/"})
    _, server = asking(answer, redirected, api_key="secret")
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer secret"]


def test_another_program_at_that_address_is_told_apart():
    async def refused(client: penstock.Client) -> None:
        with pytest.raises(penstock.RequestFailed, match="is not Penstock"):
            await client.workers()

    asking(always(text="<html>hello</html>", content_type="text/html"), refused)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://", ""])
def test_an_address_that_is_none_is_refused_at_once(url: str):
    with pytest.raises(penstock.SettingsError, match="http://HOST:PORT"):
        penstock.Client(url)


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800", {1, 2}])
def test_what_is_not_json_is_refused_before_anything_is_sent(value: object):
    async def refused(client: penstock.Client) -> None:
        with pytest.raises(penstock.InvalidInput, match="can't be written as JSON"):
            await client.start("w", {"x": value})

    _, server = asking(always(), refused)
    assert not server.requests


def test_names_with_slashes_and_spaces_arrive_whole():
    async def look(client: penstock.Client) -> None:
        await client.execution("e").node("a/b c?é%2F")

    _, server = asking(failing(0, hang_up, {}), look)
    assert server.requests[0].raw_path == "/api/v1/executions/e/nodes/a%2Fb%20c%3F%C3%A9%252F"


def test_pages_are_fetched_as_they_are_needed():
    async def answer(request: web.Request) -> web.StreamResponse:
        first, size = int(request.query.get("cursor", 0)), int(request.query["limit"])
        items = [{"n": n} for n in range(first, min(first + size, 250))]
        return web.json_response(
            {"items": items, "next_cursor": str(first + size) if first + size < 250 else None}
        )

    async def look(client: penstock.Client) -> tuple[int, int]:
        everything = [
            item
            async for item in client.executions(state=["FAILED", "CANCELLED"], labels={"a": "b"})
        ]
        limited = [item async for item in client.dead_letters(limit=130)]
        return len(everything), len(limited)

    counts, server = asking(answer, look)
    assert counts == (250, 130)
    queries = [request.query_string for request in server.requests]
    assert queries == [
        "state=FAILED&state=CANCELLED&label=a:b&limit=100",
        "state=FAILED&state=CANCELLED&label=a:b&cursor=100&limit=100",
        "state=FAILED&state=CANCELLED&label=a:b&cursor=200&limit=100",
        "limit=100",
        "cursor=100&limit=30",
    ]


def test_of_many_starts_some_may_be_refused():
    error = {"code": "invalid_input", "detail": "x is missing", "status": 422}
    items = [STARTED, {"error": error}, {**STARTED, "execution_id": "e3"}]

    async def some(client: penstock.Client) -> None:
        with pytest.raises(
            penstock.PartlyStarted, match="1 of 3 executions were refused"
        ) as caught:
            await client.start_many("w", [{}, None, {}])
        assert {n: handle.id for n, handle in caught.value.started.items()} == {0: "e1", 2: "e3"}
        assert isinstance(caught.value.errors[1], penstock.InvalidInput)

    async def none(client: penstock.Client) -> None:
        with pytest.raises(penstock.InvalidInput, match="x is missing"):
            await client.start_many("w", [None])

    asking(failing(0, hang_up, {"items": items}), some)
    asking(failing(0, hang_up, {"items": [{"error": error}]}), none)
