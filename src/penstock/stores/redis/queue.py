"""The task queue on Redis: streams that the consumer group `workers` reads.

The group's pending entries decide which worker runs which task.

A worker waits for new tasks with a blocking read of a stream that only says that there are some. It
then takes exactly as many as it has free slots. The entry of each claimed task is remembered here:
a report names it, and counts only if the entry is still on this worker's pending list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.definition.model import HandlerDefaults
from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskError, TaskEvent, TaskFailed, TaskLost
from penstock.engine.reasons import ErrorCategory
from penstock.errors import StoreError
from penstock.stores import codec
from penstock.stores.base import Backlog, Offer, TasksAhead, WaitingTask
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Refused, Server, script
from penstock.stores.redis.entries import task_key
from penstock.stores.redis.flat_lists import pairs, portions, triples
from penstock.stores.redis.fleet import Heartbeat, send_heartbeat, worker_offers
from penstock.stores.redis.live_logs import RedisLiveLogs
from penstock.stores.redis.tasks_ahead import tasks_ahead
from penstock.stores.redis.waking import Waker
from penstock.stores.task_keys import Key, key_of

PORTION = 400
"""Outcomes in one call: Lua's stack is limited."""
PENDING_TASKS_MAX = 2000
PENDING_WIDTH = 3
"""Values of a task in a pending list or a report: stream, entry id, and the task or its outcome."""
TaskLocation = tuple[int, bytes, bytes]
"""Where a claimed task is: partition, stream, entry id."""
Claim = tuple[str, Key]
_task = msgspec.msgpack.Decoder(Task)

NOBODY = ""
"""No worker has this id: to forget it is a write that changes nothing."""


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
                    free = limit - len(tasks)
                    if free == 0:
                        break
                    fetched, is_empty = await self._fetch_from(partition, worker_id, served, free)
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
            reply = await self._server.run_script(partition, "fetch", worker_id, limit, *served)
        except asyncio.CancelledError:
            # the script runs all the same: what it fetches must not be lost
            fetching.add_done_callback(
                lambda done: self._give_back_fetched(partition, worker_id, done)
            )
            raise
        tasks = await self._decode_tasks(partition, worker_id, reply)
        is_empty = len(reply) < PENDING_WIDTH * limit
        return tasks, is_empty

    async def _decode_tasks(self, partition: int, worker_id: str, reply: list[bytes]) -> list[Task]:
        """Claimed tasks from a script's reply. One that can't be read is reported as failed."""
        tasks: list[Task] = []
        failures: list[Any] = []
        for stream, entry_id, data in triples(reply):
            try:
                task = _task.decode(data)
            except msgspec.DecodeError as error:
                failures += (stream, entry_id, _undecodable(data, worker_id, error))
                continue
            self._claimed[worker_id, key_of(task)] = (partition, stream, entry_id)
            tasks.append(task)

        for portion in portions(failures, PORTION, PENDING_WIDTH):
            await self._report_portion(partition, worker_id, "over", portion)
        return tasks

    def _report_portion(
        self, partition: int, worker_id: str, how: str, portion: Sequence[Any], token: str = ""
    ) -> Coroutine[Any, Any, int]:
        """Run `report.lua`, which answers how many of the tasks were the worker's.

        `token` is that of the owner, if it reports for a dead worker.
        """
        return self._server.run_script(partition, "report", token, worker_id, how, *portion)

    async def _give_back_entries(
        self, partition: int, worker_id: str, locations: Sequence[bytes]
    ) -> None:
        """Give back tasks by their streams and entry ids."""
        await self._server.run_script(partition, "list", "back", worker_id, *locations)

    async def _pending(self, partition: int, worker_id: str, limit: int) -> list[bytes]:
        """A worker's pending list in a partition: stream, entry id and task of each entry."""
        pending: list[bytes] = await self._server.ask_script(
            partition, "list", "pending", worker_id, limit
        )
        return pending

    def _give_back_fetched(
        self, partition: int, worker_id: str, done: asyncio.Future[list[bytes]]
    ) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        locations: list[bytes] = []
        for stream, entry_id, _ in triples(done.result()):
            locations += (stream, entry_id)
        if locations:
            call = self._give_back_entries(partition, worker_id, locations)
            self._track(asyncio.ensure_future(call))

    def _give_back_later(self, worker_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            partition, stream, entry_id = self._claimed.pop((worker_id, key_of(task)))
            call = self._give_back_entries(partition, worker_id, [stream, entry_id])
            self._track(asyncio.ensure_future(call))

    async def give_back(self, worker_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            location = self._claimed.pop((worker_id, key_of(task)), None)
            if location is not None:
                partition, stream, entry_id = location
                await self._give_back_entries(partition, worker_id, [stream, entry_id])

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
            pending = await self._pending(partition, worker_id, PENDING_TASKS_MAX)
            tasks += await self._decode_tasks(partition, worker_id, pending)
        return tasks

    async def report(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        await self._send_report(worker_id, events, "over")
        for event in events:
            self._claimed.pop((worker_id, key_of(event)), None)

    async def started(self, worker_id: str, events: Sequence[TaskEvent]) -> None:
        await self._send_report(worker_id, events, "started")

    async def _send_report(self, worker_id: str, events: Sequence[TaskEvent], how: str) -> None:
        items_by_partition: dict[int, list[Any]] = {}
        for event in events:
            location = self._location(worker_id, event)
            if location is not None:
                partition, stream, entry_id = location
                items = items_by_partition.setdefault(partition, [])
                items += (stream, entry_id, codec.encode(event))

        calls: list[Coroutine[Any, Any, int]] = []
        for partition, items in items_by_partition.items():
            calls += [
                self._report_portion(partition, worker_id, how, portion)
                for portion in portions(items, PORTION, PENDING_WIDTH)
            ]
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

        lost: list[Stop] = []
        located: dict[int, list[tuple[Stop, TaskLocation]]] = {}
        """Tasks whose location is remembered, by partition."""
        for stop in claimed:
            location = self._location(worker_id, stop)
            if location is None:
                lost.append(stop)
            else:
                partition, _, _ = location
                located.setdefault(partition, []).append((stop, location))

        for partition, items in located.items():
            lost += await self._find_lost(partition, worker_id, items)
        for stop in lost:
            self._claimed.pop((worker_id, key_of(stop)), None)
        return lost

    async def _find_lost(
        self, partition: int, worker_id: str, items: list[tuple[Stop, TaskLocation]]
    ) -> list[Stop]:
        """Tasks that aren't on the worker's pending list any more."""
        lost: list[Stop] = []
        for portion in portions(items, PORTION):
            locations: list[bytes] = []
            for _, (_, stream, entry_id) in portion:
                locations += (stream, entry_id)
            numbers = await self._server.ask_script(
                partition, "list", "gone", worker_id, *locations
            )
            for number in numbers:
                stop, _ = portion[int(number) - 1]
                lost.append(stop)
        return lost

    async def share_logs(self, texts: Mapping[Key, str]) -> None:
        await self._logs.share(texts)

    async def live_log(self, key: Key) -> str:
        return await self._logs.of(key)

    async def workers(self) -> Mapping[str, int]:
        """Workers and their heartbeats, also those that have claimed tasks and never sent one.

        Raises `StoreUnavailable` while Redis takes no writes: no heartbeat can come then, and
        whoever counted the silence would take all workers for dead.
        """
        await self._forget(NOBODY)
        beats = await self._server.fleet.ask("HGETALL", keys.BEATS)
        replies = await asyncio.gather(*self._ask_workers_with_tasks(), return_exceptions=True)

        counts: dict[str, int] = {}
        for reply in replies:
            # a node of a cluster that is away must not end the owners of partitions on others
            if isinstance(reply, list):
                counts |= {name.decode(): 0 for name, _ in pairs(reply)}
        counts |= {name.decode(): int(count) for name, count in pairs(beats)}
        return counts

    async def _workers_with_tasks(self) -> set[str]:
        """Ids of workers with claimed tasks.

        Raises `StoreUnavailable` if a partition can't be asked.
        """
        replies = await _gather_all(self._ask_workers_with_tasks())
        worker_ids: set[str] = set()
        for reply in replies:
            worker_ids |= {name.decode() for name, _ in pairs(reply)}
        return worker_ids

    def _ask_workers_with_tasks(self) -> list[Coroutine[Any, Any, Any]]:
        return [
            self._server.ask_script(partition, "list", "consumers")
            for partition in range(self._partitions)
        ]

    async def offers(self) -> list[Offer]:
        return await worker_offers(self._server)

    async def reap(self, partition: int, token: str, worker_id: str) -> int:
        lost = 0
        while True:
            pending = await self._pending(partition, worker_id, PORTION)
            reports = _lost(pending, worker_id)
            count = await self._report_portion(partition, worker_id, "over", reports, token)
            lost += count
            if not pending or not count:
                break

        if worker_id not in await self._workers_with_tasks():
            # in all partitions: the owners of the others don't see a forgotten worker any more
            calls = [
                self._server.run_script(other_partition, "list", "forget", worker_id)
                for other_partition in range(self._partitions)
            ]
            await _gather_all(calls)
            await self._forget(worker_id)
        return lost

    async def leave(self, worker_id: str, unstarted: Sequence[Task]) -> None:
        await self._wait_background()
        unstarted_keys = {key_of(task) for task in unstarted}
        for partition in range(self._partitions):
            await self._leave_partition(partition, worker_id, unstarted_keys)

        await self._forget(worker_id)
        waker = self._wakers.pop(worker_id, None)
        if waker is not None:
            await waker.close()
        self._claimed = {
            claim: location for claim, location in self._claimed.items() if claim[0] != worker_id
        }
        self._since.pop(worker_id, None)

    async def _leave_partition(
        self, partition: int, worker_id: str, unstarted: Collection[Key]
    ) -> None:
        pending = await self._pending(partition, worker_id, PENDING_TASKS_MAX)
        given_back, interrupted = _divide(pending, unstarted)
        if given_back:
            await self._give_back_entries(partition, worker_id, given_back)
        for portion in portions(interrupted, PORTION, PENDING_WIDTH):
            reports = _lost(portion, worker_id, interrupted=True)
            await self._report_portion(partition, worker_id, "over", reports)
        await self._server.run_script(partition, "list", "forget", worker_id)

    async def _forget(self, worker_id: str) -> None:
        await script("beat").run(self._server.fleet, keys.BEATS, worker_id)

    async def depths(self) -> Mapping[str, tuple[int, int]]:
        calls = [
            self._server.ask_script(partition, "list", "depths")
            for partition in range(self._partitions)
        ]
        replies = await _gather_all(calls)
        depths: dict[str, tuple[int, int]] = {}
        for reply in replies:
            for stream, waiting, running in triples(reply):
                queue, _ = keys.queue_of(stream.decode())
                waiting_before, running_before = depths.get(queue, (0, 0))
                depths[queue] = (waiting_before + waiting, running_before + running)
        return depths

    async def backlog(self, partition: int) -> list[Backlog]:
        reply = await self._server.ask_script(partition, "list", "depths")
        counts: dict[tuple[str, str | None], int] = {}
        for stream, waiting, _ in triples(reply):
            queue_and_handler = keys.queue_of(stream.decode())
            counts[queue_and_handler] = counts.get(queue_and_handler, 0) + waiting
        return [
            Backlog(queue, handler, waiting)
            for (queue, handler), waiting in counts.items()
            if waiting > 0
        ]

    async def tasks_ahead(
        self, key: Key, queue: str, handler: str, priority: int, limit: int
    ) -> TasksAhead | None:
        return await tasks_ahead(
            self._server, self._partitions, key, queue, handler, priority, limit
        )

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
            last_id, _ = entries[-1]
            self._recalled_up_to[partition, stream] = last_id

        now = self._server.now()
        items: list[Any] = []
        for entry_id, fields in entries:
            try:
                task = _task.decode(fields[1])
            except msgspec.DecodeError:
                continue  # another version's; whoever fetches it reports that
            location = f"{stream}/{entry_id.decode()}"
            waiting = WaitingTask(task, location, _seconds_since(entry_id, now))
            event = decide(waiting)
            if event is not None:
                items += (entry_id, codec.encode(event))
        if not items:
            return 0
        recalled: int = await self._server.run_script(partition, "recall", token, stream, *items)
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


def _seconds_since(entry_id: bytes, now: float) -> float:
    """The age of an entry of a stream: its id begins with when it was added, in milliseconds."""
    milliseconds, _, _ = entry_id.partition(b"-")
    return max(0.0, now - int(milliseconds) / 1000)


def _lost(pending: Sequence[bytes], worker_id: str, *, interrupted: bool = False) -> list[Any]:
    """Reports that pending tasks are lost, as `report.lua` takes them."""
    items: list[Any] = []
    for stream, entry_id, data in triples(pending):
        key = _decode_key(data)
        event = TaskLost(*key, worker_id, interrupted)
        items += (stream, entry_id, codec.encode(event))
    return items


def _decode_key(data: bytes) -> Key:
    """The key of an encoded task, also of one that can't be read as a whole."""
    try:
        key = task_key.decode(data)
    except msgspec.DecodeError:
        return ("", "", 0, 0)  # the entry is removed, and no execution has the event's id
    return (key.execution_id, key.node_id, key.generation, key.attempt)


def _undecodable(data: bytes, worker_id: str, error: Exception) -> bytes:
    """The encoded outcome of a task that can't be read: it fails, and isn't tried again."""
    text = f"the task can't be read by the worker {worker_id}: {error}"
    reason = TaskError(ErrorCategory.SCHEMA, text)
    key = _decode_key(data)
    return codec.encode(TaskFailed(*key, worker_id, 0.0, reason, retryable=False))


def _divide(
    pending: Sequence[bytes], unstarted: Collection[Key]
) -> tuple[list[bytes], list[bytes]]:
    """Divide pending tasks into unstarted (stream, entry id) and interrupted (and the task)."""
    given_back: list[bytes] = []
    interrupted: list[bytes] = []
    for stream, entry_id, data in triples(pending):
        if _decode_key(data) in unstarted:
            given_back += (stream, entry_id)
        else:
            interrupted += (stream, entry_id, data)
    return given_back, interrupted
