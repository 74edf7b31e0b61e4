"""The stores that all processes share, and what stands on them in each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

from penstock.config import Settings, hide_password, is_redis
from penstock.definition.model import HandlerDefaults
from penstock.errors import SettingsError
from penstock.orchestrator.plans import Plans
from penstock.sandbox import Sandbox
from penstock.service import Service
from penstock.stores.base import Stores
from penstock.stores.installed import is_shared
from penstock.stores.opening import open_stores
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered

Handlers: TypeAlias = Callable[[], Mapping[str, HandlerDefaults]]


@asynccontextmanager
async def open_scaled(settings: Settings) -> AsyncIterator[Stores]:
    """Raises `SettingsError` for a store that only one process can have, `StoreUnavailable` if one doesn't answer."""
    check_shared(settings)
    stores = open_stores(settings.store, settings)
    try:
        await stores.open()
        if stores.commit_feed is None:
            shown = hide_password(settings.store)
            raise SettingsError(
                f"the store {shown} has no `commit_feed`: a process wouldn't see what others commit"
            )
        yield stores
    finally:
        await stores.close()


def check_shared(settings: Settings) -> None:
    if not is_shared(settings.store):
        shown = hide_password(settings.store)
        raise SettingsError(
            f"the store {shown} is for one process, which 'penstock serve' is; for several set PENSTOCK_STORE=redis://…"
            " and PENSTOCK_DATABASE=postgresql://…, or let 'penstock up' start them"
        )
    if is_redis(settings.store) and settings.database is None:
        raise SettingsError(
            "PENSTOCK_DATABASE isn't set: with Redis as its store Penstock also needs PostgreSQL"
        )


def registry_of(
    settings: Settings, given: Registry | None = None, sandbox: Sandbox | None = None
) -> Registry:
    """The built-in handlers, and those that this process has imported (or `given` ones)."""
    built_in = (Handler(name, function) for name, function in builtin(settings, sandbox).items())
    return Registry([*built_in, *(registered if given is None else given)])


def handlers_of(settings: Settings, given: Registry | None = None) -> Handlers:
    """What is known here about handlers without asking the store; they run elsewhere."""
    return registry_of(settings, given).defaults


def service_over(stores: Stores, settings: Settings, given: Registry | None = None) -> Service:
    """A service in a process that neither decides nor runs handlers."""
    handlers = handlers_of(settings, given)
    return Service(stores, Plans(stores.cold, handlers), settings, handlers, stores.commit_feed)
