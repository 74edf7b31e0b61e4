"""Opening the stores of an address such as `sqlite:///work.db` or `memory://`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.config import REDIS_SCHEMES, Settings, hide_password, installed_stores
from penstock.errors import SettingsError
from penstock.stores.base import Stores
from penstock.stores.installed import installed_store
from penstock.stores.object_blobs import ObjectBlobs, is_object_store

if TYPE_CHECKING:
    from penstock.stores.sqlite.reading import ReadOnlySqliteStores


def open_stores(address: str, settings: Settings) -> Stores:
    scheme, _, rest = address.partition("://")
    if scheme == "memory":
        # imported here, so that an address loads the modules of its own store only
        from penstock.stores.memory import MemoryStores  # noqa: PLC0415

        objects = ObjectBlobs(str(settings.blobs)) if is_object_store(settings.blobs) else None
        return MemoryStores(time.time, blobs=objects)
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from penstock.stores.sqlite import SqliteStores  # noqa: PLC0415

        # as SQLAlchemy has it: three slashes for a relative path, four for an absolute one
        path = Path(rest[1:])
        if is_object_store(settings.blobs):
            return SqliteStores(path, objects=ObjectBlobs(str(settings.blobs)))
        return SqliteStores(path, Path(settings.blobs) if settings.blobs else None)
    if scheme in {*REDIS_SCHEMES, "unix"}:
        return _open_scaled(address, settings)
    store = installed_store(address)
    if store is not None:
        return store.opener(address, settings)
    installed = "".join(f", {scheme}://…" for scheme in installed_stores())
    raise SettingsError(
        f"the store {hide_password(address)!r} can't be opened; "
        f"use sqlite:///FILE, redis://…{installed} (or memory:// for tests), "
        "or install the package that has this store"
    )


def open_for_reading(address: str, settings: Settings) -> ReadOnlySqliteStores:
    """Open a store's file for reading only; another process may have it open."""
    scheme, _, rest = address.partition("://")
    if scheme != "sqlite" or not rest.startswith("/") or len(rest) == 1:
        raise SettingsError(
            f"the store {hide_password(address)!r} isn't a file that can be read beside its server;"
            " use sqlite:///FILE, or ask the server with --url"
        )
    from penstock.stores.sqlite.reading import ReadOnlySqliteStores  # noqa: PLC0415

    path = Path(rest[1:])
    if is_object_store(settings.blobs):
        return ReadOnlySqliteStores(path, objects=ObjectBlobs(str(settings.blobs)))
    return ReadOnlySqliteStores(path, Path(settings.blobs) if settings.blobs else None)


def _open_scaled(address: str, settings: Settings) -> Stores:
    try:
        from penstock.stores.scaled import ScaledStores  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{error.name} isn't installed; pip install 'penstock[scale]' brings what Redis needs"
        ) from None
    return ScaledStores(address, settings)
