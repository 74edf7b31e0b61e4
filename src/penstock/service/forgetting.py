"""Retention in an engine: what ended long ago, or was never triggered, is deleted while everything runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.errors import NotOpen, StoreError
from penstock.stores.base import Stores

log = logging.getLogger("penstock.service")

FIRST_SECONDS, EVERY_SECONDS = 60.0, 3600.0
DAY_SECONDS = 86400.0


async def run_retention(stores: Stores, days: float, is_mine: Callable[[], bool]) -> None:
    """Delete old executions for ever, by the store's clock.

    That is the one that ends were written by.

    `is_mine`: whether to do it now.
    """
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        try:
            gone = await stores.forget(stores.hot.now() - days * DAY_SECONDS) if is_mine() else 0
        except NotOpen:
            return
        except StoreError as error:
            log.warning(
                "what is older than %g days couldn't be deleted, trying again later: %s",
                days,
                error,
            )
        else:
            if gone:
                log.info("deleted %d executions that are older than %g days", gone, days)
        await asyncio.sleep(EVERY_SECONDS)
