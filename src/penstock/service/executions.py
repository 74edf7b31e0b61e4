"""Executions: views of them, control requests, and waiting for their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial

from penstock.definition.addresses import node_at, steps_to
from penstock.definition.plan import Plan
from penstock.engine.commands import ExecutionRecord, Transition
from penstock.engine.events import Value
from penstock.engine.parents import result_nodes
from penstock.engine.states import EXECUTION_ENDS, NodeState
from penstock.errors import NotFound, StoreError
from penstock.orchestrator.owner import Ended
from penstock.orchestrator.recovery import CONTROL_EVENTS
from penstock.service.readers import ending_of
from penstock.service.timing import ServiceTiming
from penstock.service.waiting import Waiting
from penstock.spelling import nearest_name
from penstock.stores.base import ControlRequest, Stored, Stores
from penstock.stores.blobs import fetch_outputs
from penstock.stores.plan_cache import PlanCache
from penstock.stores.records import ExecutionRow, FeedEntry, Search
from penstock.views.executions import (
    NOTHING,
    Execution,
    LogItem,
    Results,
    bare_view,
    execution_view,
)
from penstock.views.graphs import Graph, execution_graph
from penstock.views.tokens import reports_tokens
from penstock.views.trees import Tree, TreeExecution, tree_execution, tree_view
from penstock.views.values import undecoded

READS_AT_ONCE_MAX = 16
"""Concurrent reads of executions whose end was seen."""
SMALL_VIEW_NODES = 2_000
"""The view of an execution with more nodes than this is built in a thread."""
OUT = (NodeState.QUEUED, NodeState.RUNNING)
"""States in which a worker may have the node's task.

QUEUED is one of them: that a task has started may be recorded later, or never.
"""


TREE_MAX = 1000
"""Executions of a tree that are shown."""


class Executions:
    """Views of executions, control requests, and waiting for their end."""

    def __init__(
        self,
        stores: Stores,
        plans: PlanCache,
        subscribed: Callable[[], AbstractContextManager[None]],
        timing: ServiceTiming,
    ) -> None:
        """Ends are seen while a `subscribed` context is entered."""
        self.waiting = Waiting(stores, timing)
        self._timing = timing
        self._stores = stores
        self._plans = plans
        self._subscribed = subscribed
        self._waiters: dict[str, list[asyncio.Future[Ended]]] = {}
        self._limited_waits: set[asyncio.Future[Ended]] = set()
        self._reading = asyncio.Semaphore(READS_AT_ONCE_MAX)
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._lookers: set[asyncio.Task[None]] = set()

    async def stored(self, execution_id: str) -> Stored:
        stored = await self._stores.cold.executions.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        return stored

    async def plan(self, record: ExecutionRecord) -> Plan:
        return await self._plans.need(record.workflow, record.version)

    async def outputs(self, outputs: Mapping[str, Value]) -> dict[str, bytes]:
        return await fetch_outputs(outputs, self._stores.blobs)

    async def view(
        self, execution_id: str, ended: Ended | None = None, *, newest: bool = False
    ) -> Execution:
        """The view of an execution.

        `newest` says that it can't have been retried, as it was started by this very call.
        """
        stored = ended or await self.stored(execution_id)
        plan = await self.plan(stored.record)
        outputs = await self.outputs(outputs_of_plan(stored.outputs, plan))
        waits = await self.waiting.of_nodes(stored.record, stored.runs, plan)
        view = await _whole_view(stored, outputs, plan, waits)
        await self._add_chain(view, stored.record, newest=newest)
        return view

    async def bare(self, execution_id: str) -> Execution:
        """The view of an execution without its nodes.

        Only the outputs that form the execution's output are read.
        """
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        needed = {
            node_id: stored.outputs[node_id]
            for node_id in result_nodes(stored.record, plan)
            if node_id in stored.outputs
        }
        outputs = await self.outputs(needed)
        values = {node_id: undecoded(data) for node_id, data in outputs.items()}
        view = bare_view(stored.record, values, plan, undecoded)
        await self._add_chain(view, stored.record)
        return view

    async def _add_chain(
        self, view: Execution, record: ExecutionRecord, *, newest: bool = False
    ) -> None:
        """Add the execution that this one is a retry of, and the retry of this one."""
        view.priority = record.priority
        view.retry_of = record.retry_of
        view.retried_as = None if newest else await self.retried_as(record)

    async def retried_as(self, record: ExecutionRecord) -> str | None:
        """The newest retry of an execution, if there is one."""
        # only an execution that has ended can have been retried
        if record.state not in EXECUTION_ENDS:
            return None
        rows = await self.search(Search(retry_of=record.execution_id, limit=1))
        return rows[0].execution_id if rows else None

    async def results(self, execution_id: str) -> Results:
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        outputs = await self.outputs(outputs_of_plan(stored.outputs, plan))
        view = await _whole_view(stored, outputs, plan)
        return Results(
            execution_id=execution_id,
            state=view.state,
            completed=view.state == "COMPLETED",
            output=view.output,
            outputs={node_id: undecoded(data) for node_id, data in outputs.items()},
            tokens=view.tokens,
            error=view.error,
        )

    async def logs(self, execution_id: str, node_id: str) -> list[LogItem]:
        """The logs of a node, attempt by attempt, also that of a running attempt so far."""
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        if node_id not in stored.runs and node_at(plan, node_id) is None:
            raise NotFound(no_node(node_id, plan))

        texts = {
            attempt: LogItem(attempt=attempt, text=text, live=False)
            for node, attempt, text in stored.logs
            if node == node_id
        }
        live = await self.live_log(stored, node_id)
        if live is not None:
            texts.setdefault(live.attempt, live)
        return [texts[attempt] for attempt in sorted(texts)]

    async def live_log(self, stored: Stored, node_id: str) -> LogItem | None:
        """The log of a running attempt so far."""
        run = stored.runs.get(node_id)
        if run is None or run.state not in OUT:
            return None
        key = (stored.record.execution_id, node_id, stored.record.generation, run.attempt)
        with suppress(StoreError):  # the stored logs are shown without it
            text = await self._stores.queue.live_log(key)
            return LogItem(attempt=run.attempt, text=text, live=True) if text else None
        return None

    async def history(self, execution_id: str, after: int = 0) -> list[Transition]:
        lines = await self._stores.cold.executions.history(execution_id, after)
        if lines is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        return lines

    async def tree(self, execution_id: str) -> Tree:
        """An execution with the children of its nodes' last attempts, and theirs.

        Raises `NotFound`.
        """
        top = await self.stored(execution_id)
        items: list[TreeExecution] = []
        waiting = [(top, 0)]
        while waiting and len(items) < TREE_MAX:
            stored, depth = waiting.pop()
            items.append(tree_execution(stored.record, depth))
            below: list[tuple[Stored, int]] = []
            for address in sorted(stored.runs):
                more = stored.runs[address].more
                if more is None or more.child is None:
                    continue
                if len(items) + len(waiting) + len(below) >= TREE_MAX:
                    return tree_view(items, truncated=True)
                child = await self._stores.cold.executions.execution(more.child)
                if child is not None:  # else it isn't recorded yet, or was deleted
                    below.append((child, depth + 1))
            waiting += reversed(below)
        return tree_view(items, truncated=bool(waiting))

    async def graph(self, execution_id: str, under: str | None = None) -> Graph:
        """The graph of an execution, or of what is inside of one item. Raises `NotFound`."""
        stored = await self.stored(execution_id)
        plan = await self.plan(stored.record)
        waits = await self.waiting.of_nodes(stored.record, stored.runs, plan)
        if under is None:
            return execution_graph(stored, plan, waits)
        steps = steps_to(plan, under)
        if not steps or under != f"{steps[-1].address}[{steps[-1].item_index}]":
            raise NotFound(
                f"{under!r} is no item of a map and no round of a loop of this execution"
            )
        region = steps[-1].region
        body = region.body
        if region.is_single:
            addresses = [under]
        else:
            addresses = [f"{under}.{node.node_id}" for node in body.nodes]
        return execution_graph(stored, body, waits, addresses)

    async def search(self, search: Search) -> list[ExecutionRow]:
        return await self._stores.cold.executions.search(search)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """Record a control request, and tell the engine.

        Raises `NotFound`, or `Conflict` if the state doesn't allow it.
        """
        self._stores.hot.check_open()
        await self._stores.cold.executions.request_control(execution_id, request)
        # it is stored, so it will be carried out: the reconciler looks for control requests
        with suppress(StoreError):
            await self._stores.hot.append([CONTROL_EVENTS[request](execution_id)])

    def ended(self, execution: Ended) -> None:
        """Wake all callers that wait for this execution: its end was recorded."""
        for future in self._waiters.pop(execution.record.execution_id, ()):
            if not future.done():
                future.set_result(execution)

    def on_remote_commit(self, feed_entries: Sequence[FeedEntry]) -> None:
        """Read the executions that ended in another process and that callers wait for."""
        for feed_entry in feed_entries:
            execution_id = feed_entry.execution_id
            if execution_id not in self._waiters or execution_id in self._readers:
                continue
            if ending_of(execution_id, feed_entry.lines):
                self._begin_reading(execution_id)

    def _begin_reading(self, execution_id: str) -> None:
        task = asyncio.create_task(self._read_end(execution_id))
        self._readers[execution_id] = task
        task.add_done_callback(lambda _: self._readers.pop(execution_id))

    async def _read_end(self, execution_id: str) -> None:
        """Read an execution's end, which the store may need a moment to show."""
        while execution_id in self._waiters:
            with suppress(StoreError):
                async with self._reading:
                    await self._look_at(execution_id)
            if execution_id in self._waiters:
                await asyncio.sleep(self._timing.end_seen_seconds)

    async def _look_at(self, execution_id: str) -> None:
        stored = await self._stores.cold.executions.execution(execution_id)
        if stored is not None and stored.record.state in EXECUTION_ENDS:
            self.ended(stored)

    async def look_again(self) -> None:
        """Read all executions that callers wait for: the notification of an end may be lost."""
        for execution_id in list(self._waiters):
            try:
                await self._look_at(execution_id)
            except StoreError:  # it is tried again by itself: the others must not wait for it
                task = asyncio.create_task(self._look_until_seen(execution_id))
                self._lookers.add(task)
                task.add_done_callback(self._lookers.discard)

    async def _look_until_seen(self, execution_id: str) -> None:
        while execution_id in self._waiters:
            await asyncio.sleep(self._timing.end_missed_seconds)
            with suppress(StoreError):
                async with self._reading:
                    await self._look_at(execution_id)
                return

    def give_up(self) -> None:
        """Wake all waiting callers: nothing will end here any more."""
        for futures in list(self._waiters.values()):
            for future in futures:
                future.cancel()

    def end_limited_waits(self) -> None:
        """Wake the callers that wait for a limited time, as if it were over."""
        for future in self._limited_waits:
            future.cancel()

    async def end(
        self, execution_id: str, seconds: float | None = None, *, known: bool = False
    ) -> Ended | None:
        """The execution once it has ended; None if that takes longer than `seconds`.

        `known` says that it was started here and its end wasn't seen yet.
        """
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(execution_id, []).append(future)
        if seconds is not None:
            self._limited_waits.add(future)
        try:
            with self._subscribed():
                return await self._wait_for_end(execution_id, future, seconds, known=known)
        finally:
            self._limited_waits.discard(future)
            waiting = self._waiters.get(execution_id, [])
            if future in waiting:
                waiting.remove(future)
            if not waiting:
                self._waiters.pop(execution_id, None)

    async def _wait_for_end(
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


def outputs_of_plan(outputs: Mapping[str, Value], plan: Plan) -> dict[str, Value]:
    """The outputs of the plan's nodes, and those inside of items that report tokens.

    Others inside of items may be many, and are read alone.
    """
    return {
        node_id: value
        for node_id, value in outputs.items()
        if node_id in plan.numbers or (isinstance(value, bytes) and reports_tokens(value))
    }


async def _whole_view(
    stored: Stored | Ended,
    outputs: Mapping[str, bytes],
    plan: Plan,
    waits: Mapping[str, tuple[str, str]] = NOTHING,
) -> Execution:
    """The view of an execution, to be encoded as JSON.

    A large one is built in a thread, as it would block the event loop.
    """
    build = partial(
        execution_view,
        stored.record,
        dict(stored.runs),
        outputs,
        plan,
        waits=waits,
        value_of=undecoded,
    )
    if max(len(plan.nodes), len(stored.runs)) <= SMALL_VIEW_NODES:
        return build()
    return await asyncio.to_thread(build)


def no_node(node_id: str, plan: Plan) -> str:
    """The message that an execution has no such node, with the nearest name."""
    name = nearest_name(node_id, plan.numbers)
    hint = f"; did you mean {name!r}?" if name else ""
    return f"the execution has no node {node_id!r}{hint}"
