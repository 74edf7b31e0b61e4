"""The API keys of a store, for the command line, also while a server has the store open."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from penstock.config import STORE_SCHEMES, Settings
from penstock.errors import SchemaMismatch, SettingsError, StoreError
from penstock.service.keys import Keys
from penstock.stores.opening import open_stores


@asynccontextmanager
async def open_keys(settings: Settings, *, make: bool = False) -> AsyncIterator[Keys]:
    """Open the API keys of a store.

    `make` creates a store file that doesn't exist, for the first key of a new service.
    """
    scheme, _, rest = settings.store.partition("://")
    if scheme == "memory":
        raise SettingsError(
            "a store in memory ends with this command, and its keys too; name a file with --store"
        )
    path = Path(rest[1:])
    missing = scheme == "sqlite" and not path.exists()  # noqa: ASYNC240 -- of the CLI alone
    if missing and not make:
        raise StoreError(f"there is no store {path}; name another with --store")

    if scheme != "sqlite" or missing:
        stores = open_stores(settings.store, settings)
        try:
            if scheme not in STORE_SCHEMES:  # our own have a cold store before they are open
                await stores.open()
            yield Keys(stores.cold.api_keys)
        finally:
            await stores.close()
        return

    async with _open_file_in_use(path) as keys:
        yield keys


@asynccontextmanager
async def _open_file_in_use(path: Path) -> AsyncIterator[Keys]:
    """Open the API keys in a SQLite file, without the lock that excludes a second engine.

    SQLite lets two processes write in turns.
    """
    # imported here, so that a command loads only the store that it uses
    from penstock.stores.sqlite.api_keys import SqliteApiKeys  # noqa: PLC0415
    from penstock.stores.sqlite.lock import name_in_use  # noqa: PLC0415
    from penstock.stores.sqlite.reader import Reader  # noqa: PLC0415
    from penstock.stores.sqlite.writer import Writer  # noqa: PLC0415

    _check_file(path)
    # under another name than the server's, SQLite would write a second log and corrupt the file
    path = name_in_use(path)
    writer = Writer(path)
    reader = Reader(path)
    try:
        yield Keys(SqliteApiKeys(writer, reader))
    finally:
        await writer.close()
        reader.close()


def _check_file(path: Path) -> None:
    """Check a file before it is opened for writing.

    A file of another program, or of another version of Penstock, must not be changed.
    """
    from penstock.stores.sqlite import SCHEMA_VERSION, UPDATES  # noqa: PLC0415

    try:
        with closing(sqlite3.connect(path)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path} isn't a store of Penstock: {error}") from None
    if row is None or str(row[0]) not in (SCHEMA_VERSION, *UPDATES):
        schema = row[0] if row else "none"
        raise SchemaMismatch(
            f"{path} has schema {schema}; this version of Penstock uses {SCHEMA_VERSION}"
        )
