"""Retention in an embedded engine: old executions are deleted while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.errors import NotOpen, StoreError
from penstock.stores.base import Stores

log = logging.getLogger("penstock.service")

FIRST_SECONDS = 60.0
EVERY_SECONDS = 3600.0
DAY_SECONDS = 86400.0


async def run_retention(stores: Stores, days: float, is_mine: Callable[[], bool]) -> None:
    """Delete, again and again, executions that ended or were stored more than `days` ago.

    Time is the store's clock, by which the ends were recorded. `is_mine` says whether this process
    deletes now.
    """
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        try:
            deleted = 0
            if is_mine():
                deleted = await stores.forget(stores.hot.now() - days * DAY_SECONDS)
        except NotOpen:
            return
        except StoreError as error:
            log.warning(
                "executions older than %g days couldn't be deleted, trying again later: %s",
                days,
                error,
            )
        else:
            if deleted:
                log.info("deleted %d executions that are older than %g days", deleted, days)
        await asyncio.sleep(EVERY_SECONDS)
