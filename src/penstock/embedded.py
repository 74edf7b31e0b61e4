"""Penstock inside your own process: orchestrator and worker on one event loop, facts in a SQLite file.

    async with penstock.Engine("sqlite:///work.db") as engine:
        execution = await engine.start(flow, input={"user_id": 7})
        result = await execution.result()

Opening an engine takes up whatever its store has unfinished. Closing it stops cleanly; what still runs then is taken up
by the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec

from penstock.config import Settings
from penstock.definition.builder import Workflow
from penstock.definition.model import HandlerDefaults
from penstock.definition.parse import Limits, check_values
from penstock.definition.plan import Plan, compile_document
from penstock.definition.read import content_hash
from penstock.definition.schema import schema_errors
from penstock.engine.commands import Commands, ExecutionRecord, Transition
from penstock.engine.events import CancelRequested, ExecutionStarted, PauseRequested, ResumeRequested
from penstock.engine.execution import Execution
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
from penstock.errors import Conflict, InvalidInput, InvalidWorkflow, NotFound, StoreError
from penstock.orchestrator.plans import Plans
from penstock.orchestrator.service import Orchestrator
from penstock.orchestrator.view import execution_view, fetch_outputs, history_view
from penstock.stores.base import NewExecution, Stores
from penstock.stores.opening import open_stores
from penstock.worker.handlers import builtin
from penstock.worker.registry import Handler, Registry, registered
from penstock.worker.runtime import Worker


def new_execution_id() -> str:
    """Ids sort by time (UUID version 7), so that an index of them grows at its end."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Result(msgspec.Struct, frozen=True):
    """How an execution ended. `output` is the output node's, or a dictionary by sink; `nodes` has everything."""

    execution_id: str
    workflow: str
    version: int
    state: str
    input: Any
    output: Any
    error: dict[str, Any] | None
    created_at: str | None
    started_at: str | None
    finished_at: str | None
    nodes: dict[str, dict[str, Any]]

    @property
    def completed(self) -> bool:
        return self.state == ExecutionState.COMPLETED

    @property
    def outputs(self) -> dict[str, Any]:
        """The output of each node that has one."""
        return {name: node["output"] for name, node in self.nodes.items() if node["state"] == "COMPLETED"}

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


class ExecutionHandle:
    """A started execution."""

    def __init__(self, engine: Engine, execution_id: str) -> None:
        self._engine, self.id = engine, execution_id

    @property
    def execution_id(self) -> str:
        return self.id

    async def result(self) -> Result:
        """Waits for the end. A failed execution is a result too: look at `state` and `error`."""
        return await self._engine.result(self.id)

    async def status(self) -> Result:
        return await self._engine.status(self.id)

    def events(self) -> AsyncIterator[dict[str, Any]]:
        """Every change of state from the first on, live; ends with the execution."""
        return self._engine.events(self.id)

    async def cancel(self) -> None:
        await self._engine.cancel(self.id)

    async def pause(self) -> None:
        await self._engine.pause(self.id)

    async def resume(self) -> None:
        await self._engine.resume(self.id)


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
        self._compiled: dict[str, Plan] = {}
        self._starting: list[tuple[NewExecution, asyncio.Future[str]]] = []
        self._waiters: dict[str, list[asyncio.Future[Execution]]] = {}
        self._subscribers: dict[str, list[asyncio.Queue[list[Transition] | None]]] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self.stores = open_stores(self._address, self.settings) if isinstance(self._address, str) else self._address
        built_in = builtin(self.settings) if self._built_in else {}
        self.registry = Registry([*(Handler(name, function) for name, function in built_in.items()), *self._registry])
        self.plans = Plans(self.stores.cold, self._defaults)
        self.worker = Worker(self.stores.queue, self.stores.blobs, self.registry, self.settings, clock=self._clock)
        self.orchestrator = Orchestrator(
            self.stores, self.plans, inline_max_bytes=self.settings.inline_max_bytes, observer=self._committed
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
        data = self._check_input(plan, input)
        record = ExecutionRecord(
            new_execution_id(), plan.name, plan.version, ExecutionState.PENDING, data, self.stores.hot.now()
        )
        request = content_hash([plan.name, plan.version, data.decode()]) if idempotency_key else ""
        new = NewExecution(record, dict(labels or {}), idempotency_key, request)
        return ExecutionHandle(self, await self._create(new))

    async def plan_for(self, workflow: Workflow | Mapping[str, Any] | str) -> Plan:
        """Check, compile and store a workflow, unless it is known. Raises `InvalidWorkflow`."""
        if isinstance(workflow, str):
            return await self._stored_plan(workflow)
        document = workflow.document() if isinstance(workflow, Workflow) else dict(workflow)
        try:
            key = content_hash(document)
        except (TypeError, ValueError, RecursionError):
            check_values(document)  # says where it isn't JSON
            raise
        if key not in self._compiled:
            settings = self.settings
            limits = Limits(settings.document_max_bytes, settings.document_max_nodes, settings.document_max_depth)
            plan = compile_document(document, handlers=self.registry.defaults(), limits=limits).plan
            text = json.dumps(document, ensure_ascii=False).encode()
            stored = await self.stores.cold.put_workflow(plan.name, key, text, self.stores.hot.now())
            plan.version = stored.version
            self.plans.put(plan)
            self._compiled[key] = plan
        return self._compiled[key]

    async def _stored_plan(self, name: str) -> Plan:
        base, _, version = name.partition("@")
        if version and version != "latest" and not version.isdecimal():
            raise NotFound(f"{name!r}: a version is a number or latest")
        stored = await self.stores.cold.get_workflow(base, int(version) if version.isdecimal() else None)
        plan = await self.plans.get(base, stored.version) if stored else None
        if plan is None:
            raise NotFound(f"there is no workflow {name!r} in this store")
        return plan

    def _check_input(self, plan: Plan, given: Mapping[str, Any] | None) -> bytes:
        if given is not None and not isinstance(given, Mapping):
            raise InvalidInput('the input must be an object, such as {"user_id": 7}')
        merged = {**plan.input, **(given or {})}
        try:
            check_values(merged)
        except InvalidWorkflow as error:
            raise InvalidInput(f"input: {error}") from None
        if plan.input_schema is not None:
            errors = schema_errors(plan.input_schema, merged)
            if errors:
                raise InvalidInput("the input doesn't fit the workflow's input_schema: " + "; ".join(errors))
        return msgspec.json.encode(merged)

    def _create(self, new: NewExecution) -> asyncio.Future[str]:
        """Starts that come in one turn of the loop are stored together."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()
        if not self._starting:
            loop.call_soon(self._flush_starts)
        self._starting.append((new, future))
        return future

    def _flush_starts(self) -> None:
        batch, self._starting = self._starting, []
        task = asyncio.get_running_loop().create_task(self._store_starts(batch))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _store_starts(self, batch: list[tuple[NewExecution, asyncio.Future[str]]]) -> None:
        try:
            ids = await self.stores.cold.create([new for new, _ in batch])
        except Exception as error:  # noqa: BLE001 -- each caller gets its own
            if len(batch) > 1:
                for one in batch:
                    await self._store_starts([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        fresh = [ExecutionStarted(i) for i, (new, _) in zip(ids, batch, strict=True) if i == new.record.execution_id]
        with contextlib.suppress(StoreError):  # it is stored, so it will run: the owner looks for what has no start
            await self.stores.hot.append(fresh)
        for execution_id, (_, future) in zip(ids, batch, strict=True):
            if not future.done():
                future.set_result(execution_id)

    def execution(self, execution_id: str) -> ExecutionHandle:
        """A handle for an execution that this store already has."""
        return ExecutionHandle(self, execution_id)

    async def result(self, execution_id: str) -> Result:
        future: asyncio.Future[Execution] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(execution_id, []).append(future)
        try:
            if self._maybe_ended(execution_id):
                found = await self.status(execution_id)
                if found.state in EXECUTION_ENDS:
                    return found
            execution = await future
            return await self._view(execution.record, execution.runs, execution.outputs)
        finally:
            self._forget_waiter(execution_id, future)

    def _maybe_ended(self, execution_id: str) -> bool:
        """False only if the execution is known to be in memory, so that its end will be announced."""
        return not any(owner.holds(execution_id) for owner in self.orchestrator.owned.values())

    def _forget_waiter(self, execution_id: str, future: asyncio.Future[Execution]) -> None:
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

    async def _view(self, record: ExecutionRecord, runs: Any, outputs: Any) -> Result:
        plan = await self.plans.get(record.workflow, record.version)
        if plan is None:
            raise NotFound(f"the workflow {record.workflow}@{record.version} is gone from the store")
        return Result(**execution_view(record, runs, await fetch_outputs(outputs, self.stores.blobs), plan))

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
        await self._steer(execution_id, CancelRequested(execution_id))

    async def pause(self, execution_id: str) -> None:
        await self._steer(execution_id, PauseRequested(execution_id))

    async def resume(self, execution_id: str) -> None:
        await self._steer(execution_id, ResumeRequested(execution_id))

    async def _steer(self, execution_id: str, event: CancelRequested | PauseRequested | ResumeRequested) -> None:
        stored = await self.stores.cold.execution(execution_id)
        if stored is None:
            raise NotFound(f"there is no execution {execution_id!r} in this store")
        if stored.record.state in EXECUTION_ENDS:
            raise Conflict(f"execution {execution_id} is {stored.record.state}; it can't be changed any more")
        await self.stores.hot.append([event])

    def _committed(self, changes: Sequence[Commands], ended: Sequence[Execution]) -> None:
        for commands in changes:
            if commands.stops:
                self.worker.stop_tasks(commands.stops)
            if commands.tasks:
                self.worker.serve(task.queue for task in commands.tasks)
            for queue in self._subscribers.get(commands.execution_id, ()):
                queue.put_nowait(commands.history)
        for execution in ended:
            for future in self._waiters.get(execution.record.execution_id, ()):
                if not future.done():
                    future.set_result(execution)


async def arun(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002
    *,
    store: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """Run one execution to its end, in a private store unless told otherwise."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 -- only for a private store

    if store is not None:
        async with Engine(store, settings=settings) as engine:
            return await (await engine.start(workflow, input)).result()
    with TemporaryDirectory(prefix="penstock-") as directory:
        address = f"sqlite:///{os.path.join(directory, 'run.db')}"  # noqa: PTH118 -- an address, not a path
        async with Engine(address, settings=settings) as engine:
            return await (await engine.start(workflow, input)).result()


def run(
    workflow: Workflow | Mapping[str, Any],
    input: Mapping[str, Any] | None = None,  # noqa: A002
    *,
    store: str | None = None,
    settings: Settings | None = None,
) -> Result:
    """As `arun`, blocking."""
    return run_loop(arun(workflow, input, store=store, settings=settings))


Answer = TypeVar("Answer")


def run_loop(work: Coroutine[Any, Any, Answer]) -> Answer:
    """`asyncio.run` on uvloop where there is one: a hop is a third faster."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
