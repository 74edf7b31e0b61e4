"""Servers that can't be used are refused with the reason; ones that go away come back."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from penstock.contract.facts import started
from penstock.engine.events import ExecutionStarted
from penstock.errors import Fenced, SettingsError, StoreError, StoreUnavailable
from penstock.stores.fleet import OrchestratorDetails
from penstock.stores.redis import keys
from penstock.stores.redis.commits import FEED_BYTES, FEED_COMMITS, FeedSize
from penstock.stores.redis.connection import Link, Server
from penstock.stores.redis.connection.address import parse
from penstock.stores.redis.connection.errors import Broken, error_of
from penstock.stores.redis.connection.link import TRIES
from penstock.stores.redis.connection.server import check_version
from penstock.stores.redis.timing import DEFAULT_TIMING, RedisTiming
from tests.redis.stores_under_test import NAME, StoresUnderTest, open_stores
from tests.servers import redis_server, redis_url
from tests.waiting import let_others_run, until


@pytest.mark.parametrize(
    ("info", "fine"),
    [
        ({"redis_version": "7.0.15"}, True),
        ({"redis_version": "8.2.0"}, True),
        ({"redis_version": "6.2.14"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.5"}, False),
        ({}, False),
    ],
)
def test_redis_7_and_valkey_8_are_the_oldest(info: dict[str, str], *, fine: bool) -> None:
    if fine:
        check_version(info)
    else:
        with pytest.raises(SettingsError, match=r"or newer is needed"):
            check_version(info)


def test_a_server_that_is_too_old_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def old(*_: object, **__: object) -> list[bytes]:
        return [b"# Server\r\nredis_version:6.2.14\r\n", b""]

    async def scenario() -> None:
        connections = Server(redis_url())
        monkeypatch.setattr(connections.main, "pipeline", old)
        with pytest.raises(SettingsError, match=r"Redis 6\.2\.14"):
            await connections.open()
        await connections.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("FENCED somebody else", Fenced),
        ("OOM command not allowed", StoreUnavailable),
        ("READONLY You can't write against a read only replica.", StoreUnavailable),
        ("LOADING Redis is loading the dataset in memory", StoreUnavailable),
        ("MISCONF Redis is configured to save RDB snapshots", StoreUnavailable),
        ("WRONGTYPE Operation against a key", StoreError),
        ("NOPERM this user has no permissions", StoreError),
    ],
)
def test_an_error_of_redis_is_not_now_or_not_at_all(text: str, kind: type[StoreError]) -> None:
    error = error_of(text)
    assert type(error) is kind or (kind is not Fenced and isinstance(error, kind))
    assert isinstance(error, StoreUnavailable) == issubclass(kind, StoreUnavailable)


def test_a_url_that_makes_no_sense_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError) as refused:
        parse("redis://:hunter2@localhost:port/0")
    assert "hunter2" not in str(refused.value)


def test_a_server_that_throws_data_away_is_refused() -> None:
    with redis_server(append_only=None, extra=("--maxmemory-policy", "allkeys-lru")) as server:

        async def scenario() -> None:
            connections = Server(server.url)
            with pytest.raises(SettingsError, match="noeviction"):
                await connections.open()
            await connections.close()

        asyncio.run(scenario())


def test_a_server_that_is_not_there_says_so() -> None:
    async def scenario() -> None:
        connections = Server("redis://127.0.0.1:1/0")
        with pytest.raises(StoreUnavailable, match="can't be reached"):
            await connections.open()
        with pytest.raises(StoreUnavailable):
            connections.check_open()
        await connections.close()

    asyncio.run(scenario())


def test_keys_of_something_else_are_refused_before_anything_is_written() -> None:
    async def scenario() -> None:
        stores = StoresUnderTest(redis_url())
        await stores.server.open()
        await stores.call("SET", "penstock:{0}:timers", "mine")
        with pytest.raises(StoreError, match="used by something else"):
            await stores.own()
        assert await stores.call("KEYS", "*") == [b"penstock:{0}:timers"]
        await stores.server.close()

    asyncio.run(scenario())


def test_out_of_memory_nothing_new_is_accepted_but_what_frees_memory_is() -> None:
    async def body(stores: StoresUnderTest) -> None:
        await stores.commit(started(NAME))
        await stores.call("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="OOM"):
            await stores.hot.append([ExecutionStarted("execution-2")])
        await stores.commit()
        await stores.hot.append([ExecutionStarted(NAME)], own=True)
        await stores.queue.heartbeat("worker-1", {"echo"}, [])

        async def is_closed() -> bool:
            try:
                stores.hot.check_open()
            except StoreUnavailable as error:
                return "out of memory" in str(error)
            return False

        await until(is_closed, "the store to say that it is full")

    _alone(body)


class SettableClock:
    """The monotonic clock, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_seconds


def test_a_server_is_silent_when_it_was_asked_and_not_when_nobody_asked() -> None:
    """A process that stood still for a while has nothing to blame its server for.

    That happens on a busy machine.
    """
    with redis_server() as server:

        async def scenario() -> None:
            clock = SettableClock()
            timing = RedisTiming(silent_seconds=0.5)
            async with open_stores(server.url, timing=timing, clock=clock) as stores:
                # the moment at which the store was opened may be one at which a question is on its
                # way
                await until(
                    lambda: _is_open_later(stores, clock),
                    "no question to be without an answer",
                )
                os.kill(server.pid, signal.SIGSTOP)
                try:
                    await until(lambda: _is_refused(stores), "the server counts as silent")
                finally:
                    os.kill(server.pid, signal.SIGCONT)

        asyncio.run(scenario())


def _is_open_later(stores: StoresUnderTest, clock: SettableClock) -> bool:
    clock.ahead_seconds = 3600.0
    try:
        return not _is_refused(stores)
    finally:
        clock.ahead_seconds = 0.0


def _is_refused(stores: StoresUnderTest) -> bool:
    try:
        stores.hot.check_open()
    except StoreUnavailable as error:
        return "hasn't answered" in str(error)
    return False


def test_what_goes_away_comes_back() -> None:
    """A broken connection is opened again by the next call.

    Calls that were made meanwhile failed.
    """
    with redis_server(append_only="always") as server:

        async def scenario() -> None:
            async with open_stores(server.url) as stores:
                await stores.commit(started(NAME))
                waiting = asyncio.create_task(stores.hot.receive(0, 0, 10, 60.0))
                await asyncio.sleep(0)
                await asyncio.to_thread(server.kill)
                with pytest.raises(StoreUnavailable):
                    await waiting
                with pytest.raises(StoreUnavailable):
                    await stores.commit(started(NAME))
                await asyncio.to_thread(server.start)

                async def is_back() -> bool:
                    try:
                        stores.hot.check_open()
                        return await stores.hot.known([NAME]) == {NAME}
                    except StoreUnavailable:
                        return False

                await until(is_back, "the store to be back")
                await stores.hot.append([ExecutionStarted(NAME)])
                assert await stores.inbox() == [ExecutionStarted(NAME)]

        asyncio.run(scenario())


@pytest.mark.parametrize("changes_nothing", [True, False])
def test_only_what_changes_nothing_is_asked_again_when_its_connection_breaks(
    *, changes_nothing: bool
) -> None:
    """The call of somebody else on the same connection may be why it broke."""

    async def scenario() -> None:
        url = redis_url()
        link = Link(parse(url).servers[0], DEFAULT_TIMING)
        other = Link(parse(url).servers[0], DEFAULT_TIMING)
        mine = await link.call("CLIENT", "ID")
        call = link.ask if changes_nothing else link.call
        waiting = asyncio.create_task(call("BLPOP", "list", 60, seconds=60))
        await let_others_run()
        assert await other.call("CLIENT", "KILL", "ID", mine) == 1
        if changes_nothing:
            await until(lambda: link.is_open, "it is connected again")
            await other.call("RPUSH", "list", "answer")
            assert await waiting == [b"list", b"answer"]
        else:
            with pytest.raises(Broken):
                await waiting
        await link.close()
        await other.close()

    asyncio.run(scenario())


def test_a_connection_that_breaks_again_and_again_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        link = Link(parse(redis_url()).servers[0], DEFAULT_TIMING)
        calls: list[object] = []

        async def broken(*arguments: object, **_: object) -> None:
            calls.append(arguments)
            raise Broken("again")

        monkeypatch.setattr(link, "call", broken)
        with pytest.raises(StoreUnavailable, match="again"):
            await link.ask("GET", "key")
        assert len(calls) == TRIES

    asyncio.run(scenario())


def test_a_commit_whose_connection_breaks_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have happened: whoever reads the store again finds out."""

    async def scenario() -> None:
        async with open_stores() as stores:
            calls = []

            async def broken(*arguments: object, **_: object) -> None:
                calls.append(arguments)
                raise Broken("the connection broke")

            with monkeypatch.context() as patched:
                patched.setattr(stores.server.main, "call", broken)
                with pytest.raises(StoreUnavailable):
                    await stores.commit(started(NAME))
            assert len(calls) == 1

    asyncio.run(scenario())


def test_a_server_that_stands_still_counts_as_away() -> None:
    with redis_server(append_only=None) as server:

        async def scenario() -> None:
            async with open_stores(server.url) as stores:
                info = (await stores.call("INFO", "server")).decode()
                pid = int(info.partition("process_id:")[2].split()[0])
                os.kill(pid, signal.SIGSTOP)
                try:
                    waiting = asyncio.ensure_future(
                        stores.server.main._wire.call("PING", seconds=0.01)  # type: ignore[union-attr]
                    )
                    with pytest.raises(StoreUnavailable):
                        await waiting
                finally:
                    os.kill(pid, signal.SIGCONT)

        asyncio.run(scenario())


def test_a_call_that_was_given_up_takes_its_own_reply() -> None:
    async def body(stores: StoresUnderTest) -> None:
        calls = [asyncio.create_task(stores.call("ECHO", f"{number}")) for number in range(100)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        rest = await asyncio.gather(*calls[1::2])
        assert rest == [f"{number}".encode() for number in range(1, 100, 2)]

    _alone(body)


def _alone(body: Callable[[StoresUnderTest], Coroutine[Any, Any, None]]) -> None:
    with redis_server(append_only=None) as server:

        async def scenario() -> None:
            async with open_stores(server.url) as stores:
                await body(stores)

        asyncio.run(scenario())


def test_a_call_that_cannot_be_written_leaves_the_others_their_replies() -> None:
    async def body(stores: StoresUnderTest) -> None:
        with pytest.raises(UnicodeEncodeError):
            await stores.call("ECHO", "half a character: \ud800")
        assert await stores.call("ECHO", "whole") == b"whole"

    _alone(body)


def test_a_server_that_does_not_let_us_in_is_away_and_blames_nobody() -> None:
    with redis_server(append_only=None) as server:

        async def scenario() -> None:
            connections = Server(server.url.replace(server.password(), "wrong"))
            with pytest.raises(StoreUnavailable, match="WRONGPASS"):
                await connections.open()
            await connections.close()

        asyncio.run(scenario())


def test_a_lease_that_was_given_before_the_clock_went_back_does_not_lock_the_partition() -> None:
    async def body(stores: StoresUnderTest) -> None:
        assert await stores.hot.acquire(0, "owner-2", 5.0) is None
        seconds, _ = await stores.call("TIME")
        await stores.call("HSET", "penstock:{0}:lease", "expires", (int(seconds) + 2 * 3600) * 1000)
        assert await stores.hot.acquire(0, "owner-2", 5.0) is not None

    _alone(body)


def test_an_orchestrator_whose_word_has_run_out_or_makes_no_sense_is_not_there() -> None:
    async def scenario() -> None:
        async with open_stores() as stores:
            assert await stores.hot.announce("lives", 3600.0, OrchestratorDetails([], pid=1)) == [
                "lives"
            ]
            now = 1000 * int((await stores.call("TIME"))[0])
            words = {
                "ran out": f"{now - 5000}|1000|{{}}",
                "said it before the clock went back": f"{now + 7_200_000}|1000|{{}}",
                "another program": "here I am",
            }
            for name, word in words.items():
                await stores.call("HSET", keys.ORCHESTRATORS, name, word)
            assert await stores.hot.announce("lives", 3600.0, OrchestratorDetails([], pid=1)) == [
                "lives"
            ]
            assert await stores.call("HKEYS", keys.ORCHESTRATORS) == [b"lives"]

    asyncio.run(scenario())


def test_the_feed_keeps_fewer_commits_the_larger_they_are() -> None:
    small, large = FeedSize(), FeedSize()
    assert {small.commits(200) for _ in range(1000)} == {FEED_COMMITS}
    commits = [large.commits(100_000) for _ in range(1000)]
    assert commits[-1] * 100_000 <= 1.1 * FEED_BYTES
    assert max(commits) <= FEED_COMMITS
