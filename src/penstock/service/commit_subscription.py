"""The subscription to the commit feed, in a process that runs no orchestrator.

The feed is read only while somebody is subscribed. A subscriber reads the store first, and gets
later commits from the feed. The subscription may begin after that reading, or break off for a
while, so whenever it begins all subscribers read the store again. After that nothing can be missed:
what was committed before is in the store, and what is committed after comes with the feed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.errors import StoreError
from penstock.service.timing import ServiceTiming
from penstock.stores.base import CommitFeed
from penstock.stores.records import FeedEntry

log = logging.getLogger("penstock.service")


class CommitSubscription:
    """Follows the commit feed while somebody is `subscribed`."""

    def __init__(
        self,
        source: CommitFeed,
        on_commit: Callable[[Sequence[FeedEntry]], None],
        look_again: Callable[[], Awaitable[None]],
        timing: ServiceTiming,
    ) -> None:
        self._source = source
        self._on_commit = on_commit
        self._look_again = look_again
        self._pause = timing.subscription_pause_seconds
        self._linger = timing.subscription_linger_seconds
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._listeners = 0
        self._closed = False
        self._broken = False

    @contextmanager
    def subscribed(self) -> Iterator[None]:
        """Follow the feed while this context is entered. Enter it before reading the store."""
        self._begin()
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and not self._closed:
                self._leaving = asyncio.get_running_loop().call_later(self._linger, self._stop)

    def close(self) -> None:
        self._closed = True
        self._stop()

    def _begin(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._run())

    def _stop(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            lists = self._source.subscribe()
            try:
                await self._follow(lists)
            except StoreError as error:
                if not self._broken:
                    log.warning(
                        "the subscription to commits broke off; trying again until it works: %s",
                        error,
                    )
                self._broken = True
            except Exception:
                log.exception("the subscription to commits broke off")
            finally:
                if isinstance(lists, AsyncGenerator):
                    await lists.aclose()
            await asyncio.sleep(self._pause)

    async def _follow(self, lists: AsyncIterator[list[FeedEntry]]) -> None:
        begun = False
        async for feed_entries in lists:
            if feed_entries:
                self._on_commit(feed_entries)
            if not begun:
                await self._look_again()
                if self._broken:
                    log.info("the subscription to commits is back")
                begun = True
                self._broken = False
