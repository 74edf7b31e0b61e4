"""The task queue on Redis: streams read by the group `workers`; its pending entries are the truth about who runs what.

A worker learns of new tasks by a blocking read of a stream that only says that there are some; what it then takes is
exactly as much as it has room for. The entry of a task that it has claimed is remembered here: a report names it, and counts
only if the entry is still on this worker's list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskError, TaskEvent, TaskFailed, TaskLost
from penstock.errors import StoreError
from penstock.stores import codec
from penstock.stores.base import Backlog, Offer, WaitingTask
from penstock.stores.redis import keys
from penstock.stores.redis.entries import task_key
from penstock.stores.redis.fleet import about_worker, worker_details, worker_offers
from penstock.stores.redis.live_logs import RedisLiveLogs
from penstock.stores.redis.scripts import script
from penstock.stores.redis.server import Server
from penstock.stores.redis.waking import Waker
from penstock.stores.redis.wire import Refused
from penstock.stores.task_keys import Key, key_of

PORTION = 400
"""Outcomes in one call: Lua's stack is limited."""
PENDING_TASKS_MAX = 2000
TaskLocation = tuple[int, bytes, bytes]
"""Where a claimed task is: partition, stream, entry id."""
Claim = tuple[str, Key]
_task = msgspec.msgpack.Decoder(Task)


class RedisTaskQueue:
    def __init__(
        self, server: Server, partitions: int, heartbeat_seconds: float | None = None
    ) -> None:
        """`heartbeat_seconds`: how often workers here say that they live, so that others know how long to wait."""
        self._server, self._partitions, self._heartbeat_seconds = (
            server,
            partitions,
            heartbeat_seconds,
        )
        self._claimed: dict[Claim, TaskLocation] = {}
        self._wakers: dict[str, Waker] = {}
        self._background: set[asyncio.Future[Any]] = set()
        self._since: dict[str, float] = {}
        """When each worker here first said that it lives."""
        self._logs = RedisLiveLogs(server, partitions)
        self._recalled_up_to: dict[tuple[int, str], bytes] = {}
        """By partition and stream, the entry up to which `recall` has looked."""

    async def fetch(
        self,
        worker_id: str,
        queues: Collection[str],
        limit: int,
        handlers: Collection[str] | None = None,
    ) -> list[Task]:
        if worker_id not in self._wakers:
            self._wakers[worker_id] = Waker(self._server)
        waker = self._wakers[worker_id]
        while True:
            # made anew each time: a worker may begin to serve more while it waits here
            wanted = [len(queues), *queues, *(() if handlers is None else handlers or ("",))]
            tasks: list[Task] = []
            try:
                for partition, wakeups in waker.hopeful():
                    if len(tasks) == limit:
                        break
                    more, is_empty = await self._take(
                        partition, worker_id, wanted, limit - len(tasks)
                    )
                    tasks += more
                    if is_empty:
                        waker.found_empty(partition, wakeups)
            except StoreError:
                if (
                    not tasks
                ):  # else what other partitions gave comes first; the next call will fail too
                    raise
            except asyncio.CancelledError:  # what other partitions gave would be in nobody's hands
                self._unhand(worker_id, tasks)
                raise
            if tasks:
                return tasks
            await waker.wait()

    async def _take(
        self, partition: int, worker_id: str, wanted: Sequence[Any], limit: int
    ) -> tuple[list[Task], bool]:
        """`wanted`: how many queues, their names, then the names of handlers, as the script takes them."""
        link = self._server.of(partition)
        taking = script("fetch").begin(link, keys.lease(partition), worker_id, limit, *wanted)
        self._track(taking)
        try:
            found = await asyncio.shield(taking)
        except Refused as error:
            if error.code != "NOSCRIPT":  # it has been restarted, perhaps, and took nothing
                raise
            found = await self._run("fetch", partition, worker_id, limit, *wanted)
        except asyncio.CancelledError:  # it happens all the same: what was taken must not be lost
            taking.add_done_callback(lambda done: self._give_back(partition, worker_id, done))
            raise
        tasks = await self._decoded(partition, worker_id, found)
        return tasks, len(found) // 3 < limit

    async def _decoded(self, partition: int, worker_id: str, found: list[bytes]) -> list[Task]:
        tasks: list[Task] = []
        bad: list[Any] = []
        for stream, entry_id, data in zip(found[::3], found[1::3], found[2::3], strict=True):
            try:
                task = _task.decode(data)
            except msgspec.DecodeError as error:
                bad += (stream, entry_id, _undecodable(data, worker_id, error))
                continue
            self._claimed[worker_id, key_of(task)] = (partition, stream, entry_id)
            tasks.append(task)
        for first in range(0, len(bad), 3 * PORTION):
            await self._run(
                "report", partition, "", worker_id, "over", *bad[first : first + 3 * PORTION]
            )
        return tasks

    def _give_back(self, partition: int, worker_id: str, done: asyncio.Future[list[bytes]]) -> None:
        if done.cancelled() or done.exception() is not None or not done.result():
            return
        found = done.result()
        locations = [item for pair in zip(found[::3], found[1::3], strict=True) for item in pair]
        self._track(
            asyncio.ensure_future(self._run("list", partition, "back", worker_id, *locations))
        )

    def _unhand(self, worker_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            partition, stream, entry_id = self._claimed.pop((worker_id, key_of(task)))
            self._track(
                asyncio.ensure_future(
                    self._run("list", partition, "back", worker_id, stream, entry_id)
                )
            )

    async def give_back(self, worker_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            location = self._claimed.pop((worker_id, key_of(task)), None)
            if location is not None:
                await self._run("list", location[0], "back", worker_id, *location[1:])

    def _track(self, task: asyncio.Future[Any]) -> None:
        """Keep a background task until it is done: a worker that leaves waits for it."""
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            task.exception()  # seen: a task that couldn't be given back is found on our list later

    async def _wait_background(self) -> None:
        while self._background:  # one may begin another
            await asyncio.wait(self._background)

    def begin(self, key: Key) -> None:
        """Nothing to note: the pending entry says it."""

    async def claimed(self, worker_id: str) -> list[Task]:
        tasks: list[Task] = []
        for partition in range(self._partitions):
            found = await self._ask("list", partition, "pending", worker_id, PENDING_TASKS_MAX)
            tasks += await self._decoded(partition, worker_id, found)
        return tasks

    async def report(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        await self._send_report(worker_id, events, "over")
        for event in events:
            self._claimed.pop((worker_id, key_of(event)), None)

    async def started(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        await self._send_report(worker_id, events, "started")

    async def _send_report(self, worker_id: str, events: Sequence[TaskEvent], how: str) -> None:
        groups: dict[int, list[Any]] = {}
        for event in events:
            location = self._location(worker_id, event)
            if location is not None:
                groups.setdefault(location[0], []).extend(
                    (location[1], location[2], codec.encode(event))
                )
        calls = [
            self._run("report", partition, "", worker_id, how, *items[first : first + 3 * PORTION])
            for partition, items in groups.items()
            for first in range(0, len(items), 3 * PORTION)
        ]
        if len(calls) == 1:
            await calls[0]
        elif calls:
            await _all(calls)

    def _location(self, worker_id: str, item: TaskEvent | Stop | Task) -> TaskLocation | None:
        return self._claimed.get((worker_id, key_of(item)))

    async def heartbeat(
        self,
        worker_id: str,
        queues: Collection[str],
        claimed: Collection[Stop],
        handlers: Mapping[str, HandlerDefaults] | None = None,
    ) -> list[Stop]:
        now = self._server.now()
        since = self._since.setdefault(worker_id, now)
        about = about_worker(
            queues,
            handlers,
            running=len(claimed),
            at=now,
            since=since,
            every=self._heartbeat_seconds,
        )
        await script("beat").run(
            self._server.fleet, keys.BEATS, worker_id, msgspec.json.encode(about)
        )
        groups: dict[int, list[tuple[Stop, TaskLocation]]] = {}
        gone: list[Stop] = []
        for stop in claimed:
            location = self._location(worker_id, stop)
            if location is None:
                gone.append(stop)
            else:
                groups.setdefault(location[0], []).append((stop, location))
        for partition, items in groups.items():
            gone += await self._gone(partition, worker_id, items)
        for stop in gone:
            self._claimed.pop((worker_id, key_of(stop)), None)
        return gone

    async def _gone(
        self, partition: int, worker_id: str, items: list[tuple[Stop, TaskLocation]]
    ) -> list[Stop]:
        gone: list[Stop] = []
        for first in range(0, len(items), PORTION):
            some = items[first : first + PORTION]
            locations = [part for _, (_, stream, entry_id) in some for part in (stream, entry_id)]
            found = await self._ask("list", partition, "gone", worker_id, *locations)
            gone += [some[int(number) - 1][0] for number in found]
        return gone

    async def share_logs(self, texts: Mapping[Key, str]) -> None:
        await self._logs.share(texts)

    async def live_log(self, key: Key) -> str:
        return await self._logs.of(key)

    async def workers(self) -> Mapping[str, int]:
        """Workers and their heartbeats, also those that have claimed tasks and never sent one."""
        beats = await self._server.fleet.ask("HGETALL", keys.BEATS)
        found = await asyncio.gather(*self._ask_workers_with_tasks(), return_exceptions=True)
        # a node of a cluster that is away must not end the owners of partitions on others
        known = {
            name.decode(): 0 for names in found if isinstance(names, list) for name in names[::2]
        }
        known.update(
            (name.decode(), int(count)) for name, count in zip(beats[::2], beats[1::2], strict=True)
        )
        return known

    async def _workers_with_tasks(self) -> set[str]:
        """Ids of workers with claimed tasks.

        Raises `StoreUnavailable` if a partition can't be asked.
        """
        return {
            name.decode()
            for names in await _all(self._ask_workers_with_tasks())
            for name in names[::2]
        }

    def _ask_workers_with_tasks(self) -> list[Coroutine[Any, Any, Any]]:
        return [self._ask("list", each, "consumers") for each in range(self._partitions)]

    async def worker_details(self, tasks_max: int) -> list[dict[str, Any]]:
        return await worker_details(self._server, self._partitions, tasks_max)

    async def offers(self) -> list[Offer]:
        return await worker_offers(self._server)

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        lost = 0
        while True:
            found = await self._ask("list", partition, "pending", worker_id, PORTION)
            count: int = await self._run(
                "report", partition, token, worker_id, "over", *_lost(found, worker_id)
            )
            lost += count
            if not found or not count:
                break
        if worker_id not in await self._workers_with_tasks():
            # everywhere: once it is forgotten, the owners of other partitions don't hear of it any
            # more
            await _all(
                [self._run("list", each, "forget", worker_id) for each in range(self._partitions)]
            )
            await self._forget(worker_id)
        return lost

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        await self._wait_background()
        back = {key_of(task) for task in unstarted}
        for partition in range(self._partitions):
            found = await self._ask("list", partition, "pending", worker_id, PENDING_TASKS_MAX)
            mine, others = _divide(found, back)
            if mine:
                await self._run("list", partition, "back", worker_id, *mine)
            for first in range(0, len(others), 3 * PORTION):
                some = others[first : first + 3 * PORTION]  # what it stopped in the middle
                await self._run(
                    "report",
                    partition,
                    "",
                    worker_id,
                    "over",
                    *_lost(some, worker_id, interrupted=True),
                )
            await self._run("list", partition, "forget", worker_id)
        await self._forget(worker_id)
        waker = self._wakers.pop(worker_id, None)
        if waker is not None:
            await waker.close()
        self._claimed = {
            claim: location for claim, location in self._claimed.items() if claim[0] != worker_id
        }
        self._since.pop(worker_id, None)

    async def _forget(self, worker_id: str) -> None:
        await script("beat").run(self._server.fleet, keys.BEATS, worker_id)

    async def depths(self) -> Mapping[str, tuple[int, int]]:
        depths: dict[str, tuple[int, int]] = {}
        for found in await _all(
            [self._ask("list", each, "depths") for each in range(self._partitions)]
        ):
            for stream, waiting, running in zip(found[::3], found[1::3], found[2::3], strict=True):
                queue, _ = keys.queue_of(stream.decode())
                before = depths.get(queue, (0, 0))
                depths[queue] = (before[0] + waiting, before[1] + running)
        return depths

    async def backlog(self, partition: int) -> list[Backlog]:
        found = await self._ask("list", partition, "depths")
        counts: dict[tuple[str, str | None], int] = {}
        for stream, waiting in zip(found[::3], found[1::3], strict=True):
            where = keys.queue_of(stream.decode())
            counts[where] = counts.get(where, 0) + waiting
        return [
            Backlog(queue, handler, waiting)
            for (queue, handler), waiting in counts.items()
            if waiting > 0
        ]

    async def recall(
        self,
        partition: int,
        token: str,
        backlog: Backlog,
        decide: Callable[[WaitingTask], TaskEvent | None],
    ) -> int:
        link = self._server.of(partition)
        names = [
            name.decode() for name in await link.ask("SMEMBERS", keys.prefix(partition) + "queues")
        ]
        recalled = 0
        for stream in names:
            if keys.queue_of(stream) == (backlog.queue, backlog.handler):
                recalled += await self._recall(partition, token, stream, decide)
        return recalled

    async def _recall(
        self,
        partition: int,
        token: str,
        stream: str,
        decide: Callable[[WaitingTask], TaskEvent | None],
    ) -> int:
        link, key = self._server.of(partition), keys.prefix(partition) + "tasks:" + stream
        after = self._recalled_up_to.pop((partition, stream), b"0-0")
        found = await link.ask("XRANGE", key, b"(" + after, "+", "COUNT", PORTION)
        if len(found) == PORTION:  # else the next look begins at the beginning again
            self._recalled_up_to[partition, stream] = found[-1][0]
        now_ms = self._server.now() * 1000
        items: list[Any] = []
        for entry_id, fields in found:
            try:
                task = _task.decode(fields[1])
            except msgspec.DecodeError:
                continue  # of another version; whoever fetches it will say so
            waiting_seconds = max(0.0, now_ms - int(entry_id.partition(b"-")[0])) / 1000
            event = decide(WaitingTask(task, f"{stream}/{entry_id.decode()}", waiting_seconds))
            if event is not None:
                items += (entry_id, codec.encode(event))
        if not items:
            return 0
        recalled: int = await self._run("recall", partition, token, stream, *items)
        return recalled

    def knows(self, key: Key) -> bool:
        return any(claimed_key == key for _, claimed_key in self._claimed)

    def orphans(self) -> Collection[Key]:
        return ()

    def disown(self, keys: Iterable[Key]) -> None:
        """Nothing to do: Redis has no orphaned tasks."""

    async def close(self) -> None:
        for waker in self._wakers.values():
            await waker.close()
        await self._wait_background()

    async def _run(self, name: str, partition: int, *arguments: Any) -> Any:
        return await script(name).run(self._server.of(partition), keys.lease(partition), *arguments)

    async def _ask(self, name: str, partition: int, *arguments: Any) -> Any:
        return await script(name).ask(self._server.of(partition), keys.lease(partition), *arguments)


async def _all(calls: Iterable[Any]) -> list[Any]:
    """Wait for all of the calls: each is done when this returns or raises."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def _lost(found: Sequence[bytes], worker_id: str, *, interrupted: bool = False) -> list[Any]:
    items: list[Any] = []
    for stream, entry_id, data in zip(found[::3], found[1::3], found[2::3], strict=True):
        items += (stream, entry_id, codec.encode(TaskLost(*_key(data), worker_id, interrupted)))
    return items


def _key(data: bytes) -> Key:
    try:
        it = task_key.decode(data)
    except msgspec.DecodeError:
        return ("", "", 0, 0)  # nobody's: the entry goes, and the event finds no execution
    return (it.execution_id, it.node_id, it.generation, it.attempt)


def _undecodable(data: bytes, worker_id: str, error: Exception) -> bytes:
    reason = TaskError("schema", f"the task can't be read by the worker {worker_id}: {error}")
    return codec.encode(TaskFailed(*_key(data), worker_id, 0.0, reason, retryable=False))


def _divide(found: Sequence[bytes], back: set[Key]) -> tuple[list[bytes], list[bytes]]:
    """Divide claimed tasks into those that go back (stream, entry id) and others (everything)."""
    mine: list[bytes] = []
    others: list[bytes] = []
    for stream, entry_id, data in zip(found[::3], found[1::3], found[2::3], strict=True):
        if _key(data) in back:
            mine += (stream, entry_id)
        else:
            others += (stream, entry_id, data)
    return mine, others
