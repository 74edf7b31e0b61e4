"""Retention: what is older than it is to be stored is deleted online.

Executions that ended long ago, or were never triggered, and rows of schedules' slots are deleted by
one process: the one whose orchestrator owns partition 0. Each API deletes lines of the audit log,
and what hooks were sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.errors import NotOpen, StoreError
from penstock.stores.base import Stores
from penstock.stores.cold import AuditLog, Hooks

log = logging.getLogger("penstock.runtime")

FIRST_SECONDS = 60.0
DAY_SECONDS = 86400.0
AUDIT_BATCH = 1000
SLOT_BATCH = 1000
SLOT_DAYS = 90
"""How long it is known what has become of a slot."""


async def run_retention(
    stores: Stores, days: float, is_mine: Callable[[], bool], *, each_seconds: float
) -> None:
    """Delete executions that are older than `days`, for ever. 0 days deletes nothing.

    `is_mine` says whether to do it this time.

    By the store's clock, which ends were written by: a host whose own clock is ahead would delete
    too much.
    """
    if not days:
        return
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


async def run_slot_retention(
    stores: Stores, is_mine: Callable[[], bool], *, each_seconds: float
) -> None:
    """Delete rows of schedules' slots that are older than `SLOT_DAYS`, for ever."""
    while True:
        await asyncio.sleep(each_seconds)
        if not is_mine():
            continue
        try:
            deleted = SLOT_BATCH
            while deleted == SLOT_BATCH:
                before = stores.hot.now() - SLOT_DAYS * DAY_SECONDS
                deleted = await stores.cold.schedules.forget_slots(before, SLOT_BATCH)
        except NotOpen:
            return
        except StoreError as error:
            log.info("old slots of schedules can't be deleted now: %s", error)


async def run_audit_retention(
    store: AuditLog,
    days: float,
    now: Callable[[], float],
    *,
    each_seconds: float,
) -> None:
    """Delete audit lines that are older than `days`, for ever. 0 days deletes nothing."""
    while days:
        try:
            deleted = AUDIT_BATCH
            while deleted == AUDIT_BATCH:
                deleted = await store.forget_audit(now() - days * DAY_SECONDS, AUDIT_BATCH)
        except StoreError as error:
            log.info("old lines of the audit log can't be deleted now: %s", error)
        except Exception:
            log.exception("old lines of the audit log can't be deleted")
        await asyncio.sleep(each_seconds)


async def run_hook_retention(
    store: Hooks, now: Callable[[], float], *, each_seconds: float
) -> None:
    """Delete requests to hooks, and the messages that they have had, once they are too old."""
    while True:
        try:
            await store.forget(now())
        except StoreError as error:
            log.info("old requests to hooks can't be deleted now: %s", error)
        except Exception:
            log.exception("old requests to hooks can't be deleted")
        await asyncio.sleep(each_seconds)
