"""Threads for sync handlers.

Daemons, because a handler that hangs must not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any


class _Call:
    def __init__(self, function: Callable[[], Any], begin: Callable[[], None] | None) -> None:
        self.function = function
        self.begin = begin
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.over = False
        """Answered or given up: whoever is first, its thread or the one who waits.

        Under the runner's lock.
        """


class ThreadRunner:
    """Runs sync handlers in threads, started as they are needed, up to `threads_max`.

    One that hangs past its time is given up and replaced.
    """

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._alive = 0
        self._busy = 0
        self._lock = threading.Lock()

    @property
    def has_room(self) -> bool:
        """Whether a call would be run at once."""
        return self._busy < self._threads_max

    async def run(
        self, begin: Callable[[], None], function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Run a call in a thread.

        `begin` is called on the loop when a thread takes one that had to wait.
        """
        context = contextvars.copy_context()
        call = _Call(lambda: context.run(function, *arguments), None if self.has_room else begin)
        self._busy += 1
        if self._alive < min(self._busy, self._threads_max):
            self._alive += 1
            threading.Thread(target=self._serve, name="penstock-handler", daemon=True).start()
        self._calls.put(call)
        try:
            return await call.future
        except asyncio.CancelledError:
            if self._close(call):
                # its thread may hang for ever; it ends by itself when it comes back
                self._alive -= 1
            raise
        finally:
            self._busy -= 1

    def _close(self, call: _Call) -> bool:
        """Close a call.

        Answers whether it was still open: who closes it decides about its thread.
        """
        with self._lock:
            was_open = not call.over
            call.over = True
        return was_open

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            if call.over:
                return
            if call.begin is not None:
                call.loop.call_soon_threadsafe(call.begin)
            result, error = _attempt(call.function)
            if not self._close(call) or call.loop.is_closed():
                return
            call.loop.call_soon_threadsafe(_resolve, call.future, result, error)

    def stop(self) -> None:
        for _ in range(self._alive):
            self._calls.put(None)


def _attempt(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except (asyncio.CancelledError, GeneratorExit, StopIteration) as error:
        # these mean something to whoever awaits; here they are just what a handler raised
        return None, RuntimeError(f"the handler raised {type(error).__name__}: {error}")
    # SystemExit in a handler is that handler's failure
    except BaseException as error:  # noqa: BLE001
        return None, error


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
