"""The loop watch: a thread that notices when a handler blocks the worker's loop, and logs which.

While one async handler computes, sleeps or waits without `await`, no other runs, and nothing is
fetched or reported.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from penstock.telemetry.metrics import Metrics
from penstock.telemetry.scope import current_scope
from penstock.worker import attempt as attempt_module
from penstock.worker.attempt import Attempt
from penstock.worker.timing import WorkerTiming

log = logging.getLogger("penstock.worker")


def _nothing() -> None:
    pass


class LoopWatch:
    """A thread that watches the loop.

    It calls `on_look` at each look, whatever the loop does.
    """

    def __init__(
        self,
        worker_id: str,
        attempts: Callable[[], Iterable[Attempt]],
        timing: WorkerTiming,
        metrics: Metrics | None = None,
        on_look: Callable[[], None] = _nothing,
    ) -> None:
        self._worker_id = worker_id
        self._attempts = attempts
        self._look_seconds = timing.loop_look_seconds
        self._blocked_seconds = timing.loop_blocked_seconds
        self._metrics = metrics
        self._on_look = on_look
        self._stopped = threading.Event()
        self._turned_at = 0.0
        self._is_blocked = False

    async def run(self) -> None:
        """Watch the loop until this is cancelled."""
        self._turned_at = time.monotonic()
        loop = asyncio.get_running_loop()
        thread_id = threading.get_ident()
        watcher = threading.Thread(
            target=self._look_on, args=(loop, thread_id), name="penstock-watch", daemon=True
        )
        watcher.start()
        try:
            while True:
                self._turned_at = time.monotonic()
                await asyncio.sleep(self._look_seconds)
        finally:
            self._stopped.set()

    def _look_on(self, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        before = time.monotonic()
        while not self._stopped.wait(self._look_seconds):
            now = time.monotonic()
            # who couldn't look either knows nothing of the loop: the process was stopped, or
            # Python's lock was held
            was_away = now - before > self._blocked_seconds
            before = now
            self._on_look()
            if not was_away:
                self._look(now, loop, thread_id)

    def _look(self, now: float, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        blocked_seconds = now - self._turned_at
        if blocked_seconds < self._blocked_seconds:
            self._is_blocked = False
        elif not self._is_blocked:
            self._is_blocked = True
            if self._metrics is not None:
                self._metrics.loop_blocked += 1
            self._report(blocked_seconds, loop, thread_id)

    def _report(self, seconds: float, loop: asyncio.AbstractEventLoop, thread_id: int) -> None:
        attempt = self._blocking_attempt(asyncio.current_task(loop))
        if attempt is None:
            who = "a task that is no handler's own"
        else:
            task = attempt.task
            who = f"the handler {task.handler} (node {task.node_id} of {task.execution_id})"

        # the way to see another thread's stack
        frame = sys._current_frames().get(thread_id)  # noqa: SLF001
        stack = _stack(frame) if frame is not None else ""
        log.warning(
            "%s has blocked the loop of the worker %s for %.1f s, "
            "and all its other async handlers wait; it should await what it waits for, "
            "or be a plain function (def, not async def), which runs in a thread",
            who,
            self._worker_id,
            seconds,
            extra={"stack": stack.rstrip()},
        )

    def _blocking_attempt(self, running: asyncio.Task[Any] | None) -> Attempt | None:
        """The attempt whose asyncio task the loop is in.

        A slot's own, or one that its handler has started.
        """
        if running is None:
            return None
        for attempt in list(self._attempts()):
            if attempt.slot is running:
                return attempt
        if not hasattr(running, "get_context"):  # Python 3.11
            return None
        scope = running.get_context().get(current_scope)
        return scope if isinstance(scope, Attempt) else None


def _stack(frame: FrameType) -> str:
    """The stack from the handler's call on.

    How the loop got there says nothing about the handler.
    """
    frames = traceback.extract_stack(frame)
    first = 0
    for number, summary in enumerate(frames):
        if summary.filename == attempt_module.__file__:
            first = number + 1
    return "".join(traceback.format_list(frames[first:]))
