"""`penstock.Engine`: opens the stores, runs an orchestrator and a worker in this process."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import msgspec

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.definition.model import HandlerDefaults
from penstock.definition.plan import Plan
from penstock.engine.commands import Commands
from penstock.errors import NotOpen, PenstockError
from penstock.orchestrator.orchestrator import Orchestrator
from penstock.orchestrator.owner import Ended
from penstock.runtime.background import engine_services, run_all
from penstock.runtime.handle import ExecutionHandle
from penstock.runtime.timing import EngineTiming
from penstock.sandbox import Sandbox, sandbox_of
from penstock.service import Service
from penstock.service.submissions import StartRequest
from penstock.stores.base import Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.handlers import register_handlers
from penstock.stores.opening import open_stores
from penstock.stores.plan_cache import PlanCache
from penstock.telemetry import traces
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.outcomes import OutcomeLog
from penstock.views.executions import history_view
from penstock.views.result import Result
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered
from penstock.worker.runtime import Worker

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Method = Callable[Concatenate["Engine", Arguments], Coroutine[Any, Any, Answer]]

CALLS_SECONDS = 5.0
"""How long closing waits for running calls, such as starts."""
NOT_YET = "the engine isn't open yet; open it with 'async with penstock.Engine(…) as engine:'"
CLOSED = (
    "the engine has been closed; open another one on the same store, "
    "which resumes what is unfinished"
)


def _while_open(method: Method[Arguments, Answer]) -> Method[Arguments, Answer]:
    """Raise `NotOpen` if the engine isn't open, or was closed during the call."""

    @functools.wraps(method)
    async def call(
        engine: Engine, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        engine.check_open()
        try:
            return await method(engine, *arguments, **named)
        except PenstockError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            is_cancelled = task is not None and task.cancelling() > 0
            if engine.is_open or is_cancelled:
                raise
            raise NotOpen(CLOSED) from error

    return call


def _counted(method: Method[Arguments, Answer]) -> Method[Arguments, Answer]:
    """Count a short call that changes something, so that closing waits for it."""

    @functools.wraps(method)
    async def call(
        engine: Engine, /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        engine.calls += 1
        try:
            return await method(engine, *arguments, **named)
        finally:
            engine.calls -= 1
            if not engine.calls:
                engine.calls_ended.set()

    return call


class Engine:
    """An embedded engine on a store, to start and control executions."""

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
        self.is_open = False
        self._why_not_open = NOT_YET
        self.calls = 0
        """The number of running calls that closing waits for."""
        self.calls_ended = asyncio.Event()

    def check_open(self) -> None:
        """Raise `NotOpen` unless the engine is open; it is not while it closes."""
        if not self.is_open:
            raise NotOpen(self._why_not_open)

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
            services = engine_services(self.stores, self.orchestrator, self.settings)
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
            lambda plan: self.worker.serve(node.queue for node in plan.nodes),
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

        await register_handlers(self.stores.cold.definitions, self._defaults())
        self.orchestrator.start()
        # Otherwise the store is the caller's, and the clock may be too.
        if isinstance(self._address, str):
            self.worker.guard_loop(self._address)
        self.worker.start()

    async def __aexit__(self, *_: object) -> None:
        """Stop all parts; the store is closed even if that fails or is cancelled."""
        self.is_open = False
        self._why_not_open = CLOSED
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

    @_while_open
    @_counted
    async def start(
        self,
        workflow: Workflow | Mapping[str, Any] | str,
        input: Mapping[str, Any] | None = None,  # noqa: A002 -- what it is called everywhere
        *,
        labels: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> ExecutionHandle:
        """Start an execution; once this returns, it will reach its end.

        `workflow` may be the name of a stored one, such as `report@3`. The same `idempotency_key`
        again gives the same execution.
        """
        start_request = StartRequest(
            workflow=workflow.document() if isinstance(workflow, Workflow) else workflow,
            input=input,
            labels=labels or {},
            idempotency_key=idempotency_key,
            trace=traces.incoming(None),
            named=True,
        )
        submitted = await self.service.submissions.submit(start_request)
        return ExecutionHandle(self, submitted.execution_id)

    @_while_open
    @_counted
    async def start_many(
        self,
        workflow: Workflow | Mapping[str, Any] | str,
        inputs: Iterable[Mapping[str, Any] | None],
        *,
        labels: Mapping[str, Any] | None = None,
    ) -> list[ExecutionHandle]:
        """Start an execution for each input; none if one of the inputs is not valid."""
        plan = await self.plan_for(workflow)
        ids = await self.service.submissions.submit_many(plan, inputs, labels or {})
        return [ExecutionHandle(self, execution_id) for execution_id in ids]

    @_while_open
    async def plan_for(self, workflow: Workflow | Mapping[str, Any] | str) -> Plan:
        """Check, compile and store a workflow, unless it is known.

        Raises `InvalidWorkflow`, `NotFound`.
        """
        if isinstance(workflow, str):
            return await self.service.workflows.resolve(workflow)
        document = workflow.document() if isinstance(workflow, Workflow) else dict(workflow)
        return await self.service.workflows.plan(document, named=True)

    def execution(self, execution_id: str) -> ExecutionHandle:
        """A handle for an execution that this store already has."""
        self.check_open()
        return ExecutionHandle(self, execution_id)

    @_while_open
    async def result(self, execution_id: str) -> Result:
        """Wait until the execution has ended, and return its result."""
        known = execution_id in self.service.submissions.unfinished
        ended = await self.service.executions.end(execution_id, known=known)
        return await self._result(ended or await self.service.executions.stored(execution_id))

    @_while_open
    async def status(self, execution_id: str) -> Result:
        """The execution's state at this moment, with the outputs so far."""
        return await self._result(await self.service.executions.stored(execution_id))

    async def _result(self, ended: Ended) -> Result:
        executions = self.service.executions
        outputs = await executions.outputs(ended.outputs)
        plan = await executions.plan(ended.record)
        waits = await executions.waiting.of_nodes(ended.record, ended.runs, plan)
        return Result.of_records(ended.record, ended.runs, outputs, plan, waits)

    def events(self, execution_id: str) -> AsyncIterator[dict[str, Any]]:
        """Live events from the first on, until the execution has ended or the engine closes."""
        self.check_open()
        return self._events(execution_id)

    async def _events(self, execution_id: str) -> AsyncIterator[dict[str, Any]]:
        async for lines in self.service.live_events.execution(execution_id):
            for line in history_view(lines):
                event: dict[str, Any] = msgspec.to_builtins(line)
                yield event

    @_while_open
    async def logs(self, execution_id: str, node_id: str) -> dict[int, str]:
        """The logs of the node's handler by attempt, also of an attempt that still runs."""
        logs = await self.service.executions.logs(execution_id, node_id)
        return {log.attempt: log.text for log in logs}

    @_while_open
    @_counted
    async def cancel(self, execution_id: str) -> None:
        """Cancel it. Raises `Conflict` if it has ended, `NotFound` if it doesn't exist.

        `pause` and `resume` raise the same.
        """
        await self.service.executions.request_control(execution_id, "cancel")

    @_while_open
    @_counted
    async def pause(self, execution_id: str) -> None:
        """Start no more nodes of the execution; running ones go on."""
        await self.service.executions.request_control(execution_id, "pause")

    @_while_open
    @_counted
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
