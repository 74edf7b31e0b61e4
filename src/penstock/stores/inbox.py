"""An inbox in memory: numbered events, one reader, trimmed by what was committed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from penstock.engine.events import AnyEvent


class Inbox:
    def __init__(self) -> None:
        self._events: deque[tuple[int, AnyEvent]] = deque()
        self._last = 0
        self._waiter: asyncio.Future[None] | None = None

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
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def after(self, position: int, limit: int) -> list[tuple[int, AnyEvent]]:
        if self._last <= position:
            return []
        events = self._events
        skipped = position - events[0][0] + 1 if events else 0
        return [events[i] for i in range(max(skipped, 0), min(len(events), max(skipped, 0) + limit))]

    def trim(self, position: int) -> list[AnyEvent]:
        """Drop what is handled; answers it."""
        events, handled = self._events, []
        while events and events[0][0] <= position:
            handled.append(events.popleft()[1])
        return handled

    async def wait(self, timeout_seconds: float) -> None:
        """Until something is appended; a plain future and a timer, because `wait_for` costs more than the hop."""
        if timeout_seconds <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_later(timeout_seconds, self.wake)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
