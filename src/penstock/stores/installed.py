"""Stores of other packages, found by their entry points.

    # in the pyproject.toml of a package
    [project.entry-points."penstock.stores"]
    mystore = "my_package:MyStores"

Then `mystore://…` is an address for `PENSTOCK_STORE`, `--store` and `Engine`. See docs/stores.md.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from penstock.config import Settings, installed_stores, is_redis, scheme_of
from penstock.errors import SettingsError
from penstock.stores.base import Stores


class StoreOpener(Protocol):
    """What the entry point names: a function, or the class of the stores itself."""

    def __call__(self, address: str, settings: Settings) -> Stores:
        """Stores that aren't open yet. Raises `SettingsError` for an address that can't be used."""


class InstalledStore(NamedTuple):
    """The store of another package, as its entry point names it."""

    opener: StoreOpener
    is_shared: bool
    """Whether several processes may have the same store open at once.

    Then `penstock api`, `orchestrator` and `worker` run on it. It is asked before there are stores
    whose `topology` would say it.
    """


def installed_store(address: str) -> InstalledStore | None:
    """The installed store of an address; None if no package has a store for it.

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
    # an attribute of the function or class, which it may lack: another package's code
    is_shared = getattr(opener, "is_shared", False) is True
    return InstalledStore(opener, is_shared)


def is_shared(address: str) -> bool:
    """Whether several processes may have this store open at once."""
    if is_redis(address):
        return True
    store = installed_store(address)
    return store is not None and store.is_shared
