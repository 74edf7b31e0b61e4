"""The task queue on Redis: streams that the consumer group `workers` reads.

The group's pending entries decide which worker runs which task.

A worker waits for new tasks with a blocking read of a stream that only says that there are some. It
then takes exactly as many as it has free slots. The entry of each claimed task is remembered here:
a report names it, and counts only if the entry is still on this worker's pending list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskError, TaskEvent, TaskFailed, TaskLost
from penstock.engine.reasons import ErrorCategory
from penstock.errors import StoreError
from penstock.stores import codec
from penstock.stores.base import Backlog, Offer, WaitingTask
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Refused, Server, script
from penstock.stores.redis.entries import task_key
from penstock.stores.redis.fleet import Heartbeat, send_heartbeat, worker_offers
from penstock.stores.redis.live_logs import RedisLiveLogs
from penstock.stores.redis.waking import Waker
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
        """`heartbeat_seconds` is written into heartbeats, so that readers know when one is late."""
        self._server = server
        self._partitions = partitions
        self._heartbeat_seconds = heartbeat_seconds
        self._claimed: dict[Claim, TaskLocation] = {}
        self._wakers: dict[str, Waker] = {}
        self._background: set[asyncio.Future[Any]] = set()
        self._since: dict[str, float] = {}
        """When each worker here sent its first heartbeat."""
        self._logs = RedisLiveLogs(server, partitions)
        self._recalled_up_to: dict[tuple[int, str], bytes] = {}
        """The entry up to which `recall` has looked, by partition and stream."""

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
            # computed again each time: a worker may begin to serve more while it waits here
            served = _served(queues, handlers)
            tasks: list[Task] = []
            try:
                for partition, wakeups in waker.hopeful():
                    if len(tasks) == limit:
                        break
                    fetched, is_empty = await self._fetch_from(
                        partition, worker_id, served, limit - len(tasks)
                    )
                    tasks += fetched
                    if is_empty:
                        waker.found_empty(partition, wakeups)
            except StoreError:
                # tasks of other partitions are delivered first; the next call will fail too
                if not tasks:
                    raise
            except asyncio.CancelledError:
                # nobody would run the tasks that other partitions gave
                self._give_back_later(worker_id, tasks)
                raise

            if tasks:
                return tasks
            await waker.wait()

    async def _fetch_from(
        self, partition: int, worker_id: str, served: Sequence[Any], limit: int
    ) -> tuple[list[Task], bool]:
        """Tasks of a partition, and whether it has no more of them for this worker."""
        link = self._server.of(partition)
        fetching = script("fetch").begin(link, keys.lease(partition), worker_id, limit, *served)
        self._track(fetching)
        try:
            reply = await asyncio.shield(fetching)
        except Refused as error:
            # a Redis that was restarted has forgotten the script, and nothing was fetched
            if error.code != "NOSCRIPT":
                raise
            reply = await self._run("fetch", partition, worker_id, limit, *served)
        except asyncio.CancelledError:
            # the script runs all the same: what it fetches must not be lost
            fetching.add_done_callback(
                lambda done: self._give_back_fetched(partition, worker_id, done)
            )
            raise
        tasks = await self._decode_tasks(partition, worker_id, reply)
        return tasks, len(reply) // 3 < limit

    async def _decode_tasks(self, partition: int, worker_id: str, reply: list[bytes]) -> list[Task]:
        """Claimed tasks from a script's reply. One that can't be read is reported as failed."""
        tasks: list[Task] = []
        failures: list[Any] = []
        for stream, entry_id, data in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
            try:
                task = _task.decode(data)
            except msgspec.DecodeError as error:
                failures += (stream, entry_id, _undecodable(data, worker_id, error))
                continue
            self._claimed[worker_id, key_of(task)] = (partition, stream, entry_id)
            tasks.append(task)

        for first in range(0, len(failures), 3 * PORTION):
            portion = failures[first : first + 3 * PORTION]
            await self._run("report", partition, "", worker_id, "over", *portion)
        return tasks

    def _give_back_fetched(
        self, partition: int, worker_id: str, done: asyncio.Future[list[bytes]]
    ) -> None:
        if done.cancelled() or done.exception() is not None or not done.result():
            return
        reply = done.result()
        locations = list(chain.from_iterable(zip(reply[::3], reply[1::3], strict=True)))
        call = self._run("list", partition, "back", worker_id, *locations)
        self._track(asyncio.ensure_future(call))

    def _give_back_later(self, worker_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            partition, stream, entry_id = self._claimed.pop((worker_id, key_of(task)))
            call = self._run("list", partition, "back", worker_id, stream, entry_id)
            self._track(asyncio.ensure_future(call))

    async def give_back(self, worker_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            location = self._claimed.pop((worker_id, key_of(task)), None)
            if location is not None:
                partition, stream, entry_id = location
                await self._run("list", partition, "back", worker_id, stream, entry_id)

    def _track(self, task: asyncio.Future[Any]) -> None:
        """Keep a background task until it is done: a worker that leaves waits for it."""
        self._background.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled():
            # retrieved, so that asyncio doesn't complain: a task that couldn't be given back is
            # still on the worker's pending list, and is taken from there later
            task.exception()

    async def _wait_background(self) -> None:
        while self._background:  # a background task may begin another
            await asyncio.wait(self._background)

    def begin(self, key: Key) -> None:
        """Nothing to note: the pending entry is the claim."""

    async def claimed(self, worker_id: str) -> list[Task]:
        tasks: list[Task] = []
        for partition in range(self._partitions):
            reply = await self._ask("list", partition, "pending", worker_id, PENDING_TASKS_MAX)
            tasks += await self._decode_tasks(partition, worker_id, reply)
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
                partition, stream, entry_id = location
                items = groups.setdefault(partition, [])
                items += (stream, entry_id, codec.encode(event))

        calls: list[Coroutine[Any, Any, Any]] = []
        for partition, items in groups.items():
            for first in range(0, len(items), 3 * PORTION):
                portion = items[first : first + 3 * PORTION]
                calls.append(self._run("report", partition, "", worker_id, how, *portion))
        if len(calls) == 1:
            await calls[0]
        elif calls:
            await _gather_all(calls)

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
        heartbeat = Heartbeat(
            queues=sorted(queues),
            handlers=handlers,
            running=len(claimed),
            at=now,
            since=since,
            every=self._heartbeat_seconds,
        )
        await send_heartbeat(self._server, worker_id, heartbeat)

        groups: dict[int, list[tuple[Stop, TaskLocation]]] = {}
        lost: list[Stop] = []
        for stop in claimed:
            location = self._location(worker_id, stop)
            if location is None:
                lost.append(stop)
            else:
                groups.setdefault(location[0], []).append((stop, location))
        for partition, items in groups.items():
            lost += await self._find_lost(partition, worker_id, items)
        for stop in lost:
            self._claimed.pop((worker_id, key_of(stop)), None)
        return lost

    async def _find_lost(
        self, partition: int, worker_id: str, items: list[tuple[Stop, TaskLocation]]
    ) -> list[Stop]:
        """Tasks that aren't on the worker's pending list any more."""
        lost: list[Stop] = []
        for first in range(0, len(items), PORTION):
            portion = items[first : first + PORTION]
            locations: list[bytes] = []
            for _, (_, stream, entry_id) in portion:
                locations += (stream, entry_id)
            numbers = await self._ask("list", partition, "gone", worker_id, *locations)
            lost += [portion[int(number) - 1][0] for number in numbers]
        return lost

    async def share_logs(self, texts: Mapping[Key, str]) -> None:
        await self._logs.share(texts)

    async def live_log(self, key: Key) -> str:
        return await self._logs.of(key)

    async def workers(self) -> Mapping[str, int]:
        """Workers and their heartbeats, also those that have claimed tasks and never sent one."""
        beats = await self._server.fleet.ask("HGETALL", keys.BEATS)
        replies = await asyncio.gather(*self._ask_workers_with_tasks(), return_exceptions=True)

        counts: dict[str, int] = {}
        for reply in replies:
            # a node of a cluster that is away must not end the owners of partitions on others
            if isinstance(reply, list):
                counts.update((name.decode(), 0) for name in reply[::2])
        for name, count in zip(beats[::2], beats[1::2], strict=True):
            counts[name.decode()] = int(count)
        return counts

    async def _workers_with_tasks(self) -> set[str]:
        """Ids of workers with claimed tasks.

        Raises `StoreUnavailable` if a partition can't be asked.
        """
        worker_ids: set[str] = set()
        for reply in await _gather_all(self._ask_workers_with_tasks()):
            worker_ids.update(name.decode() for name in reply[::2])
        return worker_ids

    def _ask_workers_with_tasks(self) -> list[Coroutine[Any, Any, Any]]:
        return [self._ask("list", partition, "consumers") for partition in range(self._partitions)]

    async def offers(self) -> list[Offer]:
        return await worker_offers(self._server)

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        lost = 0
        while True:
            pending = await self._ask("list", partition, "pending", worker_id, PORTION)
            reports = _lost(pending, worker_id)
            count: int = await self._run("report", partition, token, worker_id, "over", *reports)
            lost += count
            if not pending or not count:
                break

        if worker_id not in await self._workers_with_tasks():
            # in all partitions: the owners of the others don't see a forgotten worker any more
            calls = [
                self._run("list", other_partition, "forget", worker_id)
                for other_partition in range(self._partitions)
            ]
            await _gather_all(calls)
            await self._forget(worker_id)
        return lost

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        await self._wait_background()
        unstarted_keys = {key_of(task) for task in unstarted}
        for partition in range(self._partitions):
            pending = await self._ask("list", partition, "pending", worker_id, PENDING_TASKS_MAX)
            given_back, interrupted = _divide(pending, unstarted_keys)
            if given_back:
                await self._run("list", partition, "back", worker_id, *given_back)
            for first in range(0, len(interrupted), 3 * PORTION):
                portion = interrupted[first : first + 3 * PORTION]
                reports = _lost(portion, worker_id, interrupted=True)
                await self._run("report", partition, "", worker_id, "over", *reports)
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
        calls = [self._ask("list", partition, "depths") for partition in range(self._partitions)]
        depths: dict[str, tuple[int, int]] = {}
        for reply in await _gather_all(calls):
            for stream, waiting, running in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
                queue, _ = keys.queue_of(stream.decode())
                waiting_before, running_before = depths.get(queue, (0, 0))
                depths[queue] = (waiting_before + waiting, running_before + running)
        return depths

    async def backlog(self, partition: int) -> list[Backlog]:
        reply = await self._ask("list", partition, "depths")
        counts: dict[tuple[str, str | None], int] = {}
        for stream, waiting in zip(reply[::3], reply[1::3], strict=True):
            queue_and_handler = keys.queue_of(stream.decode())
            counts[queue_and_handler] = counts.get(queue_and_handler, 0) + waiting
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
        streams = await link.ask("SMEMBERS", keys.prefix(partition) + "queues")
        recalled = 0
        for name in streams:
            stream = name.decode()
            if keys.queue_of(stream) == (backlog.queue, backlog.handler):
                recalled += await self._recall_from(partition, token, stream, decide)
        return recalled

    async def _recall_from(
        self,
        partition: int,
        token: str,
        stream: str,
        decide: Callable[[WaitingTask], TaskEvent | None],
    ) -> int:
        link = self._server.of(partition)
        key = keys.prefix(partition) + "tasks:" + stream
        after = self._recalled_up_to.pop((partition, stream), b"0-0")
        entries = await link.ask("XRANGE", key, b"(" + after, "+", "COUNT", PORTION)
        if len(entries) == PORTION:  # else the next call begins at the beginning again
            self._recalled_up_to[partition, stream] = entries[-1][0]

        now_ms = self._server.now() * 1000
        items: list[Any] = []
        for entry_id, fields in entries:
            try:
                task = _task.decode(fields[1])
            except msgspec.DecodeError:
                continue  # another version's; whoever fetches it reports that
            queued_at_ms = int(entry_id.partition(b"-")[0])
            waiting_seconds = max(0.0, now_ms - queued_at_ms) / 1000
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


def _served(queues: Collection[str], handlers: Collection[str] | None) -> list[Any]:
    """What a worker serves, as `fetch.lua` takes it: how many queues, their names, handlers.

    No handlers at all means that it has every handler, so one that has none sends an empty name.
    """
    if handlers is None:
        return [len(queues), *queues]
    return [len(queues), *queues, *(handlers or ("",))]


async def _gather_all(calls: Iterable[Any]) -> list[Any]:
    """Wait for all of the calls: each is done when this returns or raises."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def _lost(pending: Sequence[bytes], worker_id: str, *, interrupted: bool = False) -> list[Any]:
    """Reports that pending tasks are lost, as `report.lua` takes them."""
    items: list[Any] = []
    for stream, entry_id, data in zip(pending[::3], pending[1::3], pending[2::3], strict=True):
        event = TaskLost(*_decode_key(data), worker_id, interrupted)
        items += (stream, entry_id, codec.encode(event))
    return items


def _decode_key(data: bytes) -> Key:
    try:
        key = task_key.decode(data)
    except msgspec.DecodeError:
        return ("", "", 0, 0)  # the entry is removed, and no execution has the event's id
    return (key.execution_id, key.node_id, key.generation, key.attempt)


def _undecodable(data: bytes, worker_id: str, error: Exception) -> bytes:
    reason = TaskError(
        ErrorCategory.SCHEMA, f"the task can't be read by the worker {worker_id}: {error}"
    )
    return codec.encode(TaskFailed(*_decode_key(data), worker_id, 0.0, reason, retryable=False))


def _divide(pending: Sequence[bytes], unstarted: set[Key]) -> tuple[list[bytes], list[bytes]]:
    """Divide pending tasks into unstarted (stream, entry id) and interrupted (and the task)."""
    given_back: list[bytes] = []
    interrupted: list[bytes] = []
    for stream, entry_id, data in zip(pending[::3], pending[1::3], pending[2::3], strict=True):
        if _decode_key(data) in unstarted:
            given_back += (stream, entry_id)
        else:
            interrupted += (stream, entry_id, data)
    return given_back, interrupted
