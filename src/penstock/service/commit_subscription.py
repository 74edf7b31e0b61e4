"""The subscription to the commit feed, in a process that runs no orchestrator.

It is read only while somebody waits. Whoever waits reads the store first and is told of what comes
after. The subscription may begin later than that reading, or break off for a while; so whenever it
begins, everybody looks again. After that nothing can be missed: what was committed before is in the
store, what is committed after comes with the feed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.errors import StoreError
from penstock.stores.base import CommitFeed
from penstock.stores.records import FeedEntry

log = logging.getLogger("penstock.service")

PAUSE_SECONDS = 0.25
"""The pause before the next try, when the subscription has broken off."""
LINGER_SECONDS = 2.0
"""How long the subscription outlives the last subscriber.

Calls that wait come one after another, and beginning costs more than going on.
"""


class CommitSubscription:
    """Follows the commit feed while somebody is `subscribed`."""

    def __init__(
        self,
        source: CommitFeed,
        on_commit: Callable[[Sequence[FeedEntry]], None],
        look_again: Callable[[], Awaitable[None]],
        *,
        pause_seconds: float = PAUSE_SECONDS,
        linger_seconds: float = LINGER_SECONDS,
    ) -> None:
        self._source, self._on_commit, self._look_again = source, on_commit, look_again
        self._pause, self._linger = pause_seconds, linger_seconds
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._listeners, self._closed, self._broken = 0, False, False

    @contextmanager
    def subscribed(self) -> Iterator[None]:
        """Follow the feed meanwhile. To be entered before the store is read."""
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
                        "the subscription to commits broke off; it is tried again until it works: %s",
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
                begun, self._broken = True, False
