"""The engine in your process: opens the stores, runs a worker and an orchestrator, starts and steers executions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.definition.model import HandlerDefaults
from penstock.definition.plan import Plan
from penstock.embedded.result import ExecutionHandle, Result
from penstock.embedded.submission import Submissions
from penstock.engine.commands import Commands, ExecutionRecord, NodeRun, Transition
from penstock.engine.events import Value
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import NotFound
from penstock.orchestrator.owner import Ended
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.recovery import EVENTS
from penstock.orchestrator.service import Orchestrator
from penstock.orchestrator.view import fetch_outputs, history_view
from penstock.stores.base import Stores, Wish
from penstock.stores.opening import open_stores
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered
from penstock.worker.runtime import Worker


class Engine:
    def __init__(
        self,
        store: str | Stores | None = None,
        *,
        settings: Settings | None = None,
        registry: Registry | None = None,
        clock: Callable[[], float] = time.time,
        built_in: bool = True,
    ) -> None:
        self._built_in = built_in
        self.settings = settings or Settings.load({"http_private": True})
        self._address = store or self.settings.store
        self._registry, self._clock = registry or registered, clock
        self._background: set[asyncio.Task[None]] = set()
        self._waiters: dict[str, list[asyncio.Future[Ended]]] = {}
        self._subscribers: dict[str, list[asyncio.Queue[list[Transition] | None]]] = {}

    async def __aenter__(self) -> Self:
        self.stores = open_stores(self._address, self.settings) if isinstance(self._address, str) else self._address
        built_in = builtin(self.settings) if self._built_in else {}
        self.registry = Registry([*(Handler(name, function) for name, function in built_in.items()), *self._registry])
        # the only worker serves whatever queue a workflow names
        self.plans = Plans(
            self.stores.cold, self._defaults, lambda plan: self.worker.serve(n.queue for n in plan.nodes)
        )
        self._submissions = Submissions(self.stores, self.plans, self.settings, self._defaults)
        self.worker = Worker(self.stores.queue, self.stores.blobs, self.registry, self.settings, clock=self._clock)
        self.orchestrator = Orchestrator(
            self.stores,
            self.plans,
            inline_max_bytes=self.settings.inline_max_bytes,
            observer=self._committed,
            on_new_owner=self._look_again,
        )
        self.orchestrator.start()
        self.worker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.worker.stop()
        await self.orchestrator.stop()
        await self.stores.close()
        for queues in self._subscribers.values():
            for queue in queues:
                queue.put_nowait(None)
        for future in [future for futures in self._waiters.values() for future in futures]:
            future.cancel()

    def _defaults(self) -> Mapping[str, HandlerDefaults]:
        return self.registry.defaults()

    async def start(
        self,
        workflow: Workflow | Mapping[str, Any] | str,
        input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
        *,
        labels: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> ExecutionHandle:
        """Start an execution; once this returns, it will reach its end. `workflow` may be a stored `name@version`.

        The same `idempotency_key` again gives the same execution.
        """
        plan = await self.plan_for(workflow)
        execution_id = await self._submissions.submit(plan, input, labels or {}, idempotency_key)
        return ExecutionHandle(self, execution_id)

    async def start_many(
        self,
        workflow: Workflow | Mapping[str, Any] | str,
        inputs: Iterable[Mapping[str, Any] | None],
        *,
        labels: Mapping[str, Any] | None = None,
    ) -> list[ExecutionHandle]:
        """Start an execution for each input: all of them, or with an input that doesn't fit, none."""
        plan = await self.plan_for(workflow)
        ids = await self._submissions.submit_many(plan, inputs, labels or {})
        return [ExecutionHandle(self, execution_id) for execution_id in ids]

    async def plan_for(self, workflow: Workflow | Mapping[str, Any] | str) -> Plan:
        """Check, compile and store a workflow, unless it is known. Raises `InvalidWorkflow`, `NotFound`."""
        if isinstance(workflow, str):
            return await self._submissions.stored_plan(workflow)
        return await self._submissions.plan(workflow.document() if isinstance(workflow, Workflow) else dict(workflow))

    def execution(self, execution_id: str) -> ExecutionHandle:
        """A handle for an execution that this store already has."""
        return ExecutionHandle(self, execution_id)

    async def result(self, execution_id: str) -> Result:
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(execution_id, []).append(future)
        try:
            if execution_id not in self._submissions.unfinished:
                found = await self.status(execution_id)
                if found.state in EXECUTION_ENDS:
                    return found
            execution = await future
            return await self._view(execution.record, execution.runs, execution.outputs)
        finally:
            self._forget_waiter(execution_id, future)

    def _forget_waiter(self, execution_id: str, future: asyncio.Future[Ended]) -> None:
        waiting = self._waiters.get(execution_id, [])
        if future in waiting:
            waiting.remove(future)
        if not waiting:
            self._waiters.pop(execution_id, None)

    async def status(self, execution_id: str) -> Result:
        stored = await self.stores.cold.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        return await self._view(stored.record, stored.runs, stored.outputs)

    async def _view(self, record: ExecutionRecord, runs: Mapping[str, NodeRun], outputs: Mapping[str, Value]) -> Result:
        plan = self.plans.known(record.workflow, record.version) or await self.plans.get(
            record.workflow, record.version
        )
        if plan is None:
            raise NotFound(f"the workflow {record.workflow}@{record.version} is gone from the store")
        return Result(record, runs, await fetch_outputs(outputs, self.stores.blobs), plan)

    async def events(self, execution_id: str) -> AsyncIterator[dict[str, Any]]:
        queue: asyncio.Queue[list[Transition] | None] = asyncio.Queue()
        self._subscribers.setdefault(execution_id, []).append(queue)
        try:
            stored = await self.stores.cold.execution(execution_id)
            if stored is None:
                raise NotFound(f"there is no execution {execution_id!r} in this store")
            last = 0
            lines: list[Transition] | None = stored.history
            while lines is not None:
                for line in history_view(line for line in lines if line.seq > last):
                    yield line
                    if line["node_id"] is None and line["to"] in EXECUTION_ENDS:
                        return
                last = max(last, lines[-1].seq) if lines else last
                lines = await queue.get()
        finally:
            self._subscribers[execution_id].remove(queue)
            if not self._subscribers[execution_id]:
                del self._subscribers[execution_id]

    async def logs(self, execution_id: str, node_id: str) -> dict[int, str]:
        """What the node's handler logged, by attempt."""
        stored = await self.stores.cold.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        return {attempt: text for node, attempt, text in stored.logs if node == node_id}

    async def cancel(self, execution_id: str) -> None:
        """Raises `Conflict` if it has ended, `NotFound` if there is none; so do `pause` and `resume`."""
        await self._steer(execution_id, "cancel")

    async def pause(self, execution_id: str) -> None:
        await self._steer(execution_id, "pause")

    async def resume(self, execution_id: str) -> None:
        await self._steer(execution_id, "resume")

    async def _steer(self, execution_id: str, wish: Wish) -> None:
        await self.stores.cold.steer(execution_id, wish)
        await self.stores.hot.append([EVENTS[wish](execution_id)])

    def _look_again(self) -> None:
        """A new owner has begun: the answer to a commit may have been lost, and with it the news of an end."""
        task = asyncio.get_running_loop().create_task(self._announce_ended())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _announce_ended(self) -> None:
        for execution_id in {*self._waiters, *self._subscribers}:
            stored = await self.stores.cold.execution(execution_id)
            if stored is None:
                continue
            for queue in self._subscribers.get(execution_id, ()):
                queue.put_nowait(stored.history)
            if stored.record.state in EXECUTION_ENDS:
                self._announce(stored)

    def _committed(self, changes: Sequence[Commands], ended: Sequence[Ended]) -> None:
        subscribers = self._subscribers
        for commands in changes:
            if commands.stops:
                self.worker.stop_tasks(commands.stops)
            if subscribers:
                for queue in subscribers.get(commands.execution_id, ()):
                    queue.put_nowait(commands.history)
        for execution in ended:
            self._announce(execution)

    def _announce(self, ended: Ended) -> None:
        self._submissions.unfinished.discard(ended.record.execution_id)
        for future in self._waiters.get(ended.record.execution_id, ()):
            if not future.done():
                future.set_result(ended)
