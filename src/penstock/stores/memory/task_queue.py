"""A task queue in memory: queues by name, and tasks that workers have claimed.

The claims decide which worker runs which task. A claim ends by a report, by a stop of the task, or
because its worker was declared dead.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Stop, Task
from penstock.engine.events import AnyEvent, TaskEvent, TaskLost
from penstock.stores.base import Backlog, Offer, TasksAhead, WaitingTask
from penstock.stores.task_keys import Key, key_of

if TYPE_CHECKING:
    from penstock.stores.commit_plan import CommitPlan

Line = deque[tuple[Key, Task]]
"""Tasks in the order in which they came."""
T = TypeVar("T")


class MemoryTaskQueue:
    def __init__(
        self, append: Callable[[Iterable[AnyEvent]], None], now: Callable[[], float]
    ) -> None:
        self._append = append
        self._now = now
        self._waiting: dict[str, Line] = {}
        """Waiting tasks of priority 0, by queue."""
        self._ranked: dict[str, dict[int, Line]] = {}
        """Waiting tasks of other priorities, by queue and priority."""
        self._passed: dict[str, dict[tuple[int, str], Line]] = {}
        """Waiting tasks that a worker without their handler passed over.

        By queue, and by priority and handler.
        """
        self._passed_at: dict[Key, float] = {}
        self._location_numbers = count(1)
        self._offers: dict[str, Offer] = {}
        self._claimed: dict[Key, tuple[str, Task]] = {}
        self._logs: dict[Key, str] = {}
        self._beats: dict[str, int] = {}
        self._paused: dict[str, list[Task]] = {}
        self._stopped: set[Key] = set()
        self._queued: set[Key] = set()
        self._waiters: dict[str, tuple[asyncio.Future[None], Collection[str]]] = {}

    def apply(self, plan: CommitPlan) -> None:
        """Apply what a durable commit decided about tasks."""
        for execution_id in plan.paused:
            self.pause(execution_id)
        for execution_id in plan.resumed:
            self.resume(execution_id)
        self.enqueue(plan.tasks)
        self.stop(plan.stops)
        if self._paused:
            for ended in plan.ended:
                self.forget(ended.execution_id)

    def enqueue(self, tasks: Iterable[Task]) -> None:
        names: set[str] = set()
        for task in tasks:
            key = key_of(task)
            if key in self._queued or key in self._claimed:
                continue  # a task that is queued again may be here already
            name = task.queue
            if task.priority:
                by_priority = self._ranked.setdefault(name, {})
                line = by_priority.setdefault(task.priority, deque())
            elif name in self._waiting:
                line = self._waiting[name]
            else:
                line = self._waiting[name] = deque()
            line.append((key, task))
            self._queued.add(key)
            names.add(name)
        if names:
            self._wake(names)

    @property
    def is_idle(self) -> bool:
        """Whether no task waits for a worker, and none runs."""
        return not self._queued and not self._claimed

    def stop(self, stops: Iterable[Stop]) -> list[Stop]:
        """Drop tasks that nobody waits for. Answers those that workers have claimed."""
        claimed: list[Stop] = []
        for stop in stops:
            key = key_of(stop)
            if key in self._claimed:
                del self._claimed[key]
                self.on_given_up(key)
                claimed.append(stop)
            elif key in self._queued:
                self._stopped.add(key)
        return claimed

    def pause(self, execution_id: str) -> None:
        self._paused.setdefault(execution_id, [])

    def resume(self, execution_id: str) -> None:
        tasks = self._paused.pop(execution_id, [])
        self._queued.difference_update(map(key_of, tasks))
        self.enqueue(tasks)

    def forget(self, execution_id: str) -> None:
        """Forget the tasks of an execution that has ended."""
        for task in self._paused.pop(execution_id, ()):
            key = key_of(task)
            self._queued.discard(key)
            self._stopped.discard(key)

    async def fetch(
        self,
        worker_id: str,
        queues: Collection[str],
        limit: int,
        handlers: Collection[str] | None = None,
    ) -> list[Task]:
        self._beats.setdefault(worker_id, 0)
        while True:
            tasks = self._take(worker_id, queues, limit, handlers)
            if tasks:
                # again: it may have been declared dead while it waited here, and the reaper only
                # takes tasks back from workers that it knows
                self._beats.setdefault(worker_id, 0)
                return tasks

            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # `queues` isn't copied: a worker may begin to serve more
            self._waiters[worker_id] = (waiter, queues)
            try:
                await waiter
            finally:
                self._waiters.pop(worker_id, None)

    def begin(self, key: Key) -> None:
        """Nothing to note: the claims outlive any one worker."""

    async def claimed(self, worker_id: str) -> list[Task]:
        return [task for claimed_by, task in self._claimed.values() if claimed_by == worker_id]

    async def report(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        current: list[AnyEvent] = []
        for event in events:
            key = key_of(event)
            claim = self._claimed.get(key)
            if claim is not None and claim[0] == worker_id:
                del self._claimed[key]
                current.append(event)  # type: ignore[arg-type]  # every TaskEvent is one
        if current:
            self._append(current)

    async def started(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        current = [event for event in events if self._is_claimed_by(worker_id, event)]
        if current:
            self._append(current)  # type: ignore[arg-type]

    async def give_back(self, worker_id: str, tasks: Sequence[Task]) -> None:
        back = [task for task in tasks if self._is_claimed_by(worker_id, task)]
        for task in back:
            key = key_of(task)
            del self._claimed[key]
            self.on_given_up(key)
        self.enqueue(back)

    async def heartbeat(
        self,
        worker_id: str,
        queues: Collection[str],
        claimed: Collection[Stop],
        handlers: Mapping[str, HandlerDefaults] | None = None,
    ) -> list[Stop]:
        last_offer = self._offers.get(worker_id)
        since = self._now() if last_offer is None else last_offer.started_at
        self._offers[worker_id] = Offer(worker_id, queues, handlers, since)
        self._beats[worker_id] = self._beats.get(worker_id, 0) + 1
        return [stop for stop in claimed if not self._is_claimed_by(worker_id, stop)]

    async def offers(self) -> list[Offer]:
        return list(self._offers.values())

    async def share_logs(self, texts: Mapping[Key, str]) -> None:
        """Write live logs. Logs of tasks that aren't claimed any more are forgotten."""
        logs = {**self._logs, **texts}
        self._logs = {key: text for key, text in logs.items() if text and key in self._claimed}

    async def live_log(self, key: Key) -> str:
        return self._logs.get(key, "")

    async def workers(self) -> Mapping[str, int]:
        return dict(self._beats)

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        await self.give_back(worker_id, unstarted)
        self.lose(worker_id, lambda _name: True, interrupted=True)

    def lose(
        self, worker_id: str, mine: Callable[[str], bool], *, interrupted: bool = False
    ) -> int:
        """Report a dead worker's tasks, of executions that are `mine`, as `TaskLost`.

        `interrupted` is for a worker that was told to stop, and stopped its tasks.
        """
        keys = [
            key
            for key, (claimed_by, _) in self._claimed.items()
            if claimed_by == worker_id and mine(key[0])
        ]
        for key in keys:
            del self._claimed[key]
            self._logs.pop(key, None)
        self._append(TaskLost(*key, worker_id, interrupted) for key in keys)
        if not any(claimed_by == worker_id for claimed_by, _ in self._claimed.values()):
            self._beats.pop(worker_id, None)
            self._offers.pop(worker_id, None)
        return len(keys)

    def knows(self, key: Key) -> bool:
        return key in self._queued or key in self._claimed

    def orphans(self) -> set[Key]:
        return set()

    def disown(self, keys: Iterable[Key]) -> None:
        """Nothing is noted here."""

    def depth(self) -> int:
        return len(self._queued) + len(self._claimed)

    async def depths(self) -> dict[str, tuple[int, int]]:
        names = {*self._waiting, *self._ranked, *self._passed}
        waiting: Counter[str] = Counter()
        for name in names:
            for line in self._in_order(name, None):
                waiting[name] += len(line)

        running = Counter(task.queue for _, task in self._claimed.values())
        names.update(running)
        return {name: (waiting[name], running[name]) for name in names}

    def is_mine(self, partition: int) -> Callable[[str], bool]:  # noqa: ARG002 -- there is one
        """A function that tells whether an execution belongs to the partition."""
        return lambda _execution_id: True

    async def backlog(self, partition: int) -> list[Backlog]:
        mine = self.is_mine(partition)
        counts: Counter[tuple[str, str | None]] = Counter()
        for queue, handler, line in self._lines():
            self._drop_stopped(line)
            for _, task in line:
                if mine(task.execution_id):
                    counts[queue, handler] += 1

        backlogs: list[Backlog] = []
        for (queue, handler), waiting in counts.items():
            if waiting:
                backlogs.append(Backlog(queue, handler, waiting))
        return backlogs

    async def tasks_ahead(
        self, key: Key, queue: str, handler: str, priority: int, limit: int
    ) -> TasksAhead | None:
        ahead = 0
        looked = 0
        for line in self._in_order(queue, {handler}):
            self._drop_stopped(line)
            line_priority = line[0][1].priority if line else priority
            if line_priority > priority:
                ahead += len(line)
            elif line_priority == priority:
                for waiting_key, _ in line:
                    if looked == limit:
                        return TasksAhead(ahead, is_exact=False)
                    if waiting_key == key:
                        return TasksAhead(ahead)
                    looked += 1
                    ahead += 1
        return None

    def _drop_stopped(self, line: Line) -> None:
        """Drop stopped tasks of a line, which perhaps no worker would ever fetch."""
        if not self._stopped:
            return
        stopped = self._stopped.intersection([key for key, _ in line])
        if not stopped:
            return
        remaining = [(key, task) for key, task in line if key not in stopped]
        line.clear()
        line.extend(remaining)
        self._stopped.difference_update(stopped)
        self._queued.difference_update(stopped)
        for key in stopped:
            self._passed_at.pop(key, None)

    def check_owner(self, partition: int, token: str) -> None:
        """Raises `Fenced`."""
        raise NotImplementedError

    async def recall(
        self,
        partition: int,
        token: str,
        backlog: Backlog,
        decide: Callable[[WaitingTask], TaskEvent | None],
    ) -> int:
        self.check_owner(partition, token)
        mine = self.is_mine(partition)
        events: list[AnyEvent] = []
        for queue, handler, line in list(self._lines()):
            if (queue, handler) != (backlog.queue, backlog.handler):
                continue
            self._drop_stopped(line)
            remaining: list[tuple[Key, Task]] = []
            for key, task in line:
                event = decide(self._waiting_task(key, task)) if mine(task.execution_id) else None
                if event is None:
                    remaining.append((key, task))
                else:
                    events.append(event)  # type: ignore[arg-type]  # every TaskEvent is one
                    self._queued.discard(key)
                    self._passed_at.pop(key, None)
            line.clear()
            line.extend(remaining)
        self._append(events)
        return len(events)

    def _waiting_task(self, key: Key, task: Task) -> WaitingTask:
        now = self._now()
        passed_at = self._passed_at.get(key, now)
        location = f"{task.queue}/{next(self._location_numbers)}"
        return WaitingTask(task, location, now - passed_at)

    def _lines(self) -> Iterator[tuple[str, str | None, Line]]:
        """All lines of waiting tasks: queue, handler if the tasks were passed over, line."""
        for queue, line in self._waiting.items():
            yield queue, None, line
        for queue, ranked in self._ranked.items():
            for line in ranked.values():
                yield queue, None, line
        for queue, passed in self._passed.items():
            for (_, handler), line in passed.items():
                yield queue, handler, line

    def _is_claimed_by(self, worker_id: str, item: Task | TaskEvent | Stop) -> bool:
        claim = self._claimed.get(key_of(item))
        return claim is not None and claim[0] == worker_id

    def _take(
        self, worker_id: str, queues: Collection[str], limit: int, handlers: Collection[str] | None
    ) -> list[Task]:
        taken: list[Task] = []
        for name in queues:
            for waiting in self._in_order(name, handlers):
                while waiting and len(taken) < limit:
                    key, task = waiting.popleft()
                    if handlers is not None and task.handler not in handlers:
                        self._pass_over(key, task)
                    elif self._may_run(key, task):
                        self._claimed[key] = (worker_id, task)
                        taken.append(task)
        return taken

    def _pass_over(self, key: Key, task: Task) -> None:
        """Move a task to a line from which only workers with its handler fetch."""
        if key in self._stopped:
            self._stopped.discard(key)
            self._queued.discard(key)
            return
        passed = self._passed.setdefault(task.queue, {})
        line = passed.setdefault((task.priority, task.handler), deque())
        line.append((key, task))
        self._passed_at[key] = self._now()
        self._wake({task.queue})

    def _in_order(self, name: str, handlers: Collection[str] | None) -> list[Line]:
        """Lines of a queue for a worker with these handlers, the highest priority first."""
        plain = self._waiting.get(name)
        if name not in self._ranked and name not in self._passed:
            return [plain] if plain else []
        ranked = self._drop_empty(self._ranked, name)
        passed = self._drop_empty(self._passed, name)

        lines: list[tuple[int, int, Line]] = []
        """Priority, whether the tasks were passed over, and the line itself."""
        for priority, line in ranked.items():
            lines.append((priority, 0, line))
        if plain:
            lines.append((0, 0, plain))
        # within a priority, tasks that were passed over come first: they have waited longer
        for (priority, handler), line in passed.items():
            if handlers is None or handler in handlers:
                lines.append((priority, 1, line))
        lines.sort(key=lambda ranked_line: ranked_line[:2], reverse=True)
        return [line for _, _, line in lines]

    def _drop_empty(self, lines: dict[str, dict[T, Line]], name: str) -> dict[T, Line]:
        """Lines of a queue, after empty ones were forgotten."""
        remaining = {key: line for key, line in lines.pop(name, {}).items() if line}
        if remaining:
            lines[name] = remaining
        return remaining

    def on_given_up(self, key: Key) -> None:
        """Called when a claim ends without an event: the task was stopped, or given back."""

    def _may_run(self, key: Key, task: Task) -> bool:
        if self._paused and task.execution_id in self._paused:
            self._paused[task.execution_id].append(task)
            return False
        self._queued.discard(key)
        if self._passed_at:
            self._passed_at.pop(key, None)
        if key in self._stopped:
            self._stopped.discard(key)
            return False
        return True

    def _wake(self, names: set[str]) -> None:
        for waiter, queues in list(self._waiters.values()):
            if not waiter.done() and not names.isdisjoint(queues):
                waiter.set_result(None)
