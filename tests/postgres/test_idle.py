"""A server has few connections: what nobody uses is closed."""

import asyncio

from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.database import DatabaseTiming
from tests.postgres.opened import with_opened
from tests.servers import database_url
from tests.waiting import until


def test_connections_that_were_idle_for_a_while_are_closed_and_calls_go_on() -> None:
    async def scenario(store: PostgresColdStore) -> None:
        for _ in range(2):
            await asyncio.gather(*(store.executions.started(0) for _ in range(6)))
            idle = [connection for connection, _ in store.database._idle]
            await until(lambda: not store.database._idle)
            assert idle
            assert all(connection.closed for connection in idle)

    asyncio.run(with_opened(database_url(1), scenario, DatabaseTiming(idle_seconds=0.05)))


def test_a_connection_that_is_used_stays() -> None:
    async def scenario(store: PostgresColdStore) -> None:
        await asyncio.gather(*(store.executions.started(0) for _ in range(6)))
        last = store.database._idle[-1][0]
        store.database.timing = DatabaseTiming(idle_seconds=0.0)
        async with store.database.connection() as used:
            store.database._prune()
            assert used is last
            assert not store.database._idle
            assert not used.closed
        assert last.closed, "for no time at all it may be idle"

    asyncio.run(with_opened(database_url(1), scenario))
