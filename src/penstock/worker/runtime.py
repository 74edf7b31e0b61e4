"""The worker: fetches tasks for its slots, stops what must stop, and sends heartbeats.

A slot is a long-lived asyncio task that runs one attempt after another: starting a new asyncio task
for every attempt would cost more than most handlers. A slot takes its next task without going
through the loop, so short handlers follow each other at the speed of a function call; every so
often it lets others run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets as random_tokens
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from penstock.config import Settings
from penstock.definition.model import BUILT_IN_HANDLERS
from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskEvent, TaskFailed, TaskStarted
from penstock.errors import StoreError
from penstock.sandbox import Sandbox, sandbox_of
from penstock.stores.base import BlobStore, TaskQueue
from penstock.stores.task_keys import Key, key_of
from penstock.telemetry.metrics import Metrics
from penstock.telemetry.outcomes import OutcomeLog
from penstock.telemetry.traces import active_tracer
from penstock.worker.attempt import ROOM_BYTES, Attempt, run_attempt, run_traced, stopped_event
from penstock.worker.heartbeats import Heartbeats, heartbeats_for
from penstock.worker.live_logs import LiveLogs
from penstock.worker.logs import capture_logging
from penstock.worker.loop_watch import LoopWatch
from penstock.worker.outcome import outcome_name
from penstock.worker.processes import ProcessRunner
from penstock.worker.registry import Handler, Registry
from penstock.worker.room import Room
from penstock.worker.secrets import Secrets
from penstock.worker.threads import ThreadRunner
from penstock.worker.timing import WorkerTiming

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

log = logging.getLogger("penstock.worker")

STRAY_BEATS = 6
"""After so many heartbeats a worker compares its claimed tasks with what the store says."""
BREATHER = 64
"""Attempts that a slot runs before it lets the loop look at other things."""


class Worker:
    def __init__(  # noqa: PLR0913 -- what it is made of
        self,
        queue: TaskQueue,
        blobs: BlobStore,
        registry: Registry,
        settings: Settings,
        *,
        worker_id: str | None = None,
        queues: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
        metrics: Metrics | None = None,
        outcome_log: OutcomeLog | None = None,
        tracer: Tracer | None = None,
        sandbox: Sandbox | None = None,
        timing: WorkerTiming | None = None,
    ) -> None:
        self.timing = timing or WorkerTiming.of(settings)
        self.settings = settings
        self.blobs = blobs
        self.registry = registry
        self.worker_id = worker_id or f"worker-{os.getpid()}-{random_tokens.token_hex(3)}"
        self.secrets = Secrets(settings)
        self.threads = ThreadRunner(settings.worker_threads)
        self.processes = ProcessRunner(settings.worker_processes)
        self.sandbox: Sandbox = sandbox or sandbox_of(settings)
        self.room = Room(ROOM_BYTES)
        self._queue = queue
        self._clock = clock
        self._metrics = metrics
        self._outcome_log = outcome_log
        """None where the orchestrator of the same process logs what failed."""
        self._tracer = tracer
        self.note: Callable[[Key], None] = queue.begin
        self.queues = set(queues) or {
            handler.defaults.queue or handler.name for handler in registry
        }
        self._pending: deque[Task] = deque()
        self._idle: list[asyncio.Future[None]] = []
        self._waking = False
        """A slot has been told to look for a task and hasn't yet: one at a time is enough."""
        self._running: dict[Key, Attempt] = {}
        self._outbox: list[TaskEvent] = []
        self._reporting: list[TaskEvent] = []
        self._wake_reporter: asyncio.Future[None] | None = None
        self._wake_fetcher: asyncio.Future[None] | None = None
        self._wake_watcher: asyncio.Future[None] | None = None
        self._slots: set[asyncio.Task[None]] = set()
        self._services: list[asyncio.Task[None]] = []
        self._all_done: asyncio.Event | None = None
        self._is_cut_off = self._is_unsure = False
        """Unsure: something failed, and its claimed tasks may not be what the store says."""
        self.attempts = 0
        self.started_at: float | None = None
        self._live_logs = LiveLogs(queue, self._running, self.timing)
        self._heartbeats: Heartbeats | None = None
        self._watch_loop = False

    def guard_loop(self, store: str) -> None:
        """Log what blocks the loop, and have heartbeats sent meanwhile if `store` needs them.

        To be called before `start`.
        """
        self._watch_loop = True
        self._heartbeats = heartbeats_for(
            self.settings, store, self.worker_id, self.registry, self.timing
        )

    def serve(self, queues: Iterable[str]) -> None:
        """Serve these queues too, from now on."""
        self.queues.update(queues)

    @property
    def running(self) -> int:
        """How many attempts are under way."""
        return len(self._running)

    def claimed(self) -> Iterator[tuple[Task, float | None]]:
        """Claimed tasks, and for how many seconds each handler has run.

        None for a handler that hasn't been called yet.
        """
        now = asyncio.get_running_loop().time()
        for attempt in self._running.values():
            yield attempt.task, None if attempt.began > now else now - attempt.began
        for task in self._pending:
            yield task, None

    def start(self) -> None:
        capture_logging()
        self.started_at = self._clock()
        self._tracer = self._tracer or active_tracer()
        if self._metrics is not None:
            self._metrics.handlers.know(
                [*BUILT_IN_HANDLERS, *(handler.name for handler in self.registry)]
            )
        services = (
            self._fetch(),
            self._report(),
            self._watch(),
            self._heartbeat(),
            self._live_logs.run(),
        )
        self._services = [asyncio.create_task(service) for service in services]
        self._services += [asyncio.create_task(service) for service in self._guards()]

    def _guards(self) -> Iterator[Coroutine[Any, Any, None]]:
        if not self._watch_loop:
            return
        beats = self._heartbeats
        on_look = (beats.say_here,) if beats is not None else ()
        loop_watch = LoopWatch(
            self.worker_id, self._running.values, self.timing, self._metrics, *on_look
        )
        yield loop_watch.run()
        if beats is not None:
            yield beats.run(self._longest_seconds)

    def _longest_seconds(self) -> float:
        """How long the attempts that run now may still take."""
        now = asyncio.get_running_loop().time()
        longest = 0.0
        for attempt in self._running.values():
            # one that waits for a thread has all its time
            spent = max(0.0, now - attempt.began)
            longest = max(longest, attempt.task.timeout_seconds - spent)
        return longest

    async def stop(self, grace_seconds: float | None = None) -> None:
        """Fetch no more, let what runs finish within the grace period, hand back the rest."""
        fetcher = self._services[0]
        fetcher.cancel()
        unstarted = list(self._pending)
        self._pending.clear()

        if grace_seconds is None:
            grace_seconds = self.settings.shutdown_grace_seconds
        await self._drain(grace_seconds)

        for attempt in list(self._running.values()):
            attempt.stop("cancelled")
        tasks = [*self._services, *self._slots]
        for task in tasks:
            if task is not fetcher:
                task.cancel()
        await asyncio.wait(tasks, timeout=2 * self.timing.abandon_seconds)
        if self._outcome_log is not None:
            self._outcome_log.close()
        if self._heartbeats is not None:
            # a heartbeat of a worker that has left would bring it back
            await self._heartbeats.close()

        await self._queue.report(self.worker_id, self._reporting + self._outbox)
        await self._queue.leave(self.worker_id, unstarted)
        await self._close()

    async def _drain(self, grace_seconds: float) -> None:
        """Wait until nothing runs, at most this long."""
        self._all_done = asyncio.Event()
        if self._running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_done.wait(), grace_seconds)

    async def _close(self) -> None:
        self.threads.stop()
        await self.processes.close()
        await self.sandbox.close()
        for handler in self.registry:
            close = getattr(handler.function, "close", None)
            if close is not None:
                await close()

    def stop_tasks(self, stops: Iterable[Stop]) -> None:
        """Stop tasks that nobody waits for any more."""
        keys = set(map(key_of, stops))
        if keys and self._pending:
            remaining = [task for task in self._pending if key_of(task) not in keys]
            self._pending.clear()  # in place: the fetcher is about to add to it
            self._pending.extend(remaining)
        for key in keys:
            attempt = self._running.get(key)
            if attempt is not None:
                attempt.stop("cancelled")

    async def _fetch(self) -> None:
        while True:
            free = self.settings.worker_concurrency - len(self._running) - len(self._pending)
            if free <= 0:
                self._wake_fetcher = asyncio.get_running_loop().create_future()
                await self._wake_fetcher
                continue
            try:
                if self._is_unsure:
                    self._pending.extend(await self._overlooked())
                    self._is_unsure = False
                else:
                    handlers = self.registry.names
                    self._pending.extend(
                        await self._queue.fetch(self.worker_id, self.queues, free, handlers)
                    )
                self._is_cut_off = False
            except StoreError as error:
                self._complain("it can't fetch tasks", error)
                await asyncio.sleep(self.timing.retry_seconds)
            self._wake_slot()

    def _complain(self, what: str, error: StoreError) -> None:
        """Log a store's failure once, until it answers again: it is tried all the time."""
        if not self._is_cut_off:
            log.warning("%s is cut off, %s, and goes on trying: %s", self.worker_id, what, error)
        self._is_cut_off = self._is_unsure = True

    async def _overlooked(self) -> list[Task]:
        """Claimed tasks of a fetch whose answer got lost: nobody else will run them."""
        mine = {
            *self._running,
            *map(key_of, self._pending),
            *map(key_of, self._outbox),
            *map(key_of, self._reporting),
        }
        return [
            task for task in await self._queue.claimed(self.worker_id) if key_of(task) not in mine
        ]

    def _wake_slot(self) -> None:
        if not self._pending or self._waking:
            return
        while self._idle:
            idle = self._idle.pop()
            if not idle.done():
                self._waking = True
                idle.set_result(None)
                return
        if len(self._slots) < self.settings.worker_concurrency:
            self._waking = True
            slot = asyncio.create_task(self._slot())
            self._slots.add(slot)
            slot.add_done_callback(self._slots.discard)

    async def _slot(self) -> None:
        me = asyncio.current_task()
        loop = asyncio.get_running_loop()
        served = 0
        self._waking = False
        while True:
            if not self._pending:
                idle: asyncio.Future[None] = loop.create_future()
                self._idle.append(idle)
                await idle
                self._waking = False
                continue
            task = self._pending.popleft()
            if self._pending:
                self._wake_slot()  # it runs only if this attempt waits for something
            handler = self.registry.get(task.handler)
            if handler is None:  # it was taken from the registry after the task had been fetched
                await self._give_back(task)
                continue
            await self._serve(task, handler, me, loop)
            served += 1
            if served % BREATHER == 0:
                await asyncio.sleep(0)

    async def _give_back(self, task: Task) -> None:
        try:
            await self._queue.give_back(self.worker_id, [task])
        except StoreError as error:  # then it is still on our list, and is found there again
            self._complain(
                f"it can't give back a task of the handler {task.handler!r}, which it doesn't have",
                error,
            )
        if self._wake_fetcher is not None:
            _wake(self._wake_fetcher)
            self._wake_fetcher = None

    async def _serve(
        self,
        task: Task,
        handler: Handler,
        slot: asyncio.Task[Any] | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        key = key_of(task)
        attempt = Attempt(
            task, key, slot, loop, self.settings.log_max_bytes, self._clock, self._give_time
        )
        self._running[key] = attempt
        if self._heartbeats is not None:
            self._heartbeats.expect(task.timeout_seconds)
        if self._wake_watcher is not None:
            _wake(self._wake_watcher)
            self._wake_watcher = None
        self.attempts += 1
        try:
            if self._tracer is None:
                event = await run_attempt(attempt, handler, self)
            else:
                event = await run_traced(attempt, handler, self, self._tracer)
        finally:
            attempt.end()
            if not attempt.abandoned:
                del self._running[key]
        if attempt.abandoned or (
            attempt.stopped is not None and slot is not None and slot.uncancel()
        ):
            raise asyncio.CancelledError  # another slot has taken its place, or the worker stops
        self._task_over(task, event)

    def _task_over(self, task: Task, event: TaskEvent | None) -> None:
        if self._metrics is not None:
            self._metrics.task_ended(task.handler, outcome_name(event), task.attempt)
        if event is not None:
            self._outbox.append(event)
            if self._outcome_log is not None and isinstance(event, TaskFailed):
                _log_failure(self._outcome_log, task, event)
            if self._wake_reporter is not None:
                _wake(self._wake_reporter)
                self._wake_reporter = None
        if self._wake_fetcher is not None:
            _wake(self._wake_fetcher)
            self._wake_fetcher = None
        if self._all_done is not None and not self._running:
            self._all_done.set()

    def _give_time(self, attempt: Attempt) -> None:
        """Give a stopped handler time to clean up; one that doesn't come back loses its slot."""
        loop = asyncio.get_running_loop()
        loop.call_later(self.timing.abandon_seconds, self._abandon, attempt)

    def _abandon(self, attempt: Attempt) -> None:
        key = key_of(attempt.task)
        if self._running.get(key) is not attempt:
            return
        attempt.abandoned = True
        del self._running[key]
        if attempt.slot is not None:
            self._slots.discard(attempt.slot)
        log.warning(
            "the handler of %s ignores that it was stopped; its slot is replaced",
            attempt.task.node_id,
        )
        self._task_over(attempt.task, stopped_event(attempt, self.worker_id))
        self._wake_slot()

    async def _report(self) -> None:
        """Report outcomes: one report for all that finished, until the store has taken it."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._outbox:
                self._wake_reporter = loop.create_future()
                await self._wake_reporter
            self._reporting = self._outbox
            self._outbox = []
            try:
                await self._queue.report(self.worker_id, self._reporting)
                self._reporting = []
            except StoreError as error:
                self._complain(f"it can't report {len(self._reporting)} outcomes", error)
                self._outbox = self._reporting + self._outbox
                await asyncio.sleep(self.timing.retry_seconds)

    async def _watch(self) -> None:
        """Watch running attempts: stop those that time out, report long ones as started.

        Short ones never meet it.
        """
        loop = asyncio.get_running_loop()
        long_seconds = self.timing.long_seconds
        while True:
            if not self._running:
                self._wake_watcher = loop.create_future()
                await self._wake_watcher
            await asyncio.sleep(long_seconds)
            long_ago = loop.time() - long_seconds
            started: list[TaskEvent] = []
            for attempt in self._running.values():
                if attempt.reported or attempt.began > long_ago:
                    continue
                attempt.reported = True
                started.append(self._started(attempt))
                attempt.limit()
            if started:
                await self._tell_started(started)

    def _started(self, attempt: Attempt) -> TaskStarted:
        return TaskStarted(*key_of(attempt.task), self.worker_id, attempt.started_at)

    async def _tell_started(self, events: list[TaskEvent]) -> None:
        try:
            await self._queue.started(self.worker_id, events)
        except StoreError as error:
            self._complain(f"it can't report that {len(events)} tasks have started", error)

    async def _heartbeat(self) -> None:
        strays: set[Key] = set()
        for beat in count(1):
            claimed = [attempt.identity for attempt in self._running.values()]
            claimed += [Stop(*key_of(task)) for task in self._pending]
            try:
                stops = await self._queue.heartbeat(
                    self.worker_id, self.queues, claimed, self.registry.defaults()
                )
                self.stop_tasks(stops)
                if beat % STRAY_BEATS == 0:
                    strays = await self._take_up(strays)
            except StoreError as error:
                self._complain("it can't send heartbeats", error)
            await asyncio.sleep(self.timing.heartbeat_seconds)

    async def _take_up(self, before: set[Key]) -> set[Key]:
        """Run tasks that were claimed for a whole round without this worker's knowledge.

        A call that took effect after it had failed can claim a task, and nobody else will ever run
        it. `before` has such tasks of the last round; returns those that are new in this one.
        """
        strays = {key_of(task): task for task in await self._overlooked()}
        old = [task for key, task in strays.items() if key in before]
        if old:
            log.warning(
                "%s runs %d tasks that were claimed for it in calls that had failed",
                self.worker_id,
                len(old),
            )
            self._pending.extend(old)
            self._wake_slot()
        return strays.keys() - before


def _log_failure(outcome_log: OutcomeLog, task: Task, event: TaskFailed) -> None:
    marks = {
        "execution_id": task.execution_id,
        "node_id": task.node_id,
        "attempt": task.attempt,
        "workflow": task.workflow,
    }
    outcome_log.attempt_failed(
        marks,
        event.error.message,
        category=event.error.category,
        is_last=task.is_last or not event.retryable,
        traceback=event.error.traceback,
    )


def _wake(future: asyncio.Future[None]) -> None:
    """Wake whoever waits on the future, once: whoever waits again leaves a new one."""
    if not future.done():
        future.set_result(None)
