"""A server that is away, stops in between, refuses to write or doesn't answer.

There is a clear error, and no hang.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from penstock.engine.states import ExecutionState
from penstock.errors import StoreError, StoreUnavailable
from penstock.local import PostgresServer
from penstock.stores.postgres import database
from penstock.stores.postgres.blobs import PostgresBlobs
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.database import DatabaseTiming
from penstock.stores.postgres.migrating import migrate
from penstock.stores.records import Search
from tests.faults.tcp import TcpProxy
from tests.postgres.opened import copy_of, new_intent, with_opened, with_store
from tests.servers import bare_database_url, database_url, postgres_server
from tests.waiting import let_others_run, until

Scenario = Callable[[PostgresColdStore, PostgresServer], Awaitable[None]]


def _on_own_server(scenario: Scenario) -> None:
    with postgres_server(fsync=True) as server:
        migrate(server.url, 1)
        asyncio.run(with_opened(server.url, lambda store: scenario(store, server)))


def test_a_server_that_is_down_is_unavailable_and_works_again_after_a_restart() -> None:
    async def scenario(store: PostgresColdStore, server: PostgresServer) -> None:
        for stop in (server.stop, server.kill):
            name = stop.__name__
            await store.executions.record_intents([new_intent(name)])
            # connections that are idle when it goes
            await asyncio.gather(*(store.executions.started(0) for _ in range(6)))
            await asyncio.to_thread(stop)
            for call in (
                store.executions.record_intents([new_intent("refused")]),
                store.executions.started(0),
                store.copies.put_copies(0, 1, []),
                store.api_keys.keys(),
            ):
                with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
                    await call
            await asyncio.to_thread(server.start)
            assert name in await store.executions.started(0)
        assert sorted(await store.executions.started(0)) == ["kill", "stop"]

    _on_own_server(scenario)


def test_a_restart_between_two_calls_is_not_noticed() -> None:
    async def scenario(store: PostgresColdStore, server: PostgresServer) -> None:
        await asyncio.gather(*(store.executions.started(0) for _ in range(6)))
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        for number in range(10):
            await store.executions.record_intents([new_intent(f"after-{number}")])
        assert len(await store.executions.started(0)) == 10

    _on_own_server(scenario)


@with_store
async def test_a_connection_that_an_administrator_ends_between_two_calls_is_not_noticed(
    store: PostgresColdStore,
) -> None:
    await store.executions.started(0)
    async with store.database.connection() as connection:
        ended = connection.info.backend_pid
        await connection.execute("SELECT 1")
    with psycopg.connect(_url(store), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (ended,))
    await store.executions.record_intents([new_intent("a")])
    assert await store.executions.started(0) == ["a"]


@with_store
async def test_a_read_whose_connection_breaks_is_made_again_and_a_write_is_not(
    store: PostgresColdStore,
) -> None:
    with psycopg.connect(_url(store), autocommit=True) as other:

        def end_whoever_waits() -> bool:
            waiting = (
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
                "AND wait_event = 'advisory'"
            )
            rows = other.execute(waiting).fetchall()
            for (pid,) in rows:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            return bool(rows)

        other.execute("SELECT pg_advisory_lock(1)")
        reading = asyncio.create_task(store.database.rows("SELECT 1 FROM pg_advisory_xact_lock(1)"))
        await until(end_whoever_waits, "it waits")
        other.execute("SELECT pg_advisory_unlock(1)")
        assert await reading == [(1,)]

        other.execute("SELECT pg_advisory_lock(1)")
        writing = asyncio.create_task(store.database.change("SELECT pg_advisory_xact_lock(1)"))
        await until(end_whoever_waits, "it waits")
        with pytest.raises(StoreUnavailable):
            await writing


def test_a_read_only_server_is_unavailable_for_writes_and_answers_reads() -> None:
    url = bare_database_url()
    migrate(url, 1)
    name = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())

    async def scenario(store: PostgresColdStore) -> None:
        assert await store.executions.started(0) == []
        for call in (
            store.executions.record_intents([new_intent("a")]),
            store.copies.put_copies(0, 1, []),
            PostgresBlobs(store.database).put(b"x"),
        ):
            with pytest.raises(StoreUnavailable, match="read-only"):
                await call

    asyncio.run(with_opened(url, scenario))


def test_a_call_that_gets_no_answer_ends_and_the_next_one_works() -> None:
    url = database_url(1)

    async def scenario(store: PostgresColdStore) -> None:
        await store.executions.record_intents([new_intent("a"), new_intent("b")])
        with psycopg.connect(url) as other:
            other.execute("SELECT 1 FROM executions WHERE id = 'a' FOR UPDATE")
            for _ in range(database.CONNECTIONS + 2):  # each must give its place back
                with pytest.raises(StoreUnavailable, match="hasn't answered"):
                    await store.executions.request_control("a", "cancel")
            await store.executions.request_control("b", "cancel")
        await store.executions.request_control("a", "cancel")
        assert set(await store.executions.control_requests(0)) == {"a", "b"}

    asyncio.run(with_opened(url, scenario, DatabaseTiming(call_seconds=0.3)))


def test_a_server_that_falls_silent_is_given_up_and_calls_are_refused_until_it_answers() -> None:
    """Half-open: what is sent goes nowhere, and the connection stays open.

    New connections are accepted and silent.
    """
    timing = DatabaseTiming(
        call_seconds=0.3, cancel_seconds=0.2, connect_seconds=0.3, probe_seconds=0.1
    )

    async def scenario(store: PostgresColdStore, proxy: TcpProxy) -> None:
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: store.executions.record_intents([new_intent("refused", idempotency_key="key")]),
            # a slow one, in a pipeline
            lambda: store.copies.put_copies(0, 1, [copy_of("a", ExecutionState.RUNNING, 2)]),
            lambda: store.executions.request_control("a", "cancel"),
            lambda: store.executions.search(Search()),
            lambda: PostgresBlobs(store.database).put(b"x" * 100_000),
        ]
        await store.executions.record_intents([new_intent("a")])
        # connections that are open when it falls silent
        await asyncio.gather(*(store.executions.started(0) for _ in range(6)))
        proxy.is_silent = True
        async with asyncio.timeout(9):  # less than what libpq and psycopg take by themselves
            for result in await asyncio.gather(
                *(call() for call in calls * 3), return_exceptions=True
            ):
                assert isinstance(result, StoreUnavailable)
            await until(lambda: store.database._is_silent)
            connections = proxy.accepted
            for _ in range(1000):  # none of these waits
                with pytest.raises(StoreUnavailable, match="doesn't answer"):
                    await store.executions.record_intents([new_intent("refused")])
        assert proxy.accepted - connections < 50
        proxy.is_silent = False
        await until(lambda: not store.database._is_silent)
        assert await store.executions.started(0) == ["a"]
        await store.executions.record_intents([new_intent("b")])

    with TcpProxy(database_url(1)) as proxy:
        asyncio.run(with_opened(proxy.url, lambda store: scenario(store, proxy), timing))


def test_a_call_that_is_cancelled_while_the_server_is_silent_ends_soon() -> None:
    """An owner that loses its lease waits for these before it gives its partition back."""
    timing = DatabaseTiming(call_seconds=60.0, cancel_seconds=0.1)

    async def scenario(store: PostgresColdStore, proxy: TcpProxy) -> None:
        proxy.is_silent = True
        copying = asyncio.create_task(
            store.copies.put_copies(0, 1, [copy_of("a", ExecutionState.RUNNING, 2)])
        )
        await until(lambda: store.database._in_use, "it is under way")
        await let_others_run()
        copying.cancel()
        # by itself psycopg waits for five seconds, and then for five more
        await asyncio.wait((copying,), timeout=4)
        assert copying.cancelled()

    with TcpProxy(database_url(1)) as proxy:
        asyncio.run(with_opened(proxy.url, lambda store: scenario(store, proxy), timing))


def test_a_slow_call_is_no_silence() -> None:
    async def scenario(store: PostgresColdStore) -> None:
        slow = asyncio.create_task(store.database.rows("SELECT pg_sleep(1)", seconds=20.0))
        await until(lambda: store.database._probing is not None, "it is doubted")
        await until(
            lambda: store.database._probing is None, "and the server has answered somebody else"
        )
        await store.executions.record_intents([new_intent("a")])
        assert len(await slow) == 1

    asyncio.run(with_opened(database_url(1), scenario, DatabaseTiming(call_seconds=0.1)))


@with_store
async def test_a_call_that_is_cancelled_leaves_nothing_behind(store: PostgresColdStore) -> None:
    for _ in range(database.CONNECTIONS * 2):
        task = asyncio.ensure_future(
            store.executions.record_intents([new_intent("never", idempotency_key="k")])
        )
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await store.executions.record_intents([new_intent("a")])
    assert "a" in await store.executions.started(0)


@with_store
async def test_a_call_that_is_cancelled_while_its_connection_breaks_is_cancelled(
    store: PostgresColdStore,
) -> None:
    async def call() -> None:
        async with store.database.connection():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                # what psycopg does, when it can't end a pipeline properly
                raise psycopg.OperationalError("the connection is lost") from None

    task = asyncio.ensure_future(call())
    await let_others_run()
    task.cancel()
    # and not a `StoreError`, after which it would be tried again
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_large_call_to_a_server_that_stops_reading_is_given_up_or_cancelled() -> None:
    """The call ends while it is being sent, where psycopg raises a `TypeError`."""

    async def scenario(store: PostgresColdStore, proxy: TcpProxy) -> None:
        await store.executions.started(0)
        proxy.reads.clear()
        values = (b"x" * 30_000_000,)
        with pytest.raises(StoreUnavailable, match="hasn't answered for"):
            await store.database.change("SELECT %s::bytea", values, seconds=0.2)

        proxy.reads.set()
        await store.executions.started(0)
        proxy.reads.clear()
        sending = asyncio.create_task(store.database.change("SELECT %s::bytea", values))
        await until(lambda: store.database._in_use, "it is under way")
        await let_others_run()
        sending.cancel()
        await asyncio.wait((sending,))
        assert sending.cancelled()

    with TcpProxy(database_url(1)) as proxy:
        asyncio.run(with_opened(proxy.url, lambda store: scenario(store, proxy)))


@with_store
async def test_more_calls_than_connections_wait_for_their_turn(store: PostgresColdStore) -> None:
    names = [f"e{number}" for number in range(database.CONNECTIONS * 5)]
    await asyncio.gather(*(store.executions.record_intents([new_intent(name)]) for name in names))
    assert sorted(await store.executions.started(0)) == sorted(names)


@with_store
async def test_a_refused_call_stores_nothing_and_harms_no_other(store: PostgresColdStore) -> None:
    await store.executions.record_intents([new_intent("a")])
    with pytest.raises(StoreError, match="by_id"):
        await store.executions.record_intents([new_intent("b"), new_intent("a")])
    with pytest.raises(StoreError, match="0x00"):
        await store.executions.record_intents([new_intent("c"), new_intent("nul \x00")])
    assert await store.executions.started(0) == ["a"]


def test_a_closed_store_says_so() -> None:
    async def scenario() -> None:
        store = PostgresColdStore(database_url(1))
        await store.open()
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.executions.started(0)

    asyncio.run(scenario())


def _url(store: PostgresColdStore) -> str:
    return store.database._conninfo
