"""Making and updating the schema, with Alembic and no `alembic.ini`."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from penstock.config import hide_password
from penstock.errors import SchemaMismatch, SettingsError, StoreError
from penstock.stores.postgres.cold import check_partitions
from penstock.stores.postgres.database import conninfo
from penstock.stores.postgres.failures import explained
from penstock.stores.postgres.schema import SCHEMA, VERSION_TABLE, check_schema

PARTITIONS = 8
PARTITIONS_MAX = 1024
LOCK = 7051_1954
"""The advisory lock of a migration; a second process waits for it, and then has nothing to do."""
OLDEST_SERVER = 130000


def migrate(database_url: str, partitions: int | None = None) -> None:
    """Bring the schema up to date; nothing happens if it is. All in one transaction.

    `partitions` is for a database that has none yet (then None means 8).

    Raises `StoreUnavailable`, `StoreError`, `SchemaMismatch` if the schema is newer than this
    version of Penstock, or `SettingsError` if the number of partitions is another.
    """
    if partitions is not None and not 1 <= partitions <= PARTITIONS_MAX:
        raise SettingsError(f"there can be 1 to {PARTITIONS_MAX} partitions, not {partitions}")
    target = conninfo(database_url)
    where = hide_password(database_url)
    # without a client_encoding, texts of a database that has no encoding are bytes, and SQLAlchemy
    # fails before the server is checked
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(target, client_encoding="utf8"),
        poolclass=NullPool,
    )
    try:
        with engine.begin() as connection:
            _migrate(connection, partitions, where)
    except DBAPIError as error:
        raise _failed(error.orig, where) from error
    except psycopg.Error as error:
        raise _failed(error, where) from error
    finally:
        engine.dispose()


def _migrate(connection: Connection, partitions: int | None, where: str) -> None:
    _check_server(connection, where)
    connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
    version = current_schema(connection)
    if version is not None and version > SCHEMA:
        check_schema(version, where)

    config = Config()
    scripts = str(Path(__file__).with_name("migrations"))
    config.set_main_option("script_location", scripts.replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    _fill(connection, partitions, where)


def current_schema(connection: Connection) -> str | None:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _check_server(connection: Connection, where: str) -> None:
    version, encoding = connection.exec_driver_sql(
        "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
    ).one()
    if version < OLDEST_SERVER:
        raise StoreError(f"{where} is PostgreSQL {version // 10000}; Penstock needs 13 or newer")
    if encoding != "UTF8":
        raise StoreError(
            f"{where} has the encoding {encoding}; create the database with ENCODING 'UTF8'"
        )


def _fill(connection: Connection, partitions: int | None, where: str) -> None:
    rows = connection.exec_driver_sql("SELECT value FROM meta WHERE key = 'partitions'").all()
    if rows:
        check_partitions(partitions, int(rows[0][0]), where)
        return
    count = PARTITIONS if partitions is None else partitions
    connection.exec_driver_sql(
        "INSERT INTO meta VALUES ('partitions', %s), ('store_id', %s)",
        (str(count), uuid.uuid4().hex),
    )
    connection.exec_driver_sql(
        "INSERT INTO partitions (number, commit_number, generation) "
        "SELECT number, 0, 1 FROM generate_series(0, %s) AS number",
        (count - 1,),
    )


def _failed(error: object, where: str) -> StoreError:
    if isinstance(error, psycopg.errors.DuplicateTable):
        text = " ".join(str(error).split())
        return SchemaMismatch(
            f"{where} has tables that aren't Penstock's ({text}); use a database of its own"
        )
    if isinstance(error, Exception):
        return explained(error, where)
    return StoreError(f"{where}: {error}")
