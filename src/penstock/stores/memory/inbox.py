"""An inbox in memory: numbered events, one reader, trimmed by what was committed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice

from penstock.engine.events import AnyEvent


class Inbox:
    def __init__(self) -> None:
        self._events: deque[tuple[int, AnyEvent]] = deque()
        self._last = 0
        self._waiters: set[asyncio.Future[None]] = set()
        """The owner's, and perhaps that of a former owner that doesn't know of its lost lease."""

    @property
    def last(self) -> int:
        return self._last

    def __len__(self) -> int:
        return len(self._events)

    def append(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            self._last += 1
            self._events.append((self._last, event))
        self.wake()

    def wake(self) -> None:
        for waiter in self._waiters:
            _release(waiter)

    def after(self, position: int, limit: int) -> list[tuple[int, AnyEvent]]:
        if self._last <= position:
            return []
        events = self._events
        skipped = max(position - events[0][0] + 1, 0) if events else 0
        return list(islice(events, skipped, skipped + limit))

    def trim(self, position: int) -> list[AnyEvent]:
        """Drop handled events, and answer them."""
        events = self._events
        handled: list[AnyEvent] = []
        while events and events[0][0] <= position:
            handled.append(events.popleft()[1])
        return handled

    async def wait(self, timeout_seconds: float) -> None:
        """Wait until something is appended.

        With a future and a timer, because `asyncio.wait_for` costs more than the rest of a task.
        """
        if timeout_seconds <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.add(waiter)
        timer = loop.call_later(timeout_seconds, _release, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
