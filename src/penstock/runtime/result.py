"""What a caller gets: the handle of an execution, and its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from typing import Any, Protocol

from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, NodeRun
from penstock.engine.states import ExecutionState
from penstock.orchestrator.view import NOTHING, execution_view


class Result:
    """The state of an execution, with the fields that it has over HTTP.

    `output` is that of the output node, or a dictionary by sink; `nodes` has everything. They are
    computed when they are first read.
    """

    def __init__(
        self,
        record: ExecutionRecord,
        runs: Mapping[str, NodeRun],
        outputs: Mapping[str, bytes],
        plan: Plan,
        waits: Mapping[str, tuple[str, str]] = NOTHING,
    ) -> None:
        self.execution_id = record.execution_id
        self.workflow = record.workflow
        self.version = record.version
        self.state = str(record.state)
        self._parts = (record, runs, outputs, plan)
        self._waits = waits

    @cached_property
    def view(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
        return execution_view(*self._parts, waits=self._waits)

    @property
    def input(self) -> Any:
        """The execution's input, with the document's defaults."""
        return self.view["input"]

    @property
    def output(self) -> Any:
        """The output of the output node, or of the last nodes by id."""
        return self.view["output"]

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the execution failed: `category`, `message`, `node_id`; None if it didn't."""
        error: dict[str, Any] | None = self.view["error"]
        return error

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes by id, with state, output, error and times."""
        nodes: dict[str, dict[str, Any]] = self.view["nodes"]
        return nodes

    @property
    def outputs(self) -> dict[str, Any]:
        """The output of each completed node."""
        return {
            node_id: node["output"]
            for node_id, node in self.nodes.items()
            if node["state"] == "COMPLETED"
        }

    @property
    def completed(self) -> bool:
        """Whether the execution ended as COMPLETED."""
        return self.state == ExecutionState.COMPLETED

    def __getitem__(self, name: str) -> Any:
        return self.view[name]

    def __repr__(self) -> str:
        return f"<Result {self.workflow}@{self.version} {self.state} {self.execution_id}>"


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
