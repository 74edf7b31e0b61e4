"""Executions: views of them, control requests, and waiting for their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, NamedTuple

from penstock.definition.plan import Plan
from penstock.engine.commands import AttemptFailure, ExecutionRecord, Transition
from penstock.engine.events import Value
from penstock.engine.states import EXECUTION_ENDS, NodeState
from penstock.errors import NotFound, StoreError
from penstock.orchestrator.owner import Ended
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.reaper import DEAD_SECONDS
from penstock.orchestrator.recovery import CONTROL_EVENTS
from penstock.orchestrator.view import (
    NOTHING,
    bare_view,
    error_view,
    execution_view,
    fetch_outputs,
    time_text,
    undecoded,
)
from penstock.service.graphs import execution_graph
from penstock.service.readers import ending_of
from penstock.service.waiting import Waiting
from penstock.spelling import nearest_name
from penstock.stores.base import ControlRequest, Stored, Stores
from penstock.stores.records import ExecutionRow, FeedEntry, Search

READS_AT_ONCE_MAX = 16
"""Reads at once of executions whose end was seen."""
AGAIN_SECONDS, LOOK_SECONDS = 0.05, 1.0

SMALL_VIEW_NODES = 2_000
"""An execution with more than this is put together for its reader in a thread."""
OUT = (NodeState.QUEUED, NodeState.RUNNING)
"""States in which a worker may have the node's task.

That it has begun is heard of later, or never.
"""


class LogText(NamedTuple):
    """The log of an attempt."""

    attempt: int
    text: str
    live: bool = False
    """The attempt runs, and there may be more to come."""


class Executions:
    """Views of executions, control requests, and waiting for their end."""

    def __init__(
        self,
        stores: Stores,
        plans: Plans,
        subscribed: Callable[[], AbstractContextManager[None]] = nullcontext,
        dead_seconds: float = DEAD_SECONDS,
    ) -> None:
        """Ends are seen while a `subscribed` is entered; by default always."""
        self.waiting = Waiting(stores, dead_seconds)
        self._stores, self._plans, self._subscribed = stores, plans, subscribed
        self._waiters: dict[str, list[asyncio.Future[Ended]]] = {}
        self._reading = asyncio.Semaphore(READS_AT_ONCE_MAX)
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._lookers: set[asyncio.Task[None]] = set()

    async def stored(self, execution_id: str) -> Stored:
        stored = await self._stores.cold.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        return stored

    async def plan(self, record: ExecutionRecord) -> Plan:
        return await self._plans.need(record.workflow, record.version)

    async def outputs(self, outputs: Mapping[str, Value]) -> dict[str, bytes]:
        return await fetch_outputs(outputs, self._stores.blobs)

    async def view(
        self, execution_id: str, ended: Ended | None = None, *, newest: bool = False
    ) -> dict[str, Any]:
        """The view of an execution.

        `newest`: of its chain, as one that was started by this very call is; then no retry is
        looked for.
        """
        stored = ended or await self.stored(execution_id)
        plan = await self.plan(stored.record)
        outputs = await self.outputs(stored.outputs)
        waits = await self.waiting.of_nodes(stored.record, stored.runs, plan)
        shown = await _whole_view(stored, outputs, plan, waits)
        return {**shown, **await self._chain(stored.record, newest=newest)}

    async def bare(self, execution_id: str) -> dict[str, Any]:
        """The view of an execution without the nodes.

        Of their outputs only those are read that make the execution's.
        """
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        needed = {
            node_id: stored.outputs[node_id]
            for node_id in plan.result_nodes
            if node_id in stored.outputs
        }
        values = {
            node_id: undecoded(data) for node_id, data in (await self.outputs(needed)).items()
        }
        return {
            **bare_view(stored.record, values, plan, undecoded),
            **await self._chain(stored.record),
        }

    async def _chain(self, record: ExecutionRecord, *, newest: bool = False) -> dict[str, Any]:
        """The retries that an execution goes on from, and that go on from it.

        Only one that has ended can have been retried.
        """
        may_be = record.state in EXECUTION_ENDS and not newest
        rows = await self.search(Search(retry_of=record.execution_id, limit=1)) if may_be else []
        retried_as = rows[0].execution_id if rows else None
        return {"priority": record.priority, "retry_of": record.retry_of, "retried_as": retried_as}

    async def results(self, execution_id: str) -> dict[str, Any]:
        stored = await self.stored(execution_id)
        plan, outputs = await self.plan(stored.record), await self.outputs(stored.outputs)
        shown = await _whole_view(stored, outputs, plan)
        return {
            "execution_id": execution_id,
            "state": shown["state"],
            "completed": shown["state"] == "COMPLETED",
            "output": shown["output"],
            "outputs": {node_id: undecoded(data) for node_id, data in outputs.items()},
            "error": shown["error"],
        }

    async def logs(self, execution_id: str, node_id: str) -> list[LogText]:
        """The logs of a node.

        What its handler logged, attempt by attempt, with what a running one has logged so far.
        """
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        if node_id not in stored.runs and node_id not in plan.numbers:
            raise NotFound(no_node(node_id, plan))
        texts = {
            attempt: LogText(attempt, text)
            for node, attempt, text in stored.logs
            if node == node_id
        }
        live = await self._live_log(stored, node_id)
        if live is not None:
            texts.setdefault(live.attempt, live)
        return sorted(texts.values())

    async def _live_log(self, stored: Stored, node_id: str) -> LogText | None:
        run = stored.runs.get(node_id)
        if run is None or run.state not in OUT:
            return None
        key = (stored.record.execution_id, node_id, stored.record.generation, run.attempt)
        with suppress(StoreError):  # what is stored is shown all the same
            text = await self._stores.queue.live_log(key)
            return LogText(run.attempt, text, live=True) if text else None
        return None

    async def history(self, execution_id: str, after: int = 0) -> list[Transition]:
        lines = await self._stores.cold.history(execution_id, after)
        if lines is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        return lines

    async def graph(self, execution_id: str) -> dict[str, Any]:
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        return execution_graph(
            stored, plan, await self.waiting.of_nodes(stored.record, stored.runs, plan)
        )

    async def search(self, search: Search) -> list[ExecutionRow]:
        return await self._stores.cold.search(search)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """Record a control request, and tell the engine.

        Raises `NotFound`, or `Conflict` if the state doesn't allow it.
        """
        self._stores.hot.check_open()
        await self._stores.cold.request_control(execution_id, request)
        with suppress(
            StoreError
        ):  # it is stored, so it will be done: the owner looks for control requests
            await self._stores.hot.append([CONTROL_EVENTS[request](execution_id)])

    def ended(self, execution: Ended) -> None:
        """Wake whoever waits for this execution: the engine has recorded its end."""
        for future in self._waiters.pop(execution.record.execution_id, ()):
            if not future.done():
                future.set_result(execution)

    def on_remote_commit(self, feed_entries: Sequence[FeedEntry]) -> None:
        """Read the executions that another process has ended and somebody waits for."""
        for feed_entry in feed_entries:
            execution_id = feed_entry.execution_id
            if (
                execution_id in self._waiters
                and execution_id not in self._readers
                and ending_of(execution_id, feed_entry.lines)
            ):
                self._readers[execution_id] = task = asyncio.create_task(
                    self._read_end(execution_id)
                )
                task.add_done_callback(
                    lambda _, execution_id=execution_id: self._readers.pop(execution_id)  # type: ignore[misc]
                )

    async def _read_end(self, execution_id: str) -> None:
        """Read an execution's end, which the store may need a moment to show."""
        while execution_id in self._waiters:
            with suppress(StoreError):
                async with self._reading:
                    await self._look_at(execution_id)
            if execution_id in self._waiters:
                await asyncio.sleep(AGAIN_SECONDS)

    async def _look_at(self, execution_id: str) -> None:
        stored = await self._stores.cold.execution(execution_id)
        if stored is not None and stored.record.state in EXECUTION_ENDS:
            self.ended(stored)

    async def look_again(self) -> None:
        """The answer to a commit may have been lost, and with it the end of an execution."""
        for execution_id in list(self._waiters):
            try:
                await self._look_at(execution_id)
            except StoreError:  # that one is tried again alone: all others must not wait for it
                task = asyncio.create_task(self._look_until_seen(execution_id))
                self._lookers.add(task)
                task.add_done_callback(self._lookers.discard)

    async def _look_until_seen(self, execution_id: str) -> None:
        while execution_id in self._waiters:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(StoreError):
                async with self._reading:
                    await self._look_at(execution_id)
                return

    def give_up(self) -> None:
        """Wake all who wait: nothing will end here any more."""
        for future in [future for futures in self._waiters.values() for future in futures]:
            future.cancel()

    async def end(
        self, execution_id: str, seconds: float | None = None, *, known: bool = False
    ) -> Ended | None:
        """The execution once it has ended; None if that takes longer.

        `known` says that it was started here.
        """
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(execution_id, []).append(future)
        try:
            with self._subscribed():
                return await self._end(execution_id, future, seconds, known=known)
        finally:
            waiting = self._waiters.get(execution_id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiters.pop(execution_id, None)

    async def _end(
        self,
        execution_id: str,
        future: asyncio.Future[Ended],
        seconds: float | None,
        *,
        known: bool,
    ) -> Ended | None:
        if not known:
            stored = await self.stored(execution_id)
            if stored.record.state in EXECUTION_ENDS:
                return stored
        if seconds is None:
            return await future
        done, _ = await asyncio.wait((future,), timeout=seconds)
        return future.result() if done and not future.cancelled() else None


async def _whole_view(
    stored: Stored | Ended,
    outputs: Mapping[str, bytes],
    plan: Plan,
    waits: Mapping[str, tuple[str, str]] = NOTHING,
) -> dict[str, Any]:
    """The view of an execution, for who makes JSON of it.

    In a thread if there is much to show, for others wait for the loop.
    """
    view = partial(
        execution_view,
        stored.record,
        dict(stored.runs),
        outputs,
        plan,
        waits=waits,
        value_of=undecoded,
    )
    return view() if len(plan.nodes) <= SMALL_VIEW_NODES else await asyncio.to_thread(view)


def row_view(row: ExecutionRow) -> dict[str, Any]:
    return {
        "execution_id": row.execution_id,
        "workflow": row.workflow,
        "version": row.version,
        "state": row.state,
        "error": error_view(row.error, row.error_node_id),
        "labels": row.labels,
        "created_at": time_text(row.created_at),
        "started_at": time_text(row.started_at),
        "finished_at": time_text(row.finished_at),
        "retry_of": row.retry_of,
    }


def attempts_view(failures: Iterable[AttemptFailure]) -> list[dict[str, Any]]:
    return [
        {
            "attempt": each.attempt,
            "at": time_text(each.at),
            "error": error_view(each.error),
            "worker_id": each.worker_id,
        }
        for each in failures
    ]


def no_node(node_id: str, plan: Plan) -> str:
    name = nearest_name(node_id, plan.numbers)
    return f"the execution has no node {node_id!r}" + (f"; did you mean {name!r}?" if name else "")
