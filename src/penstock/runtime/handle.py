"""`penstock.ExecutionHandle`: an execution that was started on an engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from penstock.views.result import Result
from penstock.views.retries import RetriedItems

Json = dict[str, Any]


class HandleBackend(Protocol):
    """The methods of an engine that a handle calls."""

    async def result(self, execution_id: str, timeout: float | None = None) -> Result: ...  # noqa: ASYNC109
    async def status(self, execution_id: str) -> Result: ...
    def execution_events(
        self,
        execution_id: str,
        after: int = 0,
        *,
        depth: int | None = None,
        under: str | None = None,
    ) -> AsyncGenerator[Json, None]: ...
    async def cancel(self, execution_id: str) -> None: ...
    async def pause(self, execution_id: str) -> None: ...
    async def resume(self, execution_id: str) -> None: ...
    async def retry(
        self,
        execution_id: str,
        start: str | None = None,
        version: str | int = "same",
        *,
        items: RetriedItems | None = None,
        preview: bool = False,
    ) -> Json: ...
    async def results(self, execution_id: str) -> Json: ...
    async def history(self, execution_id: str) -> list[Json]: ...
    async def node(self, execution_id: str, name: str) -> Json: ...
    async def logs(self, execution_id: str, node_id: str) -> dict[int, str]: ...
    def all_logs(self, execution_id: str) -> AsyncGenerator[Json, None]: ...
    async def graph(self, execution_id: str) -> Json: ...
    async def tree(self, execution_id: str) -> Json: ...
    async def nodes(
        self, execution_id: str, under: str | None = None, state: str | None = None
    ) -> list[Json]: ...
    def items(
        self, execution_id: str, name: str, *, follow: bool = False
    ) -> AsyncGenerator[Json, None]: ...
    async def why(self, execution_id: str, name: str) -> Json: ...
    async def signal(
        self,
        execution_id: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json: ...
    async def signals(self, execution_id: str, name: str | None = None) -> list[Json]: ...
    async def approve(
        self,
        execution_id: str,
        node: str,
        *,
        comment: str | None = None,
        form: Any = None,
        by: str | None = None,
    ) -> Json: ...
    async def reject(
        self, execution_id: str, node: str, *, comment: str | None = None, by: str | None = None
    ) -> Json: ...


class ExecutionHandle:
    """The handle of an execution of an engine, with the calls of `penstock.Execution`."""

    def __init__(
        self,
        engine: HandleBackend,
        execution_id: str,
        accepted: Callable[[], Json] | None = None,
    ) -> None:
        self._engine = engine
        self.id = execution_id
        self._make_accepted = accepted

    @property
    def execution_id(self) -> str:
        """The execution's id; the same as `id`."""
        return self.id

    @property
    def accepted(self) -> Json:
        """The answer to the start, with `workflow`, `version` and `created_at`.

        It is empty for a handle that was made from an id.
        """
        return self._make_accepted() if self._make_accepted is not None else {}

    def __repr__(self) -> str:
        return f"<ExecutionHandle {self.id}>"

    async def result(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 -- as `penstock.Execution` has it
    ) -> Result:
        """Wait for the end. A failed execution has a result too, with `state` and `error`.

        Raises `TimeoutError` after `timeout` seconds; the execution goes on.
        """
        return await self._engine.result(self.id, timeout)

    async def status(self) -> Result:
        """The execution's state at this moment, with the outputs so far."""
        return await self._engine.status(self.id)

    def events(
        self, after: int = 0, *, depth: int | None = None, under: str | None = None
    ) -> AsyncGenerator[Json, None]:
        """Live events: every transition after `seq`, until the execution has ended.

        With `depth`, only those of nodes that are in so many maps or loops; what is deeper comes as
        `items`, the counts of a map's items. `under` is a map, a loop or an item: only what is
        inside of it.
        """
        return self._engine.execution_events(self.id, after, depth=depth, under=under)

    async def cancel(self) -> None:
        """Cancel the execution: running handlers are stopped, no more nodes start.

        Raises `Conflict` if it has ended, `NotFound` if it doesn't exist; so do `pause` and
        `resume`.
        """
        await self._engine.cancel(self.id)

    async def pause(self) -> None:
        """Start no more nodes; running ones go on."""
        await self._engine.pause(self.id)

    async def resume(self) -> None:
        """Let the paused execution go on."""
        await self._engine.resume(self.id)

    async def retry(
        self,
        start: str | None = None,
        version: str | int = "same",
        *,
        items: RetriedItems | None = None,
        preview: bool = False,
    ) -> Json:
        """Retry it: a new execution runs what didn't complete, and reuses the other outputs.

        With `start`, that node and all nodes after it run again. Of maps that run again, `items`
        says which items do: those that `failed` (the default), or `all` (the default of the map
        that `start` names). Returns `execution_id`, `runs` (which nodes, and why) and `keeps`; a
        `preview` starts nothing. `version` is `same`, `latest` or a number.
        """
        return await self._engine.retry(self.id, start, version, items=items, preview=preview)

    async def results(self) -> Json:
        """The values alone: `state`, `completed`, `output`, `outputs` by node, `error`."""
        return await self._engine.results(self.id)

    async def history(self) -> list[Json]:
        """The history so far."""
        return await self._engine.history(self.id)

    async def node(self, name: str) -> Json:
        """One node: its state, its part of the document, config, inputs and all attempts."""
        return await self._engine.node(self.id, name)

    async def logs(self, name: str) -> dict[int, str]:
        """The logs of the node's handler, by attempt."""
        return await self._engine.logs(self.id, name)

    def all_logs(self) -> AsyncGenerator[Json, None]:
        """The logs of all nodes, in the order in which their attempts began.

        Each has `node_id`, `attempt`, `text` and `live`: whether the attempt still runs.
        """
        return self._engine.all_logs(self.id)

    async def graph(self) -> Json:
        """The nodes and edges, with their states."""
        return await self._engine.graph(self.id)

    async def tree(self) -> Json:
        """This execution with its children, and theirs: each before those below it."""
        return await self._engine.tree(self.id)

    async def nodes(self, under: str | None = None, state: str | None = None) -> list[Json]:
        """Its nodes; with `under`, what is inside of a map, a loop or an item and has begun."""
        return await self._engine.nodes(self.id, under, state)

    def items(self, name: str, *, follow: bool = False) -> AsyncGenerator[Json, None]:
        """The items of a map, in the order of their ends; with `follow`, until the map ends.

        Each has `index`, `key`, `state`, `output` and `error`.
        """
        return self._engine.items(self.id, name, follow=follow)

    async def why(self, name: str) -> Json:
        """Why a node isn't running now: `reason`, and `text` in words."""
        return await self._engine.why(self.id, name)

    async def signal(
        self,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Send it a signal. Returns its `number`, and `state`: `taken` or `kept`.

        Raises `Conflict` if the execution has ended, `NotFound` if it doesn't exist.
        """
        return await self._engine.signal(
            self.id,
            name,
            payload,
            correlation=correlation,
            idempotency_key=idempotency_key,
        )

    async def signals(self, name: str | None = None) -> list[Json]:
        """Its signals by number, and which node has taken each."""
        return await self._engine.signals(self.id, name)

    async def approve(
        self, node: str, *, comment: str | None = None, form: Any = None, by: str | None = None
    ) -> Json:
        """Approve what a node waits for. Returns the decision, and whether it `is_final`.

        Raises `Conflict` if it is decided already, `InvalidInput` if the form doesn't fit.
        """
        return await self._engine.approve(self.id, node, comment=comment, form=form, by=by)

    async def reject(self, node: str, *, comment: str | None = None, by: str | None = None) -> Json:
        """Reject what a node waits for; as `approve`."""
        return await self._engine.reject(self.id, node, comment=comment, by=by)
