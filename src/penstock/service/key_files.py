"""The keys of a store for a command line, also while a server has the store open."""

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
    """Open the keys of a store.

    `make`: a file that isn't there yet is made, for the first key of a service that hasn't run.
    """
    scheme, _, rest = settings.store.partition("://")
    if scheme == "memory":
        raise SettingsError(
            "keys of a store in memory are gone with this command; name a file with --store"
        )
    path = Path(rest[1:])
    missing = scheme == "sqlite" and not path.exists()  # noqa: ASYNC240 -- a command has nothing else to do
    if missing and not make:
        raise StoreError(f"there is no store {path}; name another with --store")
    if scheme != "sqlite" or missing:
        stores = open_stores(settings.store, settings)
        try:
            if scheme not in STORE_SCHEMES:  # our own give their cold store before they are open
                await stores.open()
            yield Keys(stores.cold)
        finally:
            await stores.close()
        return
    async with _in_file(path) as keys:
        yield keys


@asynccontextmanager
async def _in_file(path: Path) -> AsyncIterator[Keys]:
    """The keys in a file, past the lock that keeps a second engine out.

    SQLite lets two processes write in turns.
    """
    from penstock.stores.sqlite.api_keys import SqliteApiKeys  # noqa: PLC0415 -- each address pays for its own store only
    from penstock.stores.sqlite.lock import name_in_use  # noqa: PLC0415
    from penstock.stores.sqlite.reader import Reader  # noqa: PLC0415
    from penstock.stores.sqlite.writer import Writer  # noqa: PLC0415

    _check_file(path)
    path = name_in_use(path)  # a server may have it open by that name: two logs would tear it apart
    writer, reader = Writer(path), Reader(path)
    try:
        yield Keys(SqliteApiKeys(writer, reader))
    finally:
        await writer.close()
        reader.close()


def _check_file(path: Path) -> None:
    """Check a file before anything opens it to write.

    A file of another program, or of another Penstock, stays as it is.
    """
    from penstock.stores.sqlite import SCHEMA_VERSION, UPDATES  # noqa: PLC0415

    try:
        with closing(sqlite3.connect(path)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{path} isn't a store of Penstock: {error}") from None
    if row is None or str(row[0]) not in (SCHEMA_VERSION, *UPDATES):
        found = row[0] if row else "none"
        raise SchemaMismatch(
            f"{path} has schema {found}; this version of Penstock uses {SCHEMA_VERSION}"
        )
