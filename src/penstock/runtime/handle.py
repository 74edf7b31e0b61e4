"""`penstock.ExecutionHandle`: an execution that was started on an engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from penstock.views.result import Result


class HandleBackend(Protocol):
    """The methods of an engine that a handle calls."""

    async def result(self, execution_id: str) -> Result: ...
    async def status(self, execution_id: str) -> Result: ...
    def events(self, execution_id: str) -> AsyncIterator[dict[str, Any]]: ...
    async def cancel(self, execution_id: str) -> None: ...
    async def pause(self, execution_id: str) -> None: ...
    async def resume(self, execution_id: str) -> None: ...


class ExecutionHandle:
    """The handle of a started execution."""

    def __init__(self, engine: HandleBackend, execution_id: str) -> None:
        self._engine = engine
        self.id = execution_id

    @property
    def execution_id(self) -> str:
        """The execution's id; the same as `id`."""
        return self.id

    async def result(self) -> Result:
        """Wait for the end. A failed execution has a result too, with `state` and `error`."""
        return await self._engine.result(self.id)

    async def status(self) -> Result:
        """The execution's state at this moment, with the outputs so far."""
        return await self._engine.status(self.id)

    def events(self) -> AsyncIterator[dict[str, Any]]:
        """Live events from the first on, until the execution has ended."""
        return self._engine.events(self.id)

    async def cancel(self) -> None:
        """Cancel the execution: running handlers are stopped, no more nodes start."""
        await self._engine.cancel(self.id)

    async def pause(self) -> None:
        """Start no more nodes; running ones go on."""
        await self._engine.pause(self.id)

    async def resume(self) -> None:
        """Let the paused execution go on."""
        await self._engine.resume(self.id)
