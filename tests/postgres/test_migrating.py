"""The schema: made once, whoever asks and how often; refused where it isn't ours or is newer."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine

from penstock.errors import SchemaMismatch, SettingsError, StoreError, StoreUnavailable
from penstock.stores.postgres import migrating
from penstock.stores.postgres.cold import PostgresColdStore
from penstock.stores.postgres.migrating import migrate
from penstock.stores.postgres.schema import SCHEMA, VERSION_TABLE
from penstock.stores.postgres.tables import metadata
from tests.postgres.opened import database_of_schema, with_opened
from tests.servers import bare_database_url, database_url


def test_migrations_lead_to_the_tables_that_are_declared() -> None:
    url = database_url()
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool
    )
    with engine.connect() as connection:
        options = {
            "version_table": VERSION_TABLE,
            "compare_type": True,
            "compare_server_default": True,
        }
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        )
    engine.dispose()


def test_the_schema_that_is_asked_for_is_that_of_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrating.__file__).with_name("migrations")))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA]


def test_a_second_migration_changes_nothing() -> None:
    url = bare_database_url()
    migrate(url, 3)
    first = _meta(url)
    migrate(url)
    migrate(url, 3)
    assert _meta(url) == first
    assert first["partitions"] == "3"
    assert asyncio.run(with_opened(url, _shape)) == (3, first["store_id"])


def test_a_database_of_the_first_schema_is_brought_up_to_date_in_place_with_what_is_in_it() -> None:
    url = database_of_schema("0001", partitions=2)
    _execute(url, "UPDATE partitions SET commit_number = 1000007, generation = 4 WHERE number = 1")
    with pytest.raises(SchemaMismatch, match="penstock migrate"):
        asyncio.run(with_opened(url, _shape))
    migrate(url)

    async def claims(store: PostgresColdStore) -> tuple[int, int]:
        claimed = await store.claims.claim(1, "orchestrator-1", "server-1")
        assert claimed is not None
        return claimed.commit_number, await store.claims.begin_rebuild(1, claimed.term, 0)

    assert asyncio.run(with_opened(url, claims)) == (1_000_007, 5)


def test_a_new_database_has_eight_partitions_and_an_id_of_its_own() -> None:
    urls = [bare_database_url(), bare_database_url()]
    for url in urls:
        migrate(url)
    shapes = [asyncio.run(with_opened(url, _shape)) for url in urls]
    assert [partitions for partitions, _ in shapes] == [8, 8]
    assert shapes[0][1] != shapes[1][1]


def test_several_processes_may_migrate_at_once() -> None:
    url = bare_database_url()
    text = f"from penstock.stores.postgres.migrating import migrate; migrate({url!r}, 2)"
    processes = [
        subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.PIPE) for _ in range(3)
    ]
    for process in processes:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said.decode()
    assert asyncio.run(with_opened(url, _shape))[0] == 2


def test_another_number_of_partitions_is_refused() -> None:
    url = database_url(2)
    with pytest.raises(SettingsError, match="made with 2 partitions"):
        migrate(url, 4)
    with pytest.raises(SettingsError, match="made with 2 partitions"):
        asyncio.run(_open(PostgresColdStore(url, partitions=4)))
    asyncio.run(_open(PostgresColdStore(url, partitions=2)))
    for number in (0, -1, 100_000):
        with pytest.raises(SettingsError, match="1 to 1024"):
            migrate(bare_database_url(), number)


def test_a_database_without_a_schema_says_what_to_do() -> None:
    with pytest.raises(SchemaMismatch, match="has no Penstock schema; run `penstock migrate`"):
        asyncio.run(_open(PostgresColdStore(bare_database_url())))


def test_an_older_schema_says_what_to_do_and_a_newer_one_that_it_is_newer() -> None:
    url = bare_database_url()
    migrate(url)
    _execute(url, "UPDATE penstock_version SET version_num = '0000'")
    with pytest.raises(SchemaMismatch, match="run `penstock migrate`"):
        asyncio.run(_open(PostgresColdStore(url)))
    _execute(url, "UPDATE penstock_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match=r"9999, newer than this version .* update Penstock"):
        asyncio.run(_open(PostgresColdStore(url)))
    with pytest.raises(SchemaMismatch, match="newer"):
        migrate(url)


def test_a_database_that_was_emptied_says_what_to_do() -> None:
    url = bare_database_url()
    migrate(url)
    _execute(url, "DELETE FROM meta")
    with pytest.raises(SchemaMismatch, match="has been emptied; run `penstock migrate`"):
        asyncio.run(_open(PostgresColdStore(url)))


def test_a_database_that_cannot_hold_every_text_is_refused() -> None:
    url, name = bare_database_url(), f"ascii_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE "
            "template0".encode()
        )
        try:
            with pytest.raises(StoreError, match="ENCODING 'UTF8'"):
                migrate(urlunsplit(urlsplit(url)._replace(path=f"/{name}")))
        finally:
            connection.execute(f"DROP DATABASE {name}".encode())


def test_tables_of_somebody_else_are_left_alone() -> None:
    url = bare_database_url()
    _execute(url, "CREATE TABLE executions (theirs integer)")
    with pytest.raises(SchemaMismatch, match="use a database of its own"):
        migrate(url)
    _execute(url, "SELECT theirs FROM executions")
    with pytest.raises(SchemaMismatch, match="penstock migrate"):  # nothing was left half-done
        asyncio.run(_open(PostgresColdStore(url)))


def test_no_error_shows_the_password() -> None:
    for url in (
        "postgresql://me:s3cret@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=me&password=s3cret",
    ):
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1") as refused:
            migrate(url)
        assert "s3cret" not in str(refused.value)
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1") as refused:
            asyncio.run(_open(PostgresColdStore(url)))
        assert "s3cret" not in str(refused.value)
    for url in (
        "postgresql://me:s3cret%zz@host/x",
        "postgresql://me:s3cret@host/x?nonsense=1",
        "mysql://me:s3cret@h/x",
    ):
        with pytest.raises(SettingsError, match="postgresql://USER") as wrong:
            PostgresColdStore(url)
        assert "s3cret" not in str(wrong.value)


def test_an_address_may_have_the_short_scheme_and_options() -> None:
    url = (
        database_url(1).replace("postgresql://", "postgres://")
        + "?sslmode=prefer&application_name=mine"
    )
    assert asyncio.run(with_opened(url, _shape))[0] == 1


async def _open(store: PostgresColdStore) -> None:
    try:
        await store.open()
    finally:
        await store.close()


async def _shape(store: PostgresColdStore) -> tuple[int, str]:
    return store.partitions, store.store_id


def _meta(url: str) -> dict[str, str]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT key, value FROM meta").fetchall())


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(statement.encode())
