"""Stores of other packages, found by their entry points.

    # in the pyproject.toml of a package
    [project.entry-points."penstock.stores"]
    mystore = "my_package:MyStores"

Then `mystore://…` is an address for `PENSTOCK_STORE`, `--store` and `Engine`. See docs/stores.md.
"""

from __future__ import annotations

from typing import Protocol

from penstock.config import Settings, installed_stores, is_redis, scheme_of
from penstock.errors import SettingsError
from penstock.stores.base import Stores


class StoreOpener(Protocol):
    """What the entry point names: a function, or the class of the stores itself.

    It may have an attribute `is_shared`: True means that several processes may have the same store
    open at once, so that `penstock api`, `orchestrator` and `worker` run on it. Without it one
    process at a time has the store.
    """

    def __call__(self, address: str, settings: Settings) -> Stores:
        """Stores that aren't open yet. Raises `SettingsError` for an address that can't be used."""


def installed_opener(address: str) -> StoreOpener | None:
    """The opener of an address; None if no package has a store for it.

    Raises `SettingsError` for one that can't be imported.
    """
    scheme = scheme_of(address)
    entry_point = installed_stores().get(scheme)
    if entry_point is None:
        return None
    where = f"the store {scheme}:// ({entry_point.value})"
    try:
        opener = entry_point.load()
    except Exception as error:
        # another package's code may raise anything: the message names the package
        raise SettingsError(f"{where} can't be loaded: {type(error).__name__}: {error}") from error
    if not callable(opener):
        raise SettingsError(
            f"{where} is no function and no class; its entry point must name what opens the store"
        )
    store_opener: StoreOpener = opener
    return store_opener


def is_shared(address: str) -> bool:
    """Whether several processes may have this store open at once."""
    if is_redis(address):
        return True
    return getattr(installed_opener(address), "is_shared", False) is True
