"""A real Redis (or Valkey) and a real PostgreSQL for the tests of one process.

They are started when the first test needs them.

`TEST_REDIS_URL` and `TEST_DATABASE_URL` name servers to use instead; what is in their databases is
lost.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
import redis

from penstock.local import PostgresServer, RedisServer
from penstock.stores.postgres.migrating import migrate

PARTITIONS = 4
"""Of the databases that `database_url` gives, unless asked for others."""
FOLDERS = "penstock-test-"
REDIS_DATABASES = 512
REUSED_DATABASES = 8
"""Of each kind.

After these the oldest is emptied and given again: that is ten times faster than making one.
"""

SMALL_TABLE_BYTES = 256 * 1024
"""Up to here its rows are deleted, which is faster than new files for it and its indexes."""

_redis_numbers, _database_numbers = itertools.count(), itertools.count(1)
_migrated: dict[int, deque[str]] = {}
"""By number of partitions: names of databases that tests were given, the oldest first."""
_bare: deque[str] = deque()
_made: set[str] = set()


def redis_url() -> str:
    """An empty logical database. After the last one comes the first again."""
    base, first, step, count = _redis()
    number = (first + step * next(_redis_numbers)) % count
    url = urlunsplit(urlsplit(base)._replace(path=f"/{number}"))
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


def database_url(partitions: int = PARTITIONS) -> str:
    """A database of its own, with a current schema, empty, and a `store_id` that no other has."""
    reusable = _migrated.setdefault(partitions, deque())
    name = reusable.popleft() if len(reusable) >= REUSED_DATABASES else ""
    if not name or not _emptied(name, partitions):
        _drop(name)
        name = _new_database(_template(partitions))
    reusable.append(name)
    with psycopg.connect(_url(name)) as connection:
        connection.execute("UPDATE meta SET value = %s WHERE key = 'store_id'", (uuid.uuid4().hex,))
    return _url(name)


def bare_database_url() -> str:
    """A new database without a schema."""
    if len(_bare) >= REUSED_DATABASES:
        _drop(_bare.popleft())
    _bare.append(_new_database())
    return _url(_bare[-1])


@contextmanager
def redis_server(**options: Any) -> Iterator[RedisServer]:
    """One for a test alone, which may kill it. Options are those of `RedisServer`."""
    with open_folder() as folder, RedisServer(folder / "redis", **options) as server:
        yield server


@contextmanager
def postgres_server(**options: Any) -> Iterator[PostgresServer]:
    """As `redis_server`. Its database has no schema."""
    with (
        open_folder() as folder,
        PostgresServer(folder / "postgres", **{"fsync": False, **options}) as server,
    ):
        yield server


@contextmanager
def open_folder() -> Iterator[Path]:
    """Unlike pytest's, one that everybody may pass through."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{FOLDERS}{os.getpid()}-"))
    folder.chmod(0o711)  # PostgreSQL may run as somebody else
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@cache
def _sweep() -> None:
    """What test processes left behind that were killed; their servers have ended with them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*-*"):
        pid = folder.name.removeprefix(FOLDERS).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _redis() -> tuple[str, int, int, int]:
    """The URL, and which databases are ours.

    The first one, how many processes use it too, how many databases there are.
    """
    url = os.environ.get("TEST_REDIS_URL")
    if not url:
        server = redis_server(append_only=None, extra=("--databases", str(REDIS_DATABASES)))
        return _until_exit(server).url, 0, 1, REDIS_DATABASES
    with redis.Redis.from_url(url) as client:
        count = int(client.config_get("databases")["databases"])
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    workers = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    return url, int(worker.removeprefix("gw")), int(workers), count


@cache
def _database() -> str:
    url = os.environ.get("TEST_DATABASE_URL")
    if url:
        return url
    server: PostgresServer = _until_exit(postgres_server())
    return server.url


@cache
def _admin() -> psycopg.Connection:
    connection = psycopg.connect(_database(), autocommit=True)
    atexit.register(connection.close)
    if os.environ.get("TEST_DATABASE_URL"):
        atexit.register(_drop_all)
    return connection


def _until_exit(server: Any) -> Any:
    """The process of the tests is the server's scope: starting one takes a second."""
    running = server.__enter__()
    atexit.register(server.__exit__, None, None, None)
    return running


def _url(name: str) -> str:
    return urlunsplit(urlsplit(_database())._replace(path=f"/{name}"))


def _new_database(template: str = "") -> str:
    name = f"test_{os.getpid()}_{next(_database_numbers)}"
    how = f"TEMPLATE {template}" if template else ""
    if _admin().info.server_version >= 150000:  # before, there was no other way
        how += " STRATEGY FILE_COPY"
    _admin().execute(f"CREATE DATABASE {name} {how}".encode())
    _made.add(name)
    return name


def _drop(name: str) -> None:
    if name:
        _admin().execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        _made.discard(name)


def _drop_all() -> None:
    for name in sorted(_made):
        _drop(name)


@cache
def _template(partitions: int) -> str:
    """Migrated once, for all the others to be copied from."""
    name = _new_database()
    migrate(_url(name), partitions)
    return name


@cache
def _columns_of_template(partitions: int) -> list[Any]:
    with psycopg.connect(_url(_template(partitions))) as connection:
        return _columns(connection)


def _columns(connection: psycopg.Connection) -> list[Any]:
    """Every table's name, with each of its columns and its type.

    information_schema would take ten times as long.
    """
    return connection.execute(
        "SELECT relname, attname, atttypid FROM pg_class "
        "JOIN pg_attribute ON attrelid = pg_class.oid "
        "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' "
        "AND attnum > 0 AND NOT attisdropped "
        "ORDER BY 1, 2"
    ).fetchall()


def _emptied(name: str, partitions: int) -> bool:
    """As it was when it was new; False if somebody has changed its tables."""
    # whoever still uses it is too late
    _admin().execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
    )
    with psycopg.connect(_url(name)) as connection:
        columns = _columns(connection)
        if columns != _columns_of_template(partitions):
            return False
        _empty(
            connection,
            {table for table, *_ in columns} - {"penstock_version", "meta", "partitions"},
        )
        connection.execute(
            "UPDATE partitions SET commit_number = 0, generation = 1, claim_term = 0, holder = '', "
            "server = '', seen_at = 0, rebuilt_at = 0, rebuilt_on = ''"
        )
        stored = connection.execute("SELECT value FROM meta WHERE key = 'partitions'").fetchall()
        return stored == [(str(partitions),)]


def _empty(connection: psycopg.Connection, tables: set[str]) -> None:
    """Empty tables and reset sequences.

    TRUNCATE … RESTART IDENTITY would make new files for every table and index, however few the
    rows.
    """
    for table in sorted(tables):
        (size,) = connection.execute("SELECT pg_relation_size(%s)", (table,)).fetchone() or (0,)
        if size:
            connection.execute(
                f"{'TRUNCATE' if size > SMALL_TABLE_BYTES else 'DELETE FROM'} {table}".encode()
            )
    connection.execute(
        "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) "
        "FROM pg_sequences "
        "WHERE last_value IS NOT NULL"
    )
