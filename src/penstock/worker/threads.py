"""Threads for sync handlers. Daemons, because a handler that hangs must not keep the process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any


class _Call:
    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.function, self.loop = function, loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.taken = False


class ThreadRunner:
    """Starts threads as they are needed, up to `most`. One that hangs past its time is given up and replaced."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._alive = 0
        self._busy = 0

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        context = contextvars.copy_context()
        call = _Call(lambda: context.run(function, *arguments), asyncio.get_running_loop())
        self._busy += 1
        if self._alive < min(self._busy, self._most):
            self._alive += 1
            threading.Thread(target=self._serve, name="penstock-handler", daemon=True).start()
        self._calls.put(call)
        try:
            return await call.future
        except asyncio.CancelledError:
            if call.taken:
                self._alive -= 1  # its thread may hang for ever; it ends by itself when it comes back
            raise
        finally:
            self._busy -= 1

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            if call.future.cancelled():
                continue
            call.taken = True
            result, error = _attempt(call.function)
            if call.loop.is_closed():
                return
            call.loop.call_soon_threadsafe(_settle, call.future, result, error)
            if call.future.cancelled():
                return

    def stop(self) -> None:
        for _ in range(self._alive):
            self._calls.put(None)


def _attempt(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except BaseException as error:  # noqa: BLE001 -- SystemExit in a handler is that handler's failure
        return None, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError(f"the handler raised StopIteration: {error}"))
    else:
        future.set_exception(error)
