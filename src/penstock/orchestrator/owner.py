"""The owner of a partition: the only one who decides for its executions, one batch and one commit after another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from penstock.engine.commands import Commands, Task
from penstock.engine.ending import wreck
from penstock.engine.events import AnyEvent, Continued, ExecutionStarted, TimerFired
from penstock.engine.execution import COMMIT_WEIGHT, Execution
from penstock.engine.states import EXECUTION_ENDS
from penstock.errors import Fenced, StoreUnavailable
from penstock.orchestrator.loader import Loader
from penstock.orchestrator.plans import Plans
from penstock.stores import codec
from penstock.stores.base import Commit, Lease, Stored, Stores

log = logging.getLogger("penstock.orchestrator")

BATCH_EVENTS = 512
IDLE_SECONDS = 1.0
TRANSIENT = (Fenced, StoreUnavailable)
"""Not an execution's fault: the owner ends, and another one tries again."""

Ended = Execution | Stored
Observer = Callable[[Sequence[Commands], Sequence[Ended]], None]
"""Told after each commit: what was decided, and which executions ended with it."""


class Wreck(NamedTuple):
    """An execution that could not be handled, and the commands that fail it."""

    stored: Stored
    commands: Commands


class PartitionOwner:
    def __init__(
        self, stores: Stores, lease: Lease, plans: Plans, *, inline_max_bytes: int, observer: Observer | None = None
    ) -> None:
        self._hot, self._blobs = stores.hot, stores.blobs
        self.lease, self._observer = lease, observer
        self._inline_max_bytes = inline_max_bytes
        self._loader = Loader(stores, plans)
        self._position = lease.position
        self._cache: dict[str, Execution] = {}
        self._continue: set[str] = set()
        self._batch: dict[str, Execution] = {}
        self._wrecks: dict[str, Wreck] = {}
        self._deciding = False
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
            self._deciding = True
            try:
                await self._process(events)
            finally:
                self._deciding = False

    async def is_idle(self) -> bool:
        """Nothing is under way, and nothing waits in the inbox."""
        return not self._deciding and not await self._hot.receive(self.lease.partition, self._position, 1, 0.0)

    async def _next_events(self) -> list[tuple[int, AnyEvent]]:
        """Events with their positions; timers and what was left over have none of their own."""
        partition, now = self.lease.partition, self._hot.now()
        next_due = await self._hot.next_due(partition)
        wait = IDLE_SECONDS if next_due is None else min(IDLE_SECONDS, max(0.0, next_due - now))
        events = await self._hot.receive(partition, self._position, BATCH_EVENTS, 0.0 if self._continue else wait)
        last = events[-1][0] if events else self._position
        if next_due is not None and next_due <= self._hot.now():
            due = await self._hot.due(partition, self._hot.now(), BATCH_EVENTS)
            events += [(last, TimerFired(name)) for name in due]
        events += [(last, Continued(name)) for name in self._continue]
        self._continue.clear()
        return events

    async def _process(self, events: list[tuple[int, AnyEvent]]) -> None:
        now = self._hot.now()
        await self._load([event for _, event in events], now)
        weight = 0
        for position, event in events:
            weight += await self._handle(event, now)
            self._position = position
            if weight >= COMMIT_WEIGHT:
                await self._commit_batch()
                weight = 0
        self.events += len(events)
        await self._commit_batch()

    async def _handle(self, event: AnyEvent, now: float) -> int:
        """Answers how much there is to write for it. One bad execution must not stop the partition."""
        execution = self._cache.get(event.execution_id)
        if execution is None:
            return 0  # ended and gone, or wrecked: too late for this event
        self._batch[event.execution_id] = execution
        before = execution.last_seq
        try:
            execution.handle(event, now)
            while execution.wanted:
                execution.provide({name: await self._blobs.get(blob) for name, blob in execution.wanted.items()})
                execution.handle(Continued(event.execution_id), now)
        except TRANSIENT:
            raise
        except Exception as error:  # noqa: BLE001
            await self._wreck(event.execution_id, error, now)
        return execution.last_seq - before

    async def _load(self, events: Sequence[AnyEvent], now: float) -> None:
        """Everything that these events concern and that isn't in memory."""
        missing = {event.execution_id for event in events if event.execution_id not in self._cache}
        starts = {event.execution_id for event in events if isinstance(event, ExecutionStarted)}
        if not missing:
            return
        loaded, failed = await self._loader.load(missing, starts)
        self._cache.update(loaded)
        for name, error in failed.items():
            await self._wreck(name, error, now)

    async def _wreck(self, execution_id: str, error: Exception, now: float) -> None:
        """That execution fails, from its last committed state, and everything else goes on."""
        log.error("execution %s broke", execution_id, exc_info=error)
        self._cache.pop(execution_id, None)
        self._batch.pop(execution_id, None)
        try:
            stored = await self._loader.last_committed(execution_id)
        except TRANSIENT:
            raise
        except Exception:
            log.exception("execution %s can't even be read; its events are dropped", execution_id)
            return
        if stored is not None and stored.record.state not in EXECUTION_ENDS:
            message = f"{type(error).__name__}: {error}"
            self._wrecks[execution_id] = Wreck(stored, wreck(stored.record, stored.runs, stored.last_seq, message, now))

    async def _commit_batch(self) -> None:
        changes = [execution.take_commands() for execution in self._batch.values()]
        changes += [wrecked.commands for wrecked in self._wrecks.values()]
        self._batch.clear()
        await self._spill(task for commands in changes for task in commands.tasks)
        await self._commit(changes, self.lease.position, self._position)

    async def _commit(self, changes: list[Commands], before: int, after: int) -> None:
        """A commit that is refused for its content is split until the culprit is found; that one fails."""
        lease = self.lease
        try:
            await self._hot.commit(Commit(lease.partition, lease.token, lease.commit_number, after, changes))
        except TRANSIENT:
            raise
        except Exception as error:
            if len(changes) > 1:
                half = len(changes) // 2
                await self._commit(changes[:half], before, before)
                await self._commit(changes[half:], before, after)
                return
            if not changes or changes[0].execution_id in self._wrecks:
                raise
            name = changes[0].execution_id
            await self._wreck(name, error, self._hot.now())
            await self._commit([self._wrecks[name].commands] if name in self._wrecks else [], before, after)
            return
        lease.commit_number += 1
        lease.position = after
        self._committed(changes)

    def _committed(self, changes: list[Commands]) -> None:
        self.commits += 1
        ended: list[Ended] = []
        for commands in changes:
            name = commands.execution_id
            if commands.finished:
                ended.append(self._wrecks.pop(name).stored if name in self._wrecks else self._cache.pop(name))
            elif commands.more:
                self._continue.add(name)
        if self._observer is not None:
            self._observer(changes, ended)

    async def _spill(self, tasks: Iterable[Task]) -> None:
        """Large configs travel as blobs, and so do inputs that are large together."""
        most = self._inline_max_bytes
        for task in tasks:
            if isinstance(task.config, bytes) and len(task.config) > most:
                task.config = await self._blobs.put(task.config)
            if sum(len(value) for _, value in task.inputs if isinstance(value, bytes)) > most:
                task.inputs = [("", await self._blobs.put(codec.encode(task.inputs)))]
