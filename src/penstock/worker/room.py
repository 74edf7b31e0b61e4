"""Room for large values in a worker's memory: tasks for which there is no room wait.

A worker runs hundreds of attempts at once. That is fine for small tasks, and hundreds of times too
much for tasks with configs and inputs of many megabytes: a short document can make as many of them
as it likes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

NO_WAITING: AbstractAsyncContextManager[Any] = nullcontext()


class Room:
    """Room for so many bytes.

    Whoever comes first is let in first; one that is larger than all of it is let in alone.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._used = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._turns = asyncio.Lock()

    @property
    def used(self) -> int:
        return self._used

    def has_room(self, size: int) -> bool:
        return not self._waiting and self._fits(size)

    def turn_for(self, size: int) -> AbstractAsyncContextManager[Any]:
        """The turn of an attempt that fetches, decodes, encodes or stores so much.

        Twenty at once would block the loop.
        """
        return self._turns if size else NO_WAITING

    async def enter(self, size: int) -> None:
        if self.has_room(size):
            self._used += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._let_in()  # those behind it may fit
            else:  # it was let in at the same moment
                self.leave(size)
            raise

    def leave(self, size: int) -> None:
        self._used -= size
        self._let_in()

    def _fits(self, size: int) -> bool:
        return self._used == 0 or self._used + size <= self._size

    def _let_in(self) -> None:
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.cancelled():
                if not self._fits(size):
                    return
                self._used += size
                turn.set_result(None)
            self._waiting.popleft()
