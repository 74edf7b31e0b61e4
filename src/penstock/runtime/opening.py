"""Opens the stores that all processes share, and builds services and registries on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

from penstock.config import Settings, hide_password, is_redis
from penstock.definition.model import HandlerDefaults
from penstock.errors import SettingsError
from penstock.sandbox import Sandbox
from penstock.service import Service
from penstock.service.timing import ServiceTiming
from penstock.stores.base import Stores
from penstock.stores.installed import is_shared
from penstock.stores.opening import open_stores
from penstock.stores.plan_cache import PlanCache
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered

Handlers: TypeAlias = Callable[[], Mapping[str, HandlerDefaults]]


@asynccontextmanager
async def open_scaled(settings: Settings) -> AsyncIterator[Stores]:
    """Open the shared stores.

    Raises `SettingsError` for a store that only one process can use, `StoreUnavailable` if a server
    doesn't answer.
    """
    check_shared(settings)
    stores = open_stores(settings.store, settings)
    try:
        await stores.open()
        if stores.commit_feed is None:
            address = hide_password(settings.store)
            raise SettingsError(
                f"the store {address} has no commit feed, which several processes need"
            )
        if stores.fleet is None:
            address = hide_password(settings.store)
            raise SettingsError(
                f"the store {address} doesn't list its workers and orchestrators (fleet), "
                "which several processes need"
            )
        yield stores
    finally:
        await stores.close()


def check_shared(settings: Settings) -> None:
    if not is_shared(settings.store):
        address = hide_password(settings.store)
        raise SettingsError(
            f"the store {address} is for one process, such as 'penstock serve'; for several "
            "processes set PENSTOCK_STORE=redis://… and PENSTOCK_DATABASE=postgresql://…, "
            "or let 'penstock up' start them"
        )
    if is_redis(settings.store) and settings.database is None:
        raise SettingsError("PENSTOCK_DATABASE isn't set; a store on Redis needs a PostgreSQL too")


def registry_of(
    settings: Settings, registry: Registry | None = None, sandbox: Sandbox | None = None
) -> Registry:
    """The built-in handlers, and those that this process has imported (or those of `registry`)."""
    built_in = builtin(settings, sandbox)
    own = registered if registry is None else registry
    return Registry([*(Handler(name, function) for name, function in built_in.items()), *own])


def handlers_of(settings: Settings, registry: Registry | None = None) -> Handlers:
    """What this process knows about handlers, which run elsewhere, without the store."""
    return registry_of(settings, registry).defaults


def service_over(
    stores: Stores,
    settings: Settings,
    registry: Registry | None = None,
    *,
    timing: ServiceTiming | None = None,
) -> Service:
    """A service in a process that neither decides nor runs handlers."""
    known = registry_of(settings, registry)
    return Service(
        stores,
        PlanCache(stores.cold, known.defaults),
        settings,
        known.defaults,
        stores.commit_feed,
        config_checks=known.config_checks,
        timing=timing,
    )
