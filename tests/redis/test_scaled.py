"""Redis and PostgreSQL as one store: whose Redis it is, and what each of them answers."""

import asyncio

import pytest

from penstock.config import Settings
from penstock.contract.facts import begin, ended, new_execution_ids, new_intent
from penstock.errors import NotFound, SchemaMismatch, SettingsError, StoreUnavailable
from penstock.stores.opening import open_stores
from penstock.stores.records import Search
from penstock.stores.scaled import ScaledStores
from tests.servers import database_url, redis_url


def test_a_redis_needs_a_database_beside_it() -> None:
    with pytest.raises(SettingsError, match="PENSTOCK_DATABASE"):
        open_stores("redis://:hunter2@localhost/0", Settings())


def test_a_redis_that_belongs_to_another_store_is_refused() -> None:
    store = redis_url()

    async def scenario() -> None:
        first = ScaledStores(store, Settings(database=database_url()))
        await first.open()
        await first.close()
        other = ScaledStores(store, Settings(database=database_url()))
        with pytest.raises(SettingsError, match="belongs to another Penstock database"):
            await other.open()

    asyncio.run(scenario())


def test_a_redis_that_is_laid_out_by_a_newer_version_is_refused() -> None:
    store, database = redis_url(), database_url()

    async def scenario() -> None:
        stores = ScaledStores(store, Settings(database=database))
        await stores.open()
        await stores.server.main.call("SET", "penstock:{fleet}:store", f"{stores.cold.store_id} 99")
        await stores.close()
        again = ScaledStores(store, Settings(database=database))
        with pytest.raises(SchemaMismatch, match="99"):
            await again.open()

    asyncio.run(scenario())


def test_a_wrong_number_of_partitions_is_refused() -> None:
    async def scenario() -> None:
        stores = ScaledStores(
            redis_url(), Settings(database=database_url(partitions=4), partitions=5)
        )
        with pytest.raises(SettingsError, match="4 partitions"):
            await stores.open()

    asyncio.run(scenario())


def test_what_redis_has_and_postgresql_has_not_heard_of_is_found_as_running() -> None:
    """And pages have no gap, although PostgreSQL can't tell which of its rows have begun."""

    async def scenario() -> None:
        stores = ScaledStores(redis_url(), Settings(database=database_url(partitions=1)))
        await stores.open()
        names = [name for name, _ in zip(new_execution_ids(stores), range(9), strict=False)]
        owner = await begin(stores, *names[::2])
        await stores.cold.executions.record_intents([new_intent(name) for name in names[1::2]])
        await owner.commit(ended(names[0]))
        begun, waiting = set(names[2::2]), set(names[1::2])
        for state, expected in (
            ("RUNNING", begun),
            ("PENDING", waiting),
            ("COMPLETED", {names[0]}),
        ):
            ids: list[str] = []
            before = None
            while page := await stores.cold.executions.search(
                Search(states=(state,), before=before, limit=2)
            ):
                ids += [row.execution_id for row in page]
                before = page[-1].n
            assert sorted(ids) == sorted(expected), state
        rows = {row.execution_id: row for row in await stores.cold.executions.search(Search())}
        assert {rows[name].started_at for name in begun} == {1001.0}
        assert {rows[name].started_at for name in waiting} == {None}
        await stores.close()

    asyncio.run(scenario())


def test_while_redis_is_away_only_what_has_ended_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: object) -> None:
        raise StoreUnavailable("Redis is away")

    async def scenario() -> None:
        stores = ScaledStores(redis_url(), Settings(database=database_url()))
        await stores.open()
        names = new_execution_ids(stores)
        over, runs = next(names), next(names)
        owner = await begin(stores, over, runs)
        await owner.commit(ended(over))
        monkeypatch.setattr(stores.hot, "changes", away)
        stored = await stores.cold.executions.execution(over)
        assert stored is not None
        assert stored.record.state == "COMPLETED"
        recent = await stores.cold.executions.since(over, 1)
        assert recent is not None
        assert recent.record.state == "COMPLETED"
        with pytest.raises(StoreUnavailable):
            await stores.cold.executions.execution(runs)
        with pytest.raises(StoreUnavailable):
            await stores.cold.executions.since(runs, 0)
        await stores.close()

    asyncio.run(scenario())


def test_what_runs_in_redis_and_has_no_row_in_postgresql_can_be_cancelled_all_the_same() -> None:
    """PostgreSQL was put back to an older copy, and the owner hasn't copied the execution since."""

    async def scenario() -> None:
        stores = ScaledStores(redis_url(), Settings(database=database_url()))
        await stores.open()
        try:
            name = next(new_execution_ids(stores))
            await begin(stores, name)
            await stores.cold.database.change("DELETE FROM executions")
            with pytest.raises(NotFound):
                await stores.cold.executions.request_control("unknown", "cancel")
            await stores.cold.executions.request_control(name, "cancel")
            assert [row.execution_id for row in await stores.cold.executions.search(Search())] == [
                name
            ]
            assert name in {
                execution_id
                for number in range(4)
                for execution_id in await stores.cold.executions.control_requests(number)
            }
        finally:
            await stores.close()

    asyncio.run(scenario())
