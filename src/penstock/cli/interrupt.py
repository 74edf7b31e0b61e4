"""Signals that stop a command: Ctrl-C, SIGTERM, and a closed terminal.

The first one asks the command to stop; the second one ends the process at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupt:
    """Signal handlers: the first signal sets `requested`, the second one ends the process.

    `at_once` is called before that. These are Python's own signal handlers, not those of the
    event loop: a task handler that blocks the loop must not be able to keep the process alive.
    """

    def __init__(self, at_once: Callable[[], None]) -> None:
        self._at_once = at_once
        self.requested = asyncio.Event()
        self.signal: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int | None:
        return None if self.signal is None else 128 + self.signal

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            # Ignored signals stay ignored: `nohup` relies on it, and so does a shell that starts
            # a background job.
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def request(self, number: int) -> None:
        """Act as if this signal had come, unless one has come already."""
        if self.signal is None:
            self.signal = number
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self.requested.set)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            self._at_once()
            os._exit(128 + number)
        self.request(number)
