"""Retention: deletes executions that ended long ago, while everything runs.

The owner of partition 0 does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.config import Timing
from penstock.errors import StoreError
from penstock.stores.base import Stores

log = logging.getLogger("penstock.scaled")

FIRST_SECONDS = 60.0
EVERY_SECONDS = Timing().retention_check_seconds
DAY_SECONDS = 86400.0


async def run_retention(
    stores: Stores, days: float, is_mine: Callable[[], bool], *, each_seconds: float | None = None
) -> None:
    """Delete old executions every `each_seconds`, for ever, whenever `is_mine` is true.

    The store's clock counts, by which ends were recorded: a host whose clock is ahead would delete
    too much.
    """
    each_seconds = EVERY_SECONDS if each_seconds is None else each_seconds
    await asyncio.sleep(min(FIRST_SECONDS, each_seconds))
    while True:
        if is_mine():
            try:
                forgotten = await stores.forget(stores.hot.now() - days * DAY_SECONDS)
            except StoreError as error:
                log.warning(
                    "executions older than %g days couldn't be deleted, trying again later: %s",
                    days,
                    error,
                )
            else:
                log.info("deleted %d executions that ended more than %g days ago", forgotten, days)
        await asyncio.sleep(each_seconds)
