"""`penstock.Engine`: opens the stores, runs an orchestrator and a worker in this process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.definition.model import HandlerDefaults
from penstock.definition.plan import Plan
from penstock.engine.commands import Commands, ExecutionRecord
from penstock.errors import NotOpen, StoreError
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.owner import Ended
from penstock.runtime.background import engine_services, run_all
from penstock.runtime.calls import EngineCalls, document_of
from penstock.runtime.handle import ExecutionHandle
from penstock.runtime.open_state import CLOSED, counted, while_open
from penstock.runtime.timing import EngineTiming
from penstock.sandbox import Sandbox, sandbox_of
from penstock.service import Service
from penstock.service.executions import outputs_of_plan
from penstock.service.fleet import EmbeddedFleet, Fleet, ScaledFleet
from penstock.service.scheduler import Scheduler
from penstock.service.submissions import StartRequest, Submitted
from penstock.stores.base import Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.handlers import register_handlers
from penstock.stores.opening import open_stores
from penstock.stores.plan_cache import PlanCache
from penstock.telemetry import traces
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.outcomes import OutcomeLog
from penstock.views.executions import Execution
from penstock.views.result import Result
from penstock.views.starts import started_view
from penstock.views.values import plain_json
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered
from penstock.worker.runtime import Worker

CALLS_SECONDS = 5.0
"""How long closing waits for running calls, such as starts."""
AnyWorkflow = Workflow | Mapping[str, Any] | str


class Engine(EngineCalls):
    """An embedded engine on a store, with the calls of `penstock.Client`.

    Open it with `async with`, or with `open` and `close`.
    """

    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        store: str | Stores | None = None,
        *,
        settings: Settings | None = None,
        registry: Registry | None = None,
        clock: Callable[[], float] = time.time,
        built_in: bool = True,
        metrics: Metrics | None = None,
        outcome_log: OutcomeLog | None = None,
        sandbox: Sandbox | None = None,
        timing: EngineTiming | None = None,
    ) -> None:
        """`timing` is for tests: by default the times are those of the settings."""
        super().__init__()
        self._built_in = built_in
        self.metrics = metrics
        self._outcome_log = outcome_log
        self.settings = settings or Settings.load({"http_private": True})
        self._address = store or self.settings.store
        self._registry = registry or registered
        self._clock = clock
        self._given_timing = timing
        self._given_sandbox = sandbox
        self.sandbox: Sandbox = sandbox or sandbox_of(self.settings)
        """Evaluates conditions and expressions that may be expensive."""
        self._looking: set[asyncio.Task[None]] = set()
        """Reads of what may have changed before a new owner began."""

    async def open(self) -> Self:
        """Open the store, and take up what is unfinished in it.

        For code that can't use `async with`: whoever opens an engine must call `close`.
        """
        return await self.__aenter__()

    async def close(self) -> None:
        """Stop all parts and close the store; without effect on an engine that isn't open."""
        if self.is_open:
            await self.__aexit__()

    def before_closing(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Have `callback` called when the open engine closes, before its parts stop."""
        self.check_open()
        self._closing.push_async_callback(callback)

    async def __aenter__(self) -> Self:
        if self.is_open:
            raise NotOpen(
                "the engine is open already; it can be entered again when it has been closed"
            )
        if isinstance(self._address, str):
            self.stores = open_stores(self._address, self.settings)
        else:
            self.stores = self._address

        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.stores.close)
            await self._start_parts()
            undo.push_async_callback(self._stop_parts)
            services = engine_services(
                self.stores, self.orchestrator, self.scheduler, self.settings
            )
            await undo.enter_async_context(run_all(services))
            self._closing = undo.pop_all()
        self.is_open = True
        return self

    async def _start_parts(self) -> None:
        timing = self._given_timing or EngineTiming.of(self.settings)
        await self.stores.open()
        built_in = builtin(self.settings, self.sandbox) if self._built_in else {}
        built_in_handlers = [Handler(name, function) for name, function in built_in.items()]
        self.registry = Registry([*built_in_handlers, *self._registry])

        # The only worker serves all queues that a workflow names.
        self.plans = PlanCache(
            self.stores.cold,
            self._defaults,
            lambda plan: self.worker.serve(node.queue for node in plan.handler_nodes()),
            items_max=self.settings.map_items_max,
        )
        # On shared stores other processes may decide too: commits then come from the commit feed,
        # not from this orchestrator.
        self._is_alone = not self.stores.topology.is_shared
        self.service = Service(
            self.stores,
            self.plans,
            self.settings,
            self._defaults,
            self.stores.commit_feed,
            config_checks=self.registry.config_checks,
            sandbox=self._given_sandbox,
            timing=timing.service,
            metrics=self.metrics,
        )
        self.worker = Worker(
            self.stores.queue,
            self.stores.blobs,
            self.registry,
            self.settings,
            clock=self._clock,
            metrics=self.metrics,
            sandbox=self.sandbox,
            timing=timing.worker,
        )
        self.orchestrator = Orchestrator(
            self.stores,
            self.plans,
            inline_max_bytes=self.settings.inline_max_bytes,
            sandbox=self.sandbox,
            observer=self._on_commit,
            on_new_owner=self._look_again,
            metrics=self.metrics,
            outcome_log=self._outcome_log,
            timing=timing.orchestrator,
        )

        self.scheduler = Scheduler(
            self.stores, self.service.firing, lambda: self.orchestrator.owned
        )
        self.service.schedules.on_change = self.scheduler.look_again

        self.fleet: Fleet = EmbeddedFleet(self.stores, self.worker, self.orchestrator)
        if self.stores.topology.is_shared and self.stores.fleet is not None:
            self.fleet = ScaledFleet(self.stores, self.settings.worker_dead_seconds)

        await register_handlers(self.stores.cold.definitions, self._defaults())
        self.orchestrator.start()
        # Otherwise the store is the caller's, and the clock may be too.
        if isinstance(self._address, str):
            self.worker.guard_loop(self._address)
        self.worker.start()

    async def __aexit__(self, *_: object) -> None:
        """Stop all parts; the store is closed even if that fails or is cancelled."""
        self.is_open = False
        self.why_not_open = CLOSED
        async with self._closing:
            await self._wait_for_calls()

    async def _stop_parts(self) -> None:
        try:
            await self._end_looking()
            await self.worker.stop()
            await self.orchestrator.stop()
        finally:
            await self.sandbox.close()
            await self.service.close()

    async def _end_looking(self) -> None:
        tasks = list(self._looking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_calls(self) -> None:
        """Wait for running calls, so that the orchestrator still records what they submitted."""
        self.calls_ended.clear()
        if self.calls:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CALLS_SECONDS):
                    await self.calls_ended.wait()

    def _defaults(self) -> Mapping[str, HandlerDefaults]:
        return self.registry.defaults()

    @while_open
    async def start(  # noqa: PLR0913 -- each is a field of the request
        self,
        workflow: AnyWorkflow,
        input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
        *,
        labels: Mapping[str, Any] | None = None,
        priority: int = 0,
        idempotency_key: str | None = None,
        wait: float | None = None,
    ) -> ExecutionHandle:
        """Start an execution; once this returns, it will reach its end.

        `workflow` may be the name of a stored one, such as `report` or `report@3`. The same
        `idempotency_key` again gives the same execution. With `wait`, this returns when the
        execution has ended, or after so many seconds.
        """
        start_request = StartRequest(
            workflow=workflow.document() if isinstance(workflow, Workflow) else workflow,
            input=input,
            labels=labels or {},
            priority=priority,
            idempotency_key=idempotency_key,
            trace=traces.incoming(None),
            named=True,
        )
        submitted = await self._submit(start_request)
        if submitted.record is not None and not submitted.replayed and not wait:
            return self._handle(submitted.record)

        execution_id = submitted.execution_id
        try:
            view = await self._view_after(submitted, wait)
        except StoreError:
            if submitted.record is None or submitted.replayed:
                raise
            return self._handle(submitted.record)  # it was accepted, though it can't be read now
        return ExecutionHandle(self, execution_id, lambda: plain_json(view))

    async def _view_after(self, submitted: Submitted, wait: float | None) -> Execution:
        """The view of an execution when it has ended, or after so many seconds."""
        executions = self.service.executions
        execution_id = submitted.execution_id
        ended = None
        if wait:
            is_unfinished = execution_id in self.service.submissions.unfinished
            ended = await executions.end(execution_id, wait, known=is_unfinished)
        return await executions.view(execution_id, ended, newest=not submitted.replayed)

    @counted
    async def _submit(self, start_request: StartRequest) -> Submitted:
        return await self.service.submissions.submit(start_request)

    def _handle(self, record: ExecutionRecord) -> ExecutionHandle:
        """The handle of an execution that was started just now."""
        return ExecutionHandle(self, record.execution_id, lambda: plain_json(started_view(record)))

    @while_open
    @counted
    async def start_many(
        self,
        workflow: AnyWorkflow,
        inputs: Iterable[Mapping[str, Any] | None],
        *,
        labels: Mapping[str, Any] | None = None,
        priority: int = 0,
    ) -> list[ExecutionHandle]:
        """Start an execution for each input; none if one of the inputs is not valid."""
        plan = await self.plan_for(workflow)
        records = await self.service.submissions.submit_all(plan, inputs, labels or {}, priority)
        return [self._handle(record) for record in records]

    @while_open
    async def plan_for(self, workflow: AnyWorkflow) -> Plan:
        """Check, compile and store a workflow, unless it is known.

        Raises `InvalidWorkflow`, `NotFound`.
        """
        if isinstance(workflow, str):
            return await self.service.workflows.resolve(workflow)
        return await self.service.workflows.plan(document_of(workflow), named=True)

    def execution(self, execution_id: str) -> ExecutionHandle:
        """A handle for an execution that this store already has."""
        self.check_open()
        return ExecutionHandle(self, execution_id)

    @while_open
    async def result(
        self,
        execution_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 -- as `penstock.Execution` has it
    ) -> Result:
        """Wait until the execution has ended, and return its result.

        Raises `TimeoutError` after `timeout` seconds; the execution goes on.
        """
        if timeout is None:
            return await self._result_at_end(execution_id)
        async with asyncio.timeout(timeout):
            return await self._result_at_end(execution_id)

    async def _result_at_end(self, execution_id: str) -> Result:
        known = execution_id in self.service.submissions.unfinished
        ended = await self.service.executions.end(execution_id, known=known)
        ended = ended or await self.service.executions.stored(execution_id)
        # one that ends only now can't have been retried yet
        return await self._result(ended, newest=known)

    @while_open
    async def status(self, execution_id: str) -> Result:
        """The execution's state at this moment, with the outputs so far."""
        return await self._result(await self.service.executions.stored(execution_id))

    async def _result(self, ended: Ended, *, newest: bool = False) -> Result:
        executions = self.service.executions
        retried_as = None if newest else await executions.retried_as(ended.record)
        plan = await executions.plan(ended.record)
        outputs = await executions.outputs(outputs_of_plan(ended.outputs, plan))
        waits = await executions.waiting.of_nodes(ended.record, ended.runs, plan)
        return Result.of_records(
            ended.record, ended.runs, outputs, plan, waits=waits, retried_as=retried_as
        )

    @while_open
    async def logs(self, execution_id: str, node_id: str) -> dict[int, str]:
        """The logs of the node's handler by attempt, also of an attempt that still runs."""
        logs = await self.service.executions.logs(execution_id, node_id)
        return {log.attempt: log.text for log in logs}

    @while_open
    @counted
    async def cancel(self, execution_id: str) -> None:
        """Cancel it. Raises `Conflict` if it has ended, `NotFound` if it doesn't exist.

        `pause` and `resume` raise the same.
        """
        await self.service.executions.request_control(execution_id, "cancel")

    @while_open
    @counted
    async def pause(self, execution_id: str) -> None:
        """Start no more nodes of the execution; running ones go on."""
        await self.service.executions.request_control(execution_id, "pause")

    @while_open
    @counted
    async def resume(self, execution_id: str) -> None:
        """Let a paused execution go on."""
        await self.service.executions.request_control(execution_id, "resume")

    def _look_again(self) -> None:
        """Read again what changed, because a new owner has begun."""
        task = asyncio.get_running_loop().create_task(self.service.look_again())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    def _on_commit(
        self, plan: CommitPlan, _changes: Sequence[Commands], ended: Sequence[Ended]
    ) -> None:
        if plan.stops:
            self.worker.stop_tasks(plan.stops)
        if self._is_alone:
            self.service.on_commit(plan, ended)
