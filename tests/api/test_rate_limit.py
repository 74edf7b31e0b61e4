"""The rate limit: sliding windows for each key or address, exact under load."""

import asyncio
import http.client
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import penstock
from penstock.api.access import CALLER, Caller
from penstock.api.rate_limit import (
    MemoryRateLimitStorage,
    RateLimitMiddleware,
    limits_of,
    parse_limit,
)
from penstock.config import Settings
from penstock.errors import SettingsError
from tests.api.asgi import EVERYWHERE, Answer, Site, call
from tests.api.caller import Caller as ApiCaller
from tests.api.caller import assert_problem
from tests.api_server import running_service
from tests.waiting import until_now

CHANGE = ("POST", "/api/v1/executions/some-id/cancel")
READ = ("GET", "/api/v1/executions")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def headers(answer: Answer) -> tuple[str | None, str | None, str | None]:
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "retry-after")
    limit, remaining, retry = (answer.headers.get(name) for name in names)
    return limit, remaining, retry


@pytest.mark.parametrize(
    ("settings", "changes", "reads"),
    [
        ({"host": EVERYWHERE}, (60, 60), (600, 60)),
        ({}, None, None),
        ({"rate_limit": "5/second"}, (5, 1), None),
        ({"rate_limit_reads": "5/second"}, None, (5, 1)),
        ({"host": EVERYWHERE, "rate_limit": "5/hour"}, (5, 3600), (600, 60)),
        ({"host": EVERYWHERE, "rate_limit": "off"}, None, None),
        (
            {"host": EVERYWHERE, "rate_limit": "off", "rate_limit_reads": "9/day"},
            None,
            (9, 86400),
        ),
        ({"host": EVERYWHERE, "rate_limit_reads": "off"}, (60, 60), None),
    ],
)
def test_the_limits_that_the_settings_give(settings, changes, reads):
    limits = limits_of(Settings(**settings))
    assert limits == (changes, reads)


def test_the_limit_of_reads_is_a_setting(tmp_path):
    settings = Settings.load({}, {"PENSTOCK_RATE_LIMIT_READS": "10/Second"}, tmp_path)
    assert settings.rate_limit_reads == "10/second"
    with pytest.raises(SettingsError, match="RATE_LIMIT_READS"):
        Settings.load({}, {"PENSTOCK_RATE_LIMIT_READS": "many"}, tmp_path)


@pytest.mark.fault("security", "more calls than the rate limit allows")
def test_what_is_over_the_limit_is_told_when_to_come_back():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="3/minute", rate_limit_reads="4/minute")
        key = await site.key("admin")
        answers = [await site.call(*CHANGE, key) for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
        assert [headers(answer)[:2] for answer in answers] == [
            ("3", "2"),
            ("3", "1"),
            ("3", "0"),
            ("3", "0"),
        ]
        assert answers[3].code == "rate_limited"
        assert 1 <= int(answers[3].headers["retry-after"]) <= 60
        assert "retry-after" not in answers[2].headers

    asyncio.run(scenario())


def test_reads_and_changes_are_counted_apart():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="1/minute", rate_limit_reads="3/minute")
        key = await site.key("admin")
        assert [(await site.call(*CHANGE, key)).status for _ in range(2)] == [200, 429]
        reads = [await site.call(*READ, key) for _ in range(2)]
        reads.append(await site.call("POST", "/api/v1/workflows/validate", key))  # changes nothing
        assert [headers(answer)[:2] for answer in reads] == [("3", "2"), ("3", "1"), ("3", "0")]
        assert (await site.call(*READ, key)).status == 429

    asyncio.run(scenario())


def test_every_key_has_its_own_window_whatever_address_it_comes_from():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="2/minute")
        first, second = await site.key("admin"), await site.key("admin")
        answers = [
            (await site.call(*CHANGE, first, client=f"192.0.2.{n}")).status for n in range(3)
        ]
        assert answers == [200, 200, 429]
        assert (await site.call(*CHANGE, second)).status == 200

    asyncio.run(scenario())


def test_without_a_key_the_address_counts_and_no_header_changes_it():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="2/minute")
        forged = [
            {"X-Forwarded-For": f"203.0.113.{n}", "Authorization": f"Bearer pk_{n}"}
            for n in range(4)
        ]
        answers = [(await site.call(*CHANGE, headers)).status for headers in forged]
        assert answers == [401, 401, 429, 429]
        assert (await site.call(*CHANGE, client="192.0.2.8")).status == 401

    asyncio.run(scenario())


def test_behind_a_trusted_proxy_its_clients_count():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit="1/minute", trusted_proxies=("192.0.2.7",))
        seen = [
            (await site.call(*CHANGE, {"X-Forwarded-For": f"198.51.100.1, 203.0.113.{n}"})).status
            for n in (1, 2, 1)
        ]
        assert seen == [401, 401, 429]

    asyncio.run(scenario())


def test_health_checks_are_never_told_to_wait():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE, rate_limit_reads="1/minute")
        answers = [await site.call("GET", "/health/live") for _ in range(5)]
        assert [(answer.status, headers(answer)[:2]) for answer in answers] == [
            (200, ("1", "1"))
        ] * 5

    asyncio.run(scenario())


def test_on_loopback_there_is_no_limit_unless_it_is_set():
    async def scenario() -> None:
        free = Site()
        answers = [await free.call(*CHANGE) for _ in range(100)]
        assert {(answer.status, headers(answer)) for answer in answers} == {
            (200, (None, None, None))
        }
        limited = Site(rate_limit="1/hour")
        assert [(await limited.call(*CHANGE)).status for _ in range(2)] == [200, 429]
        assert (await limited.call(*READ)).status == 200

    asyncio.run(scenario())


def test_refusals_have_the_headers_too():
    async def scenario() -> None:
        site = Site(host=EVERYWHERE)
        read = await site.key("read")
        for answer in (
            await site.call(*READ),
            await site.call(*CHANGE, read),
            await site.call("GET", "/api/v1/nothing", read),
        ):
            assert answer.status in {401, 403, 404}
            assert None not in headers(answer)[:2]

    asyncio.run(scenario())


def test_a_window_slides():
    async def scenario() -> None:
        clock = Clock()
        app = RateLimitMiddleware(
            accept,
            changes=parse_limit("2/minute"),
            reads=None,
            storage=MemoryRateLimitStorage(clock),
        )
        at = {
            0: 200,
            30: 200,
            45: 429,
            60: 429,
            60.001: 200,
            89: 429,
            90.001: 200,
            120: 429,
            120.002: 200,
        }
        for seconds, status in at.items():
            clock.now = 1000.0 + seconds
            assert (await ask(app, "POST")).status == status, seconds

    asyncio.run(scenario())


def test_who_waits_as_long_as_told_gets_through():
    async def scenario() -> None:
        clock = Clock()
        app = RateLimitMiddleware(
            accept,
            changes=parse_limit("3/minute"),
            reads=None,
            storage=MemoryRateLimitStorage(clock),
        )
        for n in range(50):
            clock.now += n % 7 + 0.25
            answer = await ask(app, "POST")
            if answer.status == 429:
                clock.now += int(answer.headers["retry-after"]) + 0.001
                assert (await ask(app, "POST")).status == 200

    asyncio.run(scenario())


def test_addresses_that_are_gone_are_forgotten():
    async def scenario() -> None:
        clock = Clock()
        storage = MemoryRateLimitStorage(clock)
        for n in range(20_000):
            clock.now += 0.01
            assert (await storage.enter(f"address:{n}", 5, 1)).let_in
        assert len(storage._entries) < 3000
        assert await storage.enter("address:19999", 5, 1, 0) == (True, 1, 1.0)

    asyncio.run(scenario())


def test_a_limit_holds_also_while_addresses_come_and_go():
    async def scenario() -> None:
        clock = Clock()
        storage = MemoryRateLimitStorage(clock)
        let_in = []
        for n in range(10_000):
            clock.now += 0.001
            await storage.enter(f"address:{n}", 5, 1)
            if (await storage.enter("busy", 7, 1)).let_in:
                let_in.append(clock.now)
        assert peak_in_a_window(let_in, 1.0) == 7

    asyncio.run(scenario())


def peak_in_a_window(times: list[float], seconds: float) -> int:
    """Over all windows: each begins with one of the times."""
    ordered = sorted(times)
    return max(
        sum(1 for other in ordered[n:] if other - begin < seconds)
        for n, begin in enumerate(ordered)
    )


async def accept(_scope: Any, _receive: Any, send: Any) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})


async def ask(app: Any, method: str) -> Answer:
    async def identified(scope: Any, receive: Any, send: Any) -> None:
        scope[CALLER] = Caller(address="192.0.2.7")
        await app(scope, receive, send)

    return await call(identified, method, "/")


class Served:
    """A limited app on a real server.

    Its clock stands still for a request: what is let in is noted at exactly the time that the limit
    went by.
    """

    def __init__(self, limit: str) -> None:
        self.now = 0.0
        self.let_in: dict[str, list[float]] = {}
        self.app = RateLimitMiddleware(
            self.note,
            changes=parse_limit(limit),
            reads=None,
            storage=MemoryRateLimitStorage(lambda: self.now),
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.now = time.monotonic()
        who = dict(scope["headers"]).get(b"x-who", b"").decode()
        scope[CALLER] = Caller(key_id=who)
        await self.app(scope, receive, send)

    async def note(self, scope: Any, receive: Any, send: Any) -> None:
        self.let_in.setdefault(scope[CALLER].key_id, []).append(self.now)
        await accept(scope, receive, send)


@contextmanager
def serving(app: Any) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve([listening])), daemon=True
        )
        thread.start()
        until_now(lambda: server.started)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def hammer(port: int, who: str, seconds: float, counts: Counter[int]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    end = time.monotonic() + seconds
    mine: Counter[int] = Counter()
    while time.monotonic() < end:
        connection.request("POST", "/", headers={"X-Who": who})
        answer = connection.getresponse()
        answer.read()
        mine[answer.status] += 1
    connection.close()
    counts.update(mine)


def test_fifty_threads_never_get_more_than_the_limit_in_any_window():
    served = Served("20/second")
    counts: Counter[int] = Counter()
    with serving(served) as port:
        threads = [
            threading.Thread(target=hammer, args=(port, "one" if n < 40 else "other", 3.2, counts))
            for n in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(counts) == {200, 429}
    assert counts[429] > 50
    assert sum(len(times) for times in served.let_in.values()) == counts[200]
    for times in served.let_in.values():
        assert peak_in_a_window(times, 1.0) == 20
        assert len(times) >= 60  # and it isn't stricter than it says: 3 windows fit


def test_a_batch_counts_as_its_items(tmp_path: Path):
    document = {"name": "one", "nodes": [{"id": "a", "handler": "noop"}]}

    def batch(count: int) -> dict[str, Any]:
        return {"definition": document, "executions": [{}] * count}

    with running_service(tmp_path, rate_limit="20/hour") as service:
        api = ApiCaller(service.address)
        assert (
            assert_problem(api.post("/executions/batch", batch(30)), 413, "batch_too_large")[
                "status"
            ]
            == 413
        )
        first = api.post("/executions/batch", batch(15))  # the refused one was a call too
        assert (first.status, first.headers["x-ratelimit-remaining"]) == (200, "4")
        refused = api.post("/executions/batch", batch(5))
        assert_problem(refused, 429, "rate_limited")
        assert int(refused.headers["retry-after"]) > 0
        ids = [item["execution_id"] for item in first.body["items"]]
        assert_problem(
            api.post("/executions/bulk", {"action": "cancel", "execution_ids": ids[:4]}),
            429,
            "rate_limited",
        )
        assert_problem(api.post("/dead-letters/drop", {"ids": [1, 2, 3]}), 429, "rate_limited")
        assert len(api.items("/executions")) == 15, "nothing of a refused call is done"


def test_the_client_sends_smaller_batches_where_a_large_one_never_fits(tmp_path: Path):
    with (
        running_service(tmp_path, rate_limit="40/second") as service,
        penstock.SyncClient(service.address) as client,
    ):
        document = {"name": "one", "nodes": [{"id": "a", "handler": "noop"}]}
        assert len(client.start_many(document, [{}] * 60)) == 60
