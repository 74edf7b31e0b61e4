"""What ended long ago leaves PostgreSQL by itself."""

from __future__ import annotations

import asyncio

import psycopg

from penstock.runtime import retention
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.retention import purge
from tests.servers import database_url
from tests.waiting import let_others_run, until

OLD = """
    INSERT INTO executions (
        created_at, ended_at, revision, generation, partition, version, id, workflow, phase, state,
        intent
    )
    VALUES
        (1, 2, 1, 1, 0, 1, 'old', 'flow', 'ended', 'COMPLETED', ''),
        (1, NULL, 1, 1, 0, 1, 'active', 'flow', 'started', 'RUNNING', '')
"""


class Forgetting:
    """What `run_retention` asks of stores; the clock is the store's, whatever the host's says."""

    def __init__(self, cold: PostgresColdStore) -> None:
        self.hot = self
        self._cold = cold
        self.clock = 6 * retention.DAY_SECONDS
        self.clock_reads = 0

    def now(self) -> float:
        self.clock_reads += 1
        return self.clock

    async def forget(self, before: float) -> int:
        return (await purge(self._cold, before)).executions


def test_only_who_has_the_first_partition_deletes_and_only_what_has_ended():
    url = database_url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(OLD)
        owns: list[bool] = []

        def names() -> set[str]:
            return {name for (name,) in connection.execute("SELECT id FROM executions").fetchall()}

        async def main() -> None:
            store = PostgresColdStore(url)
            await store.open()
            stores = Forgetting(store)
            running = retention.run_retention(
                stores,  # type: ignore[arg-type]
                7.0,
                lambda: bool(owns),
                each_seconds=0.0,
            )
            purging = asyncio.create_task(running)
            await let_others_run()
            assert names() == {"old", "active"}
            owns.append(True)
            await until(lambda: stores.clock_reads > 2)
            assert names() == {"old", "active"}
            stores.clock = 8 * retention.DAY_SECONDS
            await until(lambda: names() == {"active"})
            purging.cancel()
            await asyncio.gather(purging, return_exceptions=True)
            await store.close()

        asyncio.run(main())
