"""What ended long ago leaves the store while everything runs. One orchestrator sees to it: partition 0's owner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from penstock.errors import StoreError

log = logging.getLogger("penstock.scaled")

FIRST_SECONDS, EVERY_SECONDS = 60.0, 3600.0
DAY_SECONDS = 86400.0


async def keep_purging(
    purge: Callable[[float], Awaitable[Mapping[str, int]]],
    days: float,
    is_mine: Callable[[], bool],
    now: Callable[[], float],
) -> None:
    """For ever. `purge` as in `PurgingStores`; `is_mine` says whether to do it this time; `now` is the store's clock.

    That is the one that ends were written by: a host whose own is ahead would delete too much.
    """
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        if is_mine():
            try:
                gone = await purge(now() - days * DAY_SECONDS)
            except StoreError as error:
                log.warning("what is older than %g days couldn't be deleted, trying again later: %s", days, error)
            else:
                log.info("deleted %d executions that ended more than %g days ago", gone["executions"], days)
        await asyncio.sleep(EVERY_SECONDS)
