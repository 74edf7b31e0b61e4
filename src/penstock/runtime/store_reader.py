"""A reader of a store's file, with the calls of a client that look at something.

Another process may have the file open, and work on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Any, Self

from penstock.config import Settings
from penstock.runtime.calls import EngineCalls
from penstock.runtime.handle import ExecutionHandle
from penstock.runtime.open_state import items_while_open, while_open
from penstock.runtime.opening import service_over
from penstock.stores.opening import open_for_reading
from penstock.views.result import Result
from penstock.views.values import plain_json

Json = dict[str, Any]
LOOK_SECONDS = 0.25
"""How often the file is read for new events: nobody tells this process about commits."""


class StoreReader(EngineCalls):
    """Reads a store's file. Calls that would change something raise `StoreError`."""

    def __init__(self, store: str, settings: Settings) -> None:
        super().__init__()
        self._store = store
        self._settings = settings
        self._closing = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as undo:
            stores = open_for_reading(self._store, self._settings)
            undo.push_async_callback(stores.close)
            self.fleet = stores.refusing
            self.service = service_over(stores, self._settings)
            undo.push_async_callback(self.service.close)
            self._closing = undo.pop_all()
        self.is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.is_open = False
        await self._closing.aclose()

    def execution(self, execution_id: str) -> ExecutionHandle:
        """A handle for an execution in the store."""
        self.check_open()
        return ExecutionHandle(self, execution_id)

    @while_open
    async def status(self, execution_id: str) -> Result:
        """The execution's state at this moment, with the outputs so far."""
        return Result.of_answer(plain_json(await self.service.executions.view(execution_id)))

    @while_open
    async def result(
        self,
        execution_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 -- as `penstock.Execution` has it
    ) -> Result:
        """Wait until the execution has ended, and return its result."""
        async with asyncio.timeout(timeout):
            async for _ in self.execution_events(execution_id):
                pass
            return await self.status(execution_id)

    @items_while_open
    async def execution_events(
        self,
        execution_id: str,
        after: int = 0,
        *,
        depth: int | None = None,
        under: str | None = None,
    ) -> AsyncGenerator[Json, None]:
        """Live events of an execution: every transition after `seq`, until it has ended."""
        looking = asyncio.create_task(self._look_again_and_again())
        following = super().execution_events(execution_id, after, depth=depth, under=under)
        try:
            async with aclosing(following) as events:
                async for event in events:
                    yield event
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking

    async def _look_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.service.live_events.look_again()

    @while_open
    async def logs(self, execution_id: str, node_id: str) -> dict[int, str]:
        """The logs of the node's handler by attempt, of attempts that have ended."""
        logs = await self.service.executions.logs(execution_id, node_id)
        return {log.attempt: log.text for log in logs}

    @while_open
    async def cancel(self, execution_id: str) -> None:
        """Refuse: only a process that runs the store can cancel."""
        await self.service.executions.request_control(execution_id, "cancel")

    @while_open
    async def pause(self, execution_id: str) -> None:
        """Refuse: only a process that runs the store can pause."""
        await self.service.executions.request_control(execution_id, "pause")

    @while_open
    async def resume(self, execution_id: str) -> None:
        """Refuse: only a process that runs the store can resume."""
        await self.service.executions.request_control(execution_id, "resume")
