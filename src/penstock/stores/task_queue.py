"""A task queue in memory: queues by name, and for each worker the list of what it holds.

The list of what is held is the truth about who runs what. A task leaves it by a report, by being stopped, or because
its worker was declared dead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from penstock.engine.commands import Commands, Stop, Task
from penstock.engine.events import AnyEvent, TaskEvent, TaskLost

Key = tuple[str, str, int, int]


def key_of(task: Task | TaskEvent | Stop) -> Key:
    return (task.execution_id, task.node, task.generation, task.attempt)


class MemoryTaskQueue:
    def __init__(self, append: Callable[[Iterable[AnyEvent]], None]) -> None:
        self._append = append
        self._waiting: dict[str, deque[tuple[Key, Task]]] = {}
        self._ranked: dict[str, dict[int, deque[tuple[Key, Task]]]] = {}
        """By queue and priority: the few tasks whose priority isn't 0."""
        self._held: dict[Key, tuple[str, Task]] = {}
        self._logs: dict[Key, str] = {}
        self._beats: dict[str, int] = {}
        self._on_hold: dict[str, list[Task]] = {}
        self._stopped: set[Key] = set()
        self._queued: set[Key] = set()
        self._waiters: dict[str, tuple[asyncio.Future[None], Collection[str]]] = {}

    def apply(self, changes: Iterable[Commands]) -> None:
        """What a commit decided about tasks, after it is durable."""
        tasks: list[Task] = []
        stopping: list[Commands] = []
        for commands in changes:
            tasks += commands.tasks
            if commands.held is not None:
                (self.hold if commands.held else self.release)(commands.execution_id)
            if commands.stops or (commands.finished and self._on_hold):
                stopping.append(commands)
        self.enqueue(tasks)
        for commands in stopping:  # after what the same commit handed out
            self.stop(commands.stops)
            if commands.finished:
                self.forget(commands.execution_id)

    def enqueue(self, tasks: Iterable[Task]) -> None:
        names: set[str] = set()
        for task in tasks:
            key = key_of(task)
            if key in self._queued or key in self._held:
                continue  # a task that is handed out again may be here already
            name = task.queue
            if task.priority:
                self._ranked.setdefault(name, {}).setdefault(task.priority, deque()).append((key, task))
            else:
                if name not in self._waiting:
                    self._waiting[name] = deque()
                self._waiting[name].append((key, task))
            self._queued.add(key)
            names.add(name)
        if names:
            self._wake(names)

    def stop(self, stops: Iterable[Stop]) -> list[Stop]:
        """Drop tasks that nobody waits for; answers those that a worker holds, so that it can be told."""
        held: list[Stop] = []
        for stop in stops:
            key = key_of(stop)
            if key in self._held:
                del self._held[key]
                self.on_given_up(key)
                held.append(stop)
            elif key in self._queued:
                self._stopped.add(key)
        return held

    def hold(self, execution_id: str) -> None:
        self._on_hold.setdefault(execution_id, [])

    def release(self, execution_id: str) -> None:
        tasks = self._on_hold.pop(execution_id, [])
        self._queued.difference_update(map(key_of, tasks))
        self.enqueue(tasks)

    def forget(self, execution_id: str) -> None:
        """The execution has ended."""
        for task in self._on_hold.pop(execution_id, ()):
            self._queued.discard(key_of(task))
            self._stopped.discard(key_of(task))

    async def fetch(self, worker_id: str, queues: Collection[str], limit: int) -> list[Task]:
        self._beats.setdefault(worker_id, 0)
        while True:
            tasks = self._take(worker_id, queues, limit)
            if tasks:
                # again: while it waited here it may have been declared dead, and what nobody counts nobody takes back
                self._beats.setdefault(worker_id, 0)
                return tasks
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters[worker_id] = (waiter, queues)  # not a copy: a worker may begin to serve more
            try:
                await waiter
            finally:
                self._waiters.pop(worker_id, None)

    def begin(self, key: Key) -> None:
        """Nothing is noted here: the list of what is held outlives any one worker."""

    async def held(self, worker_id: str) -> list[Task]:
        return [task for holder, task in self._held.values() if holder == worker_id]

    async def report(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        current: list[AnyEvent] = []
        for event in events:
            key = key_of(event)
            holder = self._held.get(key)
            if holder is not None and holder[0] == worker_id:
                del self._held[key]
                current.append(event)  # type: ignore[arg-type]  # every TaskEvent is one
        if current:
            self._append(current)

    async def started(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        current = [event for event in events if self._is_held(worker_id, event)]
        if current:
            self._append(current)  # type: ignore[arg-type]

    async def heartbeat(self, worker_id: str, queues: Collection[str], held: Collection[Stop]) -> list[Stop]:  # noqa: ARG002
        self._beats[worker_id] = self._beats.get(worker_id, 0) + 1
        return [stop for stop in held if not self._is_held(worker_id, stop)]

    async def share_logs(self, texts: Mapping[Key, str]) -> None:
        """Also forgets what is over: a worker that was declared dead takes nothing away."""
        logs = {**self._logs, **texts}
        self._logs = {key: text for key, text in logs.items() if text and key in self._held}

    async def live_log(self, key: Key) -> str:
        return self._logs.get(key, "")

    async def workers(self) -> Mapping[str, int]:
        return dict(self._beats)

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        back = [task for task in unstarted if self._is_held(worker_id, task)]
        for task in back:
            del self._held[key_of(task)]
            self.on_given_up(key_of(task))
        self.enqueue(back)
        self.lose(worker_id, lambda _name: True, interrupted=True)

    def lose(self, worker_id: str, mine: Callable[[str], bool], *, interrupted: bool = False) -> int:
        """A dead worker's tasks (of executions that are `mine`) become `TaskLost`.

        `interrupted`: what a worker that was told to stop has stopped in the middle.
        """
        keys = [key for key, (holder, _) in self._held.items() if holder == worker_id and mine(key[0])]
        for key in keys:
            del self._held[key]
            self._logs.pop(key, None)
        self._append(TaskLost(*key, worker_id, interrupted) for key in keys)
        if not any(holder == worker_id for holder, _ in self._held.values()):
            self._beats.pop(worker_id, None)
        return len(keys)

    def knows(self, key: Key) -> bool:
        return key in self._queued or key in self._held

    def orphans(self) -> set[Key]:
        return set()

    def disown(self, keys: Iterable[Key]) -> None:
        """Nothing is noted here."""

    def depth(self) -> int:
        return len(self._queued) + len(self._held)

    async def depths(self) -> dict[str, tuple[int, int]]:
        names = {*self._waiting, *self._ranked}
        depths = {name: [sum(map(len, self._in_order(name))), 0] for name in names}
        for _, task in self._held.values():
            depths.setdefault(task.queue, [0, 0])[1] += 1
        return {name: (waiting, running) for name, (waiting, running) in depths.items()}

    def _is_held(self, worker_id: str, item: Task | TaskEvent | Stop) -> bool:
        holder = self._held.get(key_of(item))
        return holder is not None and holder[0] == worker_id

    def _take(self, worker_id: str, queues: Collection[str], limit: int) -> list[Task]:
        taken: list[Task] = []
        for name in queues:
            for waiting in self._in_order(name):
                while waiting and len(taken) < limit:
                    key, task = waiting.popleft()
                    if self._may_run(key, task):
                        self._held[key] = (worker_id, task)
                        taken.append(task)
        return taken

    def _in_order(self, name: str) -> list[deque[tuple[Key, Task]]]:
        """What waits in a queue, the highest priority first."""
        plain = self._waiting.get(name)
        if not self._ranked or name not in self._ranked:
            return [plain] if plain else []
        ranked = self._ranked[name] = {rank: tasks for rank, tasks in self._ranked[name].items() if tasks}
        if not ranked:
            del self._ranked[name]
        lines = {**ranked, 0: plain} if plain else ranked
        return [lines[rank] for rank in sorted(lines, reverse=True)]

    def on_given_up(self, key: Key) -> None:
        """A worker no longer has the task, and no event will say so: it was stopped, or handed back."""

    def _may_run(self, key: Key, task: Task) -> bool:
        if self._on_hold and task.execution_id in self._on_hold:
            self._on_hold[task.execution_id].append(task)
            return False
        self._queued.discard(key)
        if key in self._stopped:
            self._stopped.discard(key)
            return False
        return True

    def _wake(self, names: set[str]) -> None:
        for waiter, queues in list(self._waiters.values()):
            if not waiter.done() and not names.isdisjoint(queues):
                waiter.set_result(None)
