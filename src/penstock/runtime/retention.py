"""Retention: executions that ended long ago, or were never triggered, are deleted online.

One process does it: the one whose orchestrator owns partition 0.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.errors import NotOpen, StoreError
from penstock.stores.base import Stores

log = logging.getLogger("penstock.runtime")

FIRST_SECONDS = 60.0
DAY_SECONDS = 86400.0


async def run_retention(
    stores: Stores, days: float, is_mine: Callable[[], bool], *, each_seconds: float
) -> None:
    """Delete old executions, for ever; `is_mine` says whether to do it this time.

    By the store's clock, which ends were written by: a host whose own clock is ahead would delete
    too much.
    """
    await asyncio.sleep(min(FIRST_SECONDS, each_seconds))
    while True:
        if is_mine():
            try:
                await _delete_older_than(stores, days)
            except NotOpen:
                return
        await asyncio.sleep(each_seconds)


async def _delete_older_than(stores: Stores, days: float) -> None:
    try:
        count = await stores.forget(stores.hot.now() - days * DAY_SECONDS)
    except NotOpen:
        raise
    except StoreError as error:
        log.warning(
            "executions older than %g days couldn't be deleted, trying again later: %s", days, error
        )
        return
    if count:
        log.info("deleted %d executions that are older than %g days", count, days)
