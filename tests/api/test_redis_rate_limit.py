"""The rate limit through a real Redis.

It is exact for all processes together, and requests are served while Redis is away.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock.api.rate_limit import RateLimitMiddleware, parse_limit
from penstock.api.redis_rate_limit import AWAY_SECONDS, PREFIX, RedisRateLimitStorage
from tests.api.test_rate_limit import accept, ask, headers, peak_in_a_window
from tests.servers import redis_server, redis_url
from tests.waiting import PATIENCE_SECONDS, until

HAMMER = """
import asyncio, json, sys, time
from penstock.api.redis_rate_limit import RedisRateLimitStorage

async def main(url, key, limit, seconds):
    storage = RedisRateLimitStorage.at(url)
    let_in, refused, end = [], 0, time.monotonic() + seconds
    async def one():
        nonlocal refused
        while time.monotonic() < end:
            before = time.time()
            if (await storage.enter(key, limit, 1)).let_in:
                let_in.append((before, time.time()))
            else:
                refused += 1
    await asyncio.gather(*(one() for _ in range(8)))
    assert not storage._away
    await storage.close()
    print(json.dumps([let_in, refused]))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
"""


@asynccontextmanager
async def shared(count: int) -> AsyncIterator[list[RedisRateLimitStorage]]:
    """As so many processes have them."""
    url = redis_url()
    storages = [RedisRateLimitStorage.at(url) for _ in range(count)]
    try:
        yield storages
    finally:
        for storage in storages:
            await storage.close()


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def test_all_processes_share_one_window() -> None:
    async def scenario() -> None:
        async with shared(3) as processes:
            entered = [await processes[n % 3].enter("key:a", 5, 60) for n in range(7)]
            assert [(entry.let_in, entry.used) for entry in entered] == [
                (True, 1),
                (True, 2),
                (True, 3),
                (True, 4),
                (True, 5),
                (False, 5),
                (False, 5),
            ]
            assert 0 < entered[-1].reset_seconds <= 60
            assert (await processes[0].enter("key:b", 5, 60)).used == 1
            assert (await processes[1].enter("key:a", 5, 60, 0))[:2] == (True, 5)

    run(scenario)


def test_a_window_slides_and_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with shared(2) as (first, second):
            assert [(await first.enter("a", 2, 1)).let_in for _ in range(3)] == [True, True, False]

            async def lets_in() -> bool:
                return (await second.enter("a", 2, 1)).let_in

            await until(lets_in, "the first one leaves the window")
            client = first._client
            assert await client.keys("*") == [(PREFIX + "a").encode()]
            assert 0 < await client.pttl(PREFIX + "a") <= 2001

            async def forgotten() -> bool:
                return not await client.keys("*")

            await until(forgotten, "what nobody asks for is forgotten")

    run(scenario)


def test_only_calls_that_are_older_than_the_window_leave_it() -> None:
    async def scenario() -> None:
        async with shared(1) as (storage,):
            seconds, microseconds = await storage._client.time()
            now = seconds * 1_000_000 + microseconds
            old, recent = now - 90_000_000, now - 20_000_000
            await storage._client.rpush(PREFIX + "a", old, recent)
            assert (await storage.enter("a", 2, 60))[:2] == (True, 2)
            kept = [int(at) for at in await storage._client.lrange(PREFIX + "a", 0, -1)]
            assert kept[0] == recent
            assert len(kept) == 2

    run(scenario)


def test_a_clock_that_was_set_back_far_locks_nobody_out() -> None:
    async def scenario() -> None:
        async with shared(1) as (storage,):
            ahead = int((time.time() + 3600) * 1_000_000)
            await storage._client.rpush(PREFIX + "a", ahead, ahead)
            assert (await storage.enter("a", 2, 1))[:2] == (True, 1)
            near = int((time.time() + 30) * 1_000_000)
            await storage._client.rpush(PREFIX + "b", near, near)
            refused = await storage.enter("b", 2, 60)
            assert refused[:2] == (False, 2)
            assert refused.reset_seconds <= 60

    run(scenario)


def test_many_processes_never_get_more_than_the_limit_in_any_window() -> None:
    url = redis_url()
    command = [sys.executable, "-c", HAMMER, url, "busy", "20", "3.2"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = [json.loads(process.communicate()[0]) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    calls = [call for let_in, _ in answers for call in let_in]
    assert sum(refused for _, refused in answers) > 50
    assert sum(bool(let_in) for let_in, _ in answers) > 1
    # a call was let in at some moment between its two times: more than the limit can't have been
    # within a window
    surely_within = [
        sum(1 for begin, end in calls if begin >= first and end < first + 1.0) for first, _ in calls
    ]
    assert max(surely_within) <= 20
    assert len(calls) >= 40


def test_by_the_servers_own_clock_the_limit_is_exact() -> None:
    async def scenario() -> None:
        async with shared(4) as processes:
            client = processes[0]._client
            begun = time.monotonic()
            times = set[bytes | str]()

            def is_enough() -> bool:
                seconds = time.monotonic() - begun
                return seconds > 2.5 and (len(times) > 100 or seconds > PATIENCE_SECONDS)

            async def hammer(storage: RedisRateLimitStorage) -> None:
                while not is_enough():
                    await storage.enter("a", 50, 1)
                    times.update(await client.lrange(PREFIX + "a", 0, -1))

            await asyncio.gather(*(hammer(member) for member in processes for _ in range(3)))
            seconds = [int(member) / 1_000_000 for member in times]
            assert peak_in_a_window(seconds, 1.0) <= 50
            assert len(seconds) > 100

    run(scenario)


def test_the_answers_have_their_headers_with_one_call_to_redis() -> None:
    async def scenario() -> None:
        async with shared(1) as (storage,):
            script, calls = storage._script, []

            async def counted(**named: Any) -> Any:
                calls.append(named)
                return await script(**named)

            storage._script = counted  # type: ignore[assignment]
            app = RateLimitMiddleware(
                accept, changes=parse_limit("2/minute"), reads=None, storage=storage
            )
            answers = [await ask(app, "POST") for _ in range(3)]
            assert [headers(answer)[:2] for answer in answers] == [
                ("2", "1"),
                ("2", "0"),
                ("2", "0"),
            ]
            assert [answer.status for answer in answers] == [200, 200, 429]
            assert 1 <= int(answers[2].headers["retry-after"]) <= 60
            assert len(calls) == 3

    run(scenario)


def test_while_redis_is_away_each_process_goes_by_its_own_window(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        with redis_server() as server:
            storage = RedisRateLimitStorage.at(server.url)
            clock = [0.0]
            storage._clock = lambda: clock[0]
            assert (await storage.enter("a", 2, 60)).let_in
            server.kill()
            entered = [(await storage.enter("a", 2, 60)).let_in for _ in range(4)]
            assert entered == [True, True, False, False]
            server.start()
            assert not (await storage.enter("a", 2, 60)).let_in  # not asked again at once
            clock[0] += AWAY_SECONDS

            async def asked() -> bool:
                clock[0] += AWAY_SECONDS
                await storage.enter("back", 1000, 60)
                return not storage._away

            await until(asked, "Redis is asked again")
            await storage.close()

    with caplog.at_level(logging.INFO, "penstock.api"):
        run(scenario)
    messages = [record.getMessage() for record in caplog.records if record.name == "penstock.api"]
    assert len(messages) == 2
    assert "its own window" in messages[0]
    assert "again" in messages[1]
