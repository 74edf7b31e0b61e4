"""One execution from its start to its end: an engine, a screen that is told about it, and the ways to stop it early."""

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

from penstock.cli.interrupt import Interrupt
from penstock.cli.progress import Progress
from penstock.cli.safe_text import duration
from penstock.cli.screens import Screen
from penstock.config import Settings
from penstock.embedded import Engine, ExecutionHandle, Result
from penstock.errors import Conflict
from penstock.stores.base import Stored

TICK_SECONDS = 0.1
CLOSE_SECONDS = 2.0
MANY_NODES = 1000
"""From here on, details are looked up once a second at most: each look reads the whole execution."""


@dataclass(frozen=True, slots=True)
class Request:
    document: dict[str, Any]
    settings: Settings
    input: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    store: str | None = None
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    result: Result
    stored: Stored | None
    interrupted_by: int | None
    """The exit code of the signal that ended it."""
    timed_out: bool

    @property
    def exit_code(self) -> int:
        if self.interrupted_by is not None:
            return self.interrupted_by
        return 0 if self.result.completed else 1


class Session:
    def __init__(self, request: Request, screen: Screen) -> None:
        self._request, self._screen = request, screen
        self._directory: Path | None = None
        self._learned_at = 0.0

    async def run(self, show: Callable[[Ending], None]) -> Ending:
        """`show` is called before the engine closes: a handler that won't stop can't hold back the result."""
        request = self._request
        with Interrupt(self._at_once) as interrupt, self._store() as address:
            async with Engine(address, settings=request.settings) as engine:
                plan = await engine.plan_for(request.document)
                handle = await engine.start(request.document, request.input, labels=request.labels)
                progress = Progress(plan, handle.id, time.time())
                timed_out = await self._watch(engine, handle, progress, interrupt)
                result = await handle.result()
                stored = await engine.stores.cold.execution(handle.id)
                ending = Ending(result, stored, interrupt.exit_code, timed_out)
                show(ending)
                self._give_up_after(request.settings.shutdown_grace_seconds + CLOSE_SECONDS, ending)
        return ending

    async def _watch(self, engine: Engine, handle: ExecutionHandle, progress: Progress, interrupt: Interrupt) -> bool:
        """Until the execution has ended; True if that was because its time was up."""
        self._screen.begin(progress)
        following = asyncio.create_task(self._follow(engine, handle, progress))
        stopping = asyncio.create_task(interrupt.requested.wait())
        ticking = asyncio.create_task(self._tick())
        timeout = self._request.timeout_seconds
        timed_out = False
        try:
            await asyncio.wait({following, stopping}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                timed_out = not stopping.done()
                self._screen.notice(self._why(timed_out=timed_out))
                with suppress(Conflict):  # it has just ended by itself
                    await handle.cancel()
            await following
        finally:
            for task in (following, stopping, ticking):
                task.cancel()
            self._screen.end()
        return timed_out

    def _why(self, *, timed_out: bool) -> str:
        if timed_out:
            return f"cancelling: --timeout {duration(self._request.timeout_seconds or 0)} is over"
        return "cancelling; Ctrl-C again ends it at once"

    async def _follow(self, engine: Engine, handle: ExecutionHandle, progress: Progress) -> None:
        async for event in handle.events():
            row = progress.apply(event)
            if row is not None and self._screen.shows_details and progress.lacks(row):
                await self._learn(engine, progress)
            self._screen.changed(row)

    async def _learn(self, engine: Engine, progress: Progress) -> None:
        now = time.monotonic()
        if len(progress.rows) > MANY_NODES and now - self._learned_at < 1:
            return
        self._learned_at = now
        stored = await engine.stores.cold.execution(progress.execution_id)
        if stored is not None:
            progress.learn(stored.runs)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._screen.tick()

    @contextmanager
    def _store(self) -> Iterator[str]:
        if self._request.store is not None:
            yield self._request.store
            return
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
            self._directory = Path(directory)
            yield f"sqlite:///{self._directory / 'run.db'}"

    def _give_up_after(self, seconds: float, ending: Ending) -> None:
        """A handler that swallows its cancellation can't hold the process: the result is there already."""

        def give_up() -> None:
            self._at_once()
            os._exit(ending.exit_code)

        asyncio.get_running_loop().call_later(seconds, give_up)

    def _at_once(self) -> None:
        self._screen.restore()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
