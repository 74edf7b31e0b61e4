"""The owner of a partition: the only one who decides for its executions, one batch and one commit after another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from penstock.definition.plan import Plan
from penstock.engine.commands import Commands, Task
from penstock.engine.events import AnyEvent, Continued, ExecutionBroke, ExecutionStarted, TimerFired
from penstock.engine.execution import Execution
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import StoreError
from penstock.orchestrator.plans import Plans
from penstock.stores.base import Commit, Lease, Stores

log = logging.getLogger("penstock.orchestrator")

BATCH_EVENTS = 512
IDLE_SECONDS = 1.0

Observer = Callable[[Sequence[Commands], Sequence[Execution]], None]
"""Told after each commit: what was decided, and which executions ended with it."""


class PartitionOwner:
    def __init__(
        self, stores: Stores, lease: Lease, plans: Plans, *, inline_max_bytes: int, observer: Observer | None = None
    ) -> None:
        self._hot, self._cold, self._blobs = stores.hot, stores.cold, stores.blobs
        self.lease, self._plans, self._observer = lease, plans, observer
        self._inline_max_bytes = inline_max_bytes
        self._position = lease.position
        self._cache: dict[str, Execution] = {}
        self._continue: set[str] = set()
        self.commits = 0
        self.events = 0

    async def run(self) -> None:
        """Until the lease is lost (`Fenced`), a store fails (`StoreError`) or the task is cancelled.

        Whatever it is, this owner is finished: a commit may or may not have happened, so a new one reads it all again.
        """
        while True:
            await self.step()

    async def step(self) -> None:
        events = await self._next_events()
        if events:
            await self._process(events)

    async def _next_events(self) -> list[AnyEvent]:
        partition, now = self.lease.partition, self._hot.now()
        next_due = await self._hot.next_due(partition)
        wait = IDLE_SECONDS if next_due is None else min(IDLE_SECONDS, max(0.0, next_due - now))
        received = await self._hot.receive(partition, self._position, BATCH_EVENTS, 0.0 if self._continue else wait)
        events: list[AnyEvent] = [event for _, event in received]
        if received:
            self._position = received[-1][0]
        if next_due is not None and next_due <= self._hot.now():
            due = await self._hot.due(partition, self._hot.now(), BATCH_EVENTS)
            events += [TimerFired(name) for name in due]
        events += [Continued(name) for name in self._continue]
        self._continue.clear()
        return events

    async def _process(self, events: list[AnyEvent]) -> None:
        touched: dict[str, Execution] = {}
        now = self._hot.now()
        await self._load({event.execution_id for event in events}, events)
        for event in events:
            execution = self._cache.get(event.execution_id)
            if execution is None:
                continue  # ended and gone: too late for this event
            touched[event.execution_id] = execution
            try:
                execution.handle(event, now)
            except Exception as error:  # noqa: BLE001 -- one bad execution must not stop the partition
                touched[event.execution_id] = await self._break(event, error, now)
        for execution in touched.values():
            while execution.wanted:
                execution.provide({name: await self._blobs.get(blob) for name, blob in execution.wanted.items()})
                execution.handle(Continued(execution.record.execution_id), now)
        self.events += len(events)
        await self._commit([execution.take_commands() for execution in touched.values()])

    async def _load(self, wanted: Iterable[str], events: Sequence[AnyEvent]) -> None:
        missing = [name for name in wanted if name not in self._cache]
        if not missing:
            return
        known = await self._hot.load(missing)
        starts = {event.execution_id for event in events if isinstance(event, ExecutionStarted)}
        for name in missing:
            stored = known.get(name)
            if stored is not None:
                if stored.record.state in EXECUTION_ENDS:
                    continue
                plan = await self._plan(stored.record.workflow, stored.record.version)
                runs = stored.runs.values()
                self._cache[name] = Execution(plan, stored.record, runs, stored.outputs, stored.last_seq)
            elif name in starts:
                await self._begin(name)

    async def _begin(self, name: str) -> None:
        """A start that the hot store doesn't know: the cold store must."""
        intent = await self._cold.intent(name)
        if intent is not None and intent.record.state not in EXECUTION_ENDS:
            plan = await self._plan(intent.record.workflow, intent.record.version)
            self._cache[name] = Execution(plan, intent.record)

    async def _plan(self, name: str, version: int) -> Plan:
        plan = self._plans.known(name, version) or await self._plans.get(name, version)
        if plan is None:
            raise StoreError(f"the workflow {name}@{version} is gone from the store")
        return plan

    async def _break(self, event: AnyEvent, error: Exception, now: float) -> Execution:
        """The core raised: that execution fails, from its last committed state, and everything else goes on."""
        log.error("execution %s broke on %s", event.execution_id, type(event).__name__, exc_info=error)
        self._cache.pop(event.execution_id, None)
        await self._load([event.execution_id], [ExecutionStarted(event.execution_id)])
        execution = self._cache[event.execution_id]
        execution.handle(ExecutionBroke(event.execution_id, f"{type(error).__name__}: {error}"), now)
        return execution

    async def _commit(self, changes: list[Commands]) -> None:
        await self._spill(task for commands in changes for task in commands.tasks)
        lease = self.lease
        await self._hot.commit(Commit(lease.partition, lease.token, lease.commit_number, self._position, changes))
        lease.commit_number += 1
        self.commits += 1
        ended: list[Execution] = []
        for commands in changes:
            if commands.finished:
                ended.append(self._cache.pop(commands.execution_id))
            elif commands.more:
                self._continue.add(commands.execution_id)
        if self._observer is not None:
            self._observer(changes, ended)

    async def _spill(self, tasks: Iterable[Task]) -> None:
        """Large configs travel as blobs."""
        for task in tasks:
            if isinstance(task.config, bytes) and len(task.config) > self._inline_max_bytes:
                task.config = await self._blobs.put(task.config)
