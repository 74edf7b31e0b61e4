"""The owner of a partition: the only one who decides for its executions.

It decides one batch of events after another, and writes one commit after another.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from penstock.definition.plan import Plan
from penstock.engine import deadlines, handling
from penstock.engine.commands import COMMIT_WEIGHT, Commands
from penstock.engine.events import (
    AnyEvent,
    Blob,
    CancelRequested,
    ChildEnded,
    Continued,
    ExecutionStarted,
    SignalReceived,
    TaskFailed,
    TaskLost,
    TaskReturned,
    TimerFired,
    Value,
)
from penstock.engine.state import Execution
from penstock.engine.states import EXECUTION_ENDS, NodeState
from penstock.engine.transitions import fail_from_records
from penstock.engine.waiting import is_expiring
from penstock.errors import StoreError, StoreUnavailable
from penstock.orchestrator.children import ChildFinder, join_output
from penstock.orchestrator.committer import TRANSIENT, Committer
from penstock.orchestrator.loader import ColdStoreAway, Loader, PlanMissing
from penstock.orchestrator.preparer import Preparer
from penstock.orchestrator.routing import Routing
from penstock.orchestrator.timing import OrchestratorTiming
from penstock.sandbox import Sandbox
from penstock.stores import codec
from penstock.stores.base import Lease, Stored, Stores
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.plan_cache import Compiling, PlanCache

log = logging.getLogger("penstock.orchestrator")

BATCH_EVENTS = 512
REST_NODES = 100
"""Executions with more nodes than this stay while something of them runs.

Loading them would cost more than it saves.
"""
WITH_TASKS = frozenset({NodeState.QUEUED, NodeState.RUNNING, NodeState.RETRYING})
MAY_BE_FIRST = (ExecutionStarted, CancelRequested)
"""Events that an execution may get before anything of it was committed.

One that is cancelled then ends unbegun.
"""
BREATH_SECONDS = 0.02
"""Seconds of deciding after which an owner lets the loop run leases, heartbeats and others."""
LARGE_NODES = 5000
MAY_END_ALL = (CancelRequested, TaskFailed, TaskLost, TimerFired)
"""Events that may end every node of an execution at once."""
INLINE_AWAY_BYTES = 16 * 1024 * 1024
"""Bytes that a task may carry itself while the blob store is away."""
Ended = Execution | Stored
Observer = Callable[[CommitPlan, Sequence[Commands], Sequence[Ended]], None]
"""Called after each commit: what was decided, and which executions ended with it."""


class BrokenExecution(NamedTuple):
    """An execution that could not be handled, and the commands that fail it from its records."""

    stored: Stored
    commands: Commands


class PartitionOwner:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        stores: Stores,
        lease: Lease,
        plans: PlanCache,
        *,
        inline_max_bytes: int,
        sandbox: Sandbox,
        timing: OrchestratorTiming,
        observer: Observer | None = None,
        routing: Routing | None = None,
        large_turn: asyncio.Lock | None = None,
    ) -> None:
        """`large_turn` is shared by the owners of a process.

        One at a time decides for a large execution.
        """
        self._hot = stores.hot
        self._blobs = stores.blobs
        self.lease = lease
        self._timing = timing
        self._observer = observer
        self._inline_max_bytes = inline_max_bytes
        self._routing = routing or Routing(stores.queue, timing)
        self._large_turn = large_turn or asyncio.Lock()
        self._loader = Loader(stores, plans, timing)
        self._position = lease.position
        self._cache: dict[str, Execution] = {}
        self._resting: dict[str, Execution] = {}
        """Executions that nothing has happened to lately."""
        self._rest_at = stores.hot.now() + timing.rest_seconds
        self._continue: set[str] = set()
        self._batch: dict[str, Execution] = {}
        self._broken: dict[str, BrokenExecution] = {}
        self._failing: set[str] = set()
        """Broken executions whose failing commit is under way."""
        self._quarantined: dict[str, float] = {}
        """Executions that can't even be failed, and until when they are in quarantine."""
        self._without_plan: set[str] = set()
        """Quarantined executions that wait until the cold store has their version, or is back.

        Their events were dropped.
        """
        self._postponed: list[Commands] = []
        self._beginning: dict[str, list[AnyEvent]] = {}
        """Executions that can't begin before their plan is compiled, and their events.

        The events come again then. Only in memory: if this owner dies, the next one finds in the
        cold store that they haven't begun.
        """
        self._waits: set[asyncio.Task[None]] = set()
        self._blobs_away_until = 0.0
        self._committer = Committer(
            stores.hot,
            lease,
            self._landed,
            self._on_rejected,
            is_tiered=stores.topology.is_tiered,
        )
        self._preparer = Preparer(sandbox, self._wake_up, self._store_config, timing)
        self._children = ChildFinder(stores, plans, sandbox, self._wake_up, timing)
        self._weight = 0
        self._deciding = False
        self._retiring = False
        self._topology = stores.topology
        self._landed_at = stores.hot.now()

    def may_await(self, execution_id: str, node_id: str, child: str) -> bool:
        """Whether a node may wait for this child; it doesn't if what is in memory says so."""
        execution = self._cache.get(execution_id) or self._resting.get(execution_id)
        if execution is None:
            return True
        run = execution.runs.get(node_id)
        if run is None or run.more is None:
            return False
        return run.state is NodeState.WAITING and run.more.child == child

    async def run(self) -> None:
        """Decide and commit, batch after batch, until this owner is finished.

        That is when the lease is lost (`Fenced`), a store fails (`StoreError`), it is to `retire`
        or the task is cancelled. Whatever it is, a commit may or may not have happened, so a new
        owner reads it all again.
        """
        try:
            while not self._retiring:
                await self._advance()
            await self._committer.wait_landed()
        finally:
            for task in self._waits:
                task.cancel()
            await self._preparer.close()
            await self._children.close()
            await self._committer.end()

    async def step(self) -> None:
        """Decide one batch, and write it."""
        await self._advance()
        await self._committer.wait_landed()

    async def _advance(self) -> None:
        """Decide the events that have come.

        It is written at once, or when the commit under way has landed.
        """
        await self._let_go_in_time()
        events = await self._next_events()
        self._deciding = True
        try:
            if events:
                await self._decide(events)
            if not (events and self._committer.is_busy):
                await self._commit_batch()
        finally:
            self._deciding = False

    async def _let_go_in_time(self) -> None:
        """Let executions to which nothing happens leave memory.

        Many only wait, for hours perhaps, and the executions that go on are slower among them.
        """
        if self._hot.now() < self._rest_at:
            return
        await self._commit_batch()
        # whatever is loaded again must be what was decided here
        await self._committer.wait_landed()

        large: dict[str, Execution] = {}
        resting: dict[str, Execution] = {}
        for execution_id, execution in self._cache.items():
            if len(execution.runs) > REST_NODES and _has_tasks(execution):
                large[execution_id] = execution
            else:
                resting[execution_id] = execution
        self._cache = large
        self._resting = resting
        self._rest_at = self._hot.now() + self._timing.rest_seconds

    def retire(self) -> None:
        """Begin nothing new. Once it `is_at_rest`, `run` may be cancelled and nothing is lost."""
        self._retiring = True

    @property
    def is_at_rest(self) -> bool:
        """Whether everything that was decided has landed."""
        return not (self._deciding or self._batch or self._committer.is_busy)

    async def is_idle(self) -> bool:
        """Whether nothing is under way, and nothing waits in the inbox."""
        return self.is_at_rest and not await self._hot.receive(
            self.lease.partition, self._position, 1, 0.0
        )

    async def _next_events(self) -> list[tuple[int, AnyEvent]]:
        """Events with their positions; timers and what was left over have none of their own."""
        partition = self.lease.partition
        if self._committer.is_busy:  # what it sets or clears isn't known yet: only the inbox is
            return await self._hot.receive(partition, self._position, BATCH_EVENTS, 0.0)

        now = self._hot.now()
        next_due = await self._hot.next_due(partition)
        if self._continue:
            wait = 0.0
        elif next_due is None:
            wait = self._timing.idle_seconds
        else:
            wait = min(self._timing.idle_seconds, max(0.0, next_due - now))
        events = await self._hot.receive(partition, self._position, BATCH_EVENTS, wait)

        last = events[-1][0] if events else self._position
        if next_due is not None and next_due <= self._hot.now():
            due = await self._hot.due(partition, self._hot.now(), BATCH_EVENTS)
            events += [(last, TimerFired(execution_id)) for execution_id in due]
        events += [(last, Continued(execution_id)) for execution_id in self._continue]
        self._continue.clear()
        return events

    async def _decide(self, events: list[tuple[int, AnyEvent]]) -> None:
        now = self._hot.now()
        await self._load(events, now)
        events = await self._with_stored_signals(events, now)
        breath = time.perf_counter()
        for position, event in events:
            if time.perf_counter() - breath > BREATH_SECONDS:
                await asyncio.sleep(0)
                breath = time.perf_counter()
            execution = self._cache.get(event.execution_id)
            if event.execution_id in self._beginning:
                self._beginning[event.execution_id].append(event)
            # an execution that has ended, or is broken, isn't there: too late for this event
            elif execution is not None:
                self._batch[event.execution_id] = execution
                try:
                    if execution.node_count() > LARGE_NODES and isinstance(event, MAY_END_ALL):
                        await self._handle_large(execution, event, now)
                    else:
                        self._handle(execution, event, now)
                    if execution.wanted:
                        await self._provide(execution, now)
                except TRANSIENT:
                    raise
                # one bad execution must not stop the partition
                except Exception as error:  # noqa: BLE001
                    await self._fail_execution(event.execution_id, error, now)
            self._position = position
            if self._weight >= COMMIT_WEIGHT:
                await self._commit_batch()

    async def _with_stored_signals(
        self, events: list[tuple[int, AnyEvent]], now: float
    ) -> list[tuple[int, AnyEvent]]:
        """The same events, with signals that are stored before the timers that end waits for them.

        A signal or a decision that was stored in time counts, also if its event is behind others in
        the inbox, or was lost on its way there.
        """
        expiring: dict[str, Execution] = {}
        for _, event in events:
            if type(event) is TimerFired:  # most aren't, and `isinstance` is slow to deny it
                execution = self._cache.get(event.execution_id)
                if execution and is_expiring(execution, now):
                    expiring[event.execution_id] = execution
        if not expiring:
            return events

        signals: Mapping[str, Sequence[SignalReceived]] = {}
        is_known = True
        try:
            signals = await self._loader.signals(expiring)
        except StoreUnavailable as error:
            if not self._topology.is_tiered:
                raise
            is_known = False
            log.warning("%d waits can't end now: %s", len(expiring), error)

        with_signals: list[tuple[int, AnyEvent]] = []
        for position, event in events:
            if isinstance(event, TimerFired) and event.execution_id in expiring:
                if not is_known:
                    execution = expiring[event.execution_id]
                    handling.postpone(execution, now + self._timing.cold_away_retry_seconds)
                    self._batch[event.execution_id] = execution
                    continue
                received = signals.get(event.execution_id, ())
                with_signals += [(position, signal) for signal in received]
            with_signals.append((position, event))
        return with_signals

    async def _handle_large(self, execution: Execution, event: AnyEvent, now: float) -> None:
        """Handle an event that may end every node of a large execution.

        Ending 30,000 nodes takes 50 ms: between two of those, the loop has its turn.
        """
        async with self._large_turn:
            self._handle(execution, event, now)
            await asyncio.sleep(0)

    def _handle(self, execution: Execution, event: AnyEvent, now: float) -> None:
        record = execution.record
        prepared = self._preparer.take(record.execution_id)
        if prepared:
            handling.provide_prepared(execution, prepared)
        found = self._children.take(record.execution_id)
        if found:
            handling.provide_found(execution, found)

        before = execution.commands.weight
        handling.handle(execution, event, now)
        self._weight += execution.commands.weight - before

        if execution.unprepared:
            self._preparer.ask(record.execution_id, record.workflow, execution.take_unprepared())
        if execution.lookups:
            self._children.ask(record.execution_id, execution.take_lookups())

    async def _wake_up(self, execution_id: str) -> None:
        """Wake an execution up through the inbox: that wakes an owner who waits, on every store."""
        await self._hot.append([Continued(execution_id)], own=True)

    async def _provide(self, execution: Execution, now: float) -> None:
        """Provide large outputs that an execution needs before it can go on."""
        while execution.wanted:
            values = await self._fetch(execution.wanted)
            if values is None:
                # all others go on; the timer is in the store, so that a new owner tries too
                deadlines.wake(execution, self._blobs_away_until)
                return
            handling.provide(execution, values)
            self._handle(execution, Continued(execution.record.execution_id), now)

    async def _fetch(self, blobs: Mapping[str, Blob]) -> dict[str, bytes] | None:
        """Values from the blob store; None if it is away."""
        if self._hot.now() < self._blobs_away_until:
            return None
        asked_at = self._hot.now()
        try:
            return {node_id: await self._blobs.get(blob) for node_id, blob in blobs.items()}
        except StoreUnavailable as error:
            self._blobs_are_away(asked_at, error)
            return None

    def _blobs_are_away(self, asked_at: float, error: StoreUnavailable) -> None:
        if not self._topology.is_tiered:  # then all of the store is away
            raise error
        now = self._hot.now()
        seconds = max(self._timing.blobs_away_seconds, 2 * (now - asked_at))
        self._blobs_away_until = now + min(seconds, self._timing.blobs_away_seconds_max)
        log.warning("partition %d: large values have to wait: %s", self.lease.partition, error)

    async def _load(self, events: Sequence[tuple[int, AnyEvent]], now: float) -> None:
        """Load the executions that these events concern and that aren't in memory."""
        cache = self._cache
        missing = {event.execution_id for _, event in events if event.execution_id not in cache}
        if self._resting:
            woken = [execution_id for execution_id in missing if execution_id in self._resting]
            cache.update((execution_id, self._resting.pop(execution_id)) for execution_id in woken)
            missing.difference_update(woken)
        missing.difference_update(self._broken)
        missing.difference_update(self._beginning)
        if self._quarantined:
            self._quarantined = {
                execution_id: until
                for execution_id, until in self._quarantined.items()
                if until > now
            }
            missing.difference_update(self._quarantined)
        if not missing:
            return

        starts = {event.execution_id for _, event in events if isinstance(event, MAY_BE_FIRST)}
        loaded, failed = await self._loader.load(missing, starts)
        self._cache.update(loaded)
        for execution_id, error in failed.items():
            if isinstance(error, Compiling):
                self._begin_later(execution_id, error.task)
            elif isinstance(error, PlanMissing):
                # the hot store has the only copy of what the execution did: it waits
                log.error("execution %s can't go on: %s", execution_id, error)
                self._quarantine(execution_id, now + self._timing.quarantine_seconds)
                self._without_plan.add(execution_id)
            elif isinstance(error, ColdStoreAway):
                log.warning("execution %s can't go on now: %s", execution_id, error)
                self._quarantine(execution_id, now + self._timing.cold_away_retry_seconds)
                self._without_plan.add(execution_id)
            else:
                await self._fail_execution(execution_id, error, now)

        for execution_id in self._without_plan & loaded.keys():
            self._without_plan.discard(execution_id)
            await self._hot.append(_hand_out_again(loaded[execution_id]), own=True)

    def _begin_later(self, execution_id: str, compiling: asyncio.Task[Plan]) -> None:
        """Begin an execution when its plan is compiled; others go on meanwhile.

        However the compiling ends, the events are handled then.
        """

        async def wait() -> None:
            await asyncio.wait([compiling])
            # if the store fails, they are found in the cold store again, as after a crash
            with suppress(StoreError):
                await self._hot.append(self._beginning.pop(execution_id), own=True)

        self._beginning[execution_id] = []
        task = asyncio.create_task(wait())
        self._waits.add(task)
        task.add_done_callback(self._waits.discard)

    async def _fail_execution(self, execution_id: str, error: Exception, now: float) -> None:
        """Fail one execution from its last committed records; everything else goes on."""
        await self._committer.wait_landed()
        await self._fail_from_records(execution_id, error, now)

    async def _fail_from_records(self, execution_id: str, error: Exception, now: float) -> None:
        log.error("execution %s broke", execution_id, exc_info=error)
        self._cache.pop(execution_id, None)
        self._batch.pop(execution_id, None)
        try:
            stored = await self._loader.last_committed(execution_id)
        except TRANSIENT:
            raise
        except Exception:
            log.exception("execution %s can't even be read; its events are dropped", execution_id)
            self._quarantine(execution_id, now + self._timing.quarantine_seconds)
            return
        if stored is not None and stored.record.state not in EXECUTION_ENDS:
            message = f"{type(error).__name__}: {error}"
            commands = fail_from_records(stored.record, stored.runs, stored.last_seq, message, now)
            self._broken[execution_id] = BrokenExecution(stored, commands)

    def _quarantine(self, execution_id: str, until: float) -> None:
        """Handle no events of an execution before `until`.

        Its timer is set to then: one that is due would come again at once, and for ever.
        """
        self._quarantined[execution_id] = until
        self._postponed.append(Commands(execution_id, timer_changed=True, wake_at=until))

    async def _on_rejected(self, execution_id: str, error: Exception) -> Commands | None:
        """The commands to write for an execution whose own ones the store has rejected.

        The same again if these were already the ones that fail it; None if there is nothing to
        write.
        """
        if execution_id not in self._broken:
            await self._fail_from_records(execution_id, error, self._hot.now())
        broken = self._broken.get(execution_id)
        if broken is None:
            return None
        self._failing.add(execution_id)
        return broken.commands

    async def _commit_batch(self) -> None:
        changes = [execution.take_commands() for execution in self._batch.values()]
        for execution_id, broken in self._broken.items():
            if execution_id not in self._failing:
                changes.append(broken.commands)
                self._failing.add(execution_id)
        changes += self._postponed
        self._postponed = []
        self._batch.clear()
        self._weight = 0

        self._route(changes)
        await self._spill(changes)
        await self._committer.wait_landed()
        if len(changes) > 1:
            await self._committer.begin(changes, self._position)
        # so little that there is nothing to decide meanwhile
        elif changes or self._position != self.lease.position or self._is_unproved():
            await self._committer.write(changes, self._position)

    def _is_unproved(self) -> bool:
        if not self._topology.is_tiered:
            return False
        return self._hot.now() - self._landed_at >= self._timing.proof_seconds

    def _landed(self, plan: CommitPlan, changes: list[Commands]) -> None:
        self._landed_at = self._hot.now() if self._topology.is_tiered else 0.0
        ended: list[Ended] = []
        for commands in changes:
            execution_id = commands.execution_id
            if commands.finished:
                self._preparer.forget(execution_id)
                self._children.forget(execution_id)
                if execution_id in self._broken:
                    ended.append(self._broken.pop(execution_id).stored)
                else:
                    ended.append(self._cache.pop(execution_id))
                self._failing.discard(execution_id)
            elif commands.has_more:
                self._continue.add(execution_id)
        if self._observer is not None:
            self._observer(plan, changes, ended)

    def _route(self, changes: Iterable[Commands]) -> None:
        """Route tasks to the queues that live workers serve now.

        A plan may be older than these workers.
        """
        queues = self._routing.queues
        for commands in changes:
            for task in commands.tasks:
                queue = queues.get(task.handler)
                if queue is not None and queue != task.queue and not task.names_queue:
                    task.queue = queue

    async def _spill(self, changes: Iterable[Commands]) -> None:
        """Put large outputs and configs into the blob store, and inputs that are large together."""
        inline_max_bytes = self._inline_max_bytes
        for commands in changes:
            if commands.size > inline_max_bytes:
                await self._spill_outputs(commands)
            if commands.sends and not self._topology.is_tiered:  # else when it is delivered
                for send in commands.sends:
                    if isinstance(send, ChildEnded):
                        await join_output(self._blobs, send, inline_max_bytes)
            for task in commands.tasks:
                config = task.config
                if isinstance(config, bytes) and len(config) > inline_max_bytes:
                    task.config = await self._put(config) or config

                inputs = task.inputs
                if not inputs:
                    continue
                size = sum([len(value) for _, value in inputs if isinstance(value, bytes)])
                if size > inline_max_bytes:
                    blob = await self._put(codec.encode(inputs))
                    task.inputs = inputs if blob is None else [("", blob)]

    async def _spill_outputs(self, commands: Commands) -> None:
        """Put large outputs into the blob store, that the engine itself has made.

        Those of workers are there already; lists of maps may have 64 MiB.
        """
        for node_id, output in list(commands.outputs.items()):
            if not isinstance(output, bytes) or len(output) <= self._inline_max_bytes:
                continue
            blob = await self._put(output)
            if blob is None:
                continue
            commands.outputs[node_id] = blob
            execution = self._cache.get(commands.execution_id)
            if execution is not None:
                execution.outputs[node_id] = blob
            for task in commands.tasks:
                task.inputs = [
                    (name, blob if value is output else value) for name, value in task.inputs
                ]
            for send in commands.sends:
                if isinstance(send, ChildEnded) and send.output is output:
                    send.output = blob

    async def _store_config(self, config: bytes) -> Value:
        """A config as a blob, if it is large.

        Without a blob store it stays as it is until the commit.
        """
        if len(config) <= self._inline_max_bytes:
            return config
        try:
            return await self._put(config) or config
        except StoreError:
            return config

    async def _put(self, data: bytes) -> Blob | None:
        """Put data into the blob store.

        None if it is away: then the task carries the data itself, so that nobody has to wait.
        """
        asked_at = self._hot.now()
        is_small = len(data) <= INLINE_AWAY_BYTES
        if is_small and asked_at < self._blobs_away_until:
            return None
        try:
            return await self._blobs.put(data)
        except StoreUnavailable as error:
            if not is_small:
                raise
            self._blobs_are_away(asked_at, error)
            return None


def _has_tasks(execution: Execution) -> bool:
    """Whether something of an execution is in a queue, at a worker or about to be tried again."""
    return any(run.state in WITH_TASKS for run in execution.open_runs())


def _hand_out_again(execution: Execution) -> list[AnyEvent]:
    """Events that hand out the tasks of an execution again.

    A worker may have reported while its events were dropped. A task that still waits isn't handed
    out twice.
    """
    execution_id = execution.record.execution_id
    generation = execution.record.generation
    events: list[AnyEvent] = []
    for run in execution.runs.values():
        if run.state in (NodeState.QUEUED, NodeState.RUNNING):
            returned = TaskReturned(execution_id, run.node_id, generation, run.attempt, "")
            events.append(returned)
    events.append(Continued(execution_id))
    return events
