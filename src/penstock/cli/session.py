"""A session runs one execution with an engine, shows it on a screen, and can stop it early."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.cli.ending import Ending, failed_node, local_ending
from penstock.cli.interrupt import Interrupt
from penstock.cli.progress import Progress, rows_of_plan
from penstock.cli.safe_text import duration
from penstock.cli.screens import Screen
from penstock.config import Settings
from penstock.errors import Conflict
from penstock.runtime import Engine, ExecutionHandle

TICK_SECONDS = 0.1
CLOSE_SECONDS = 1.0
INTERNAL_ERROR = 70
SIGPIPE = 13
"""A number, because Windows has no name for it."""
MANY_NODES = 1000
"""With more nodes, details are read at most once a second: that reads the whole execution."""


@dataclass(frozen=True, slots=True)
class Request:
    document: dict[str, Any]
    settings: Settings
    input: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    store: str | None = None
    timeout_seconds: float | None = None


class Session:
    def __init__(self, request: Request, screen: Screen) -> None:
        self._request = request
        self._screen = screen
        self._interrupt = Interrupt(self._at_once)
        self._directory: Path | None = None
        self._learned_at = 0.0
        self._exit_code = INTERNAL_ERROR

    async def run(self, show: Callable[[Ending], None]) -> int:
        """Run the execution and return the exit code.

        `show` is called before the engine closes, so that no handler can hold back the result.
        """
        request = self._request
        with self._interrupt, self._store() as address:
            async with Engine(address, settings=request.settings) as engine:
                try:
                    plan = await engine.plan_for(request.document)
                    handle = await engine.start(
                        request.document, request.input, labels=request.labels
                    )
                    progress = Progress(plan.name, rows_of_plan(plan), handle.id, time.time())
                    timed_out = await self._watch(engine, handle, progress)
                    result = await handle.result()
                    stored = await engine.stores.cold.executions.execution(handle.id)

                    interrupted = self._interrupt.exit_code is not None
                    ending = local_ending(
                        result, stored, interrupted=interrupted, timed_out=timed_out
                    )
                    self._call_screen(show, ending)
                    self._exit_code = self._interrupt.exit_code or int(not result.completed)
                finally:
                    self._give_up_after(request.settings.shutdown_grace_seconds + CLOSE_SECONDS)
        return self._exit_code

    async def _watch(self, engine: Engine, handle: ExecutionHandle, progress: Progress) -> bool:
        """Show the execution until it has ended; True if its time was over."""
        self._call_screen(self._screen.begin, progress)
        following = asyncio.create_task(self._follow(engine, handle, progress))
        stopping = asyncio.create_task(self._interrupt.requested.wait())
        ticking = asyncio.create_task(self._tick())
        timeout = self._request.timeout_seconds
        timed_out = False
        try:
            await asyncio.wait(
                {following, stopping}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if not following.done():
                timed_out = not stopping.done()
                self._call_screen(self._screen.notice, self._cancel_notice(timed_out=timed_out))
                with suppress(Conflict):  # it has just ended by itself
                    await handle.cancel()
            await following
        finally:
            for task in (following, stopping, ticking):
                task.cancel()
            self._call_screen(self._screen.end)
        return timed_out

    def _call_screen(self, say: Callable[..., None], *arguments: Any) -> None:
        """Call the screen; if nobody reads it any more, stop as a signal would.

        This happens with `| head`, or when the terminal is closed.
        """
        try:
            say(*arguments)
        except OSError:
            self._interrupt.request(SIGPIPE)

    def _cancel_notice(self, *, timed_out: bool) -> str:
        if timed_out:
            return f"cancelling: --timeout {duration(self._request.timeout_seconds or 0)} is over"
        return "cancelling; Ctrl-C again ends it at once"

    async def _follow(self, engine: Engine, handle: ExecutionHandle, progress: Progress) -> None:
        async for event in handle.events(depth=0):
            row = progress.apply(event)
            if row is not None and self._screen.shows_details and progress.lacks(row):
                await self._learn(engine, progress)
            self._call_screen(self._screen.changed, row)

    async def _learn(self, engine: Engine, progress: Progress) -> None:
        now = time.monotonic()
        if len(progress.rows) > MANY_NODES and now - self._learned_at < 1:
            return
        self._learned_at = now
        stored = await engine.stores.cold.executions.execution(progress.execution_id)
        if stored is not None:
            for node_id, run in stored.runs.items():
                if run.failures:
                    progress.learn(node_id, failed_node(run))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._call_screen(self._screen.tick)

    @contextmanager
    def _store(self) -> Iterator[str]:
        if self._request.store is not None:
            yield self._request.store
            return
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
            self._directory = Path(directory)
            yield f"sqlite:///{self._directory / 'run.db'}"

    def _give_up_after(self, seconds: float) -> None:
        """End the process after some time, even if a handler ignores its cancellation.

        The result has been shown by then.
        """

        def give_up() -> None:
            self._at_once()
            os._exit(self._exit_code)

        asyncio.get_running_loop().call_later(seconds, give_up)

    def _at_once(self) -> None:
        with suppress(OSError):
            self._screen.restore()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
