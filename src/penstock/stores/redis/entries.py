"""Entries of queued tasks: where each task is in its stream.

The owner needs the location of a task that it stops, to take it off its stream.

A commit answers the entry ids of its tasks. A new owner begins without any; when it first has to
stop a task whose location it doesn't know, it reads the streams, once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskEvent
from penstock.stores.redis import keys
from penstock.stores.redis.connection import Server
from penstock.stores.task_keys import Key, key_of

PORTION = 1000
TaskLocation = tuple[str | bytes, bytes]
"""Where a queued task is: stream and entry id."""


class TaskKey(msgspec.Struct, array_like=True):
    """The beginning of a task, whatever follows in a later version."""

    execution_id: str
    node_id: str
    generation: int
    attempt: int


task_key = msgspec.msgpack.Decoder(TaskKey)


class Entries:
    def __init__(self, server: Server, partition: int) -> None:
        self._server = server
        self._partition = partition
        self._locations: dict[str, dict[Key, TaskLocation]] = {}
        self._is_complete = False

    def forget(self) -> None:
        """Forget all locations: another owner may have handed out tasks meanwhile."""
        self._locations = {}
        self._is_complete = False

    def added(self, tasks: list[tuple[Key, str]], ids: list[bytes]) -> None:
        """Note the locations of tasks that a commit has queued."""
        locations = self._locations
        for (key, stream), entry_id in zip(tasks, ids, strict=True):
            if not entry_id:  # set aside: it gets a location when the execution is resumed
                self._is_complete = False
                continue
            of_execution = locations.get(key[0])
            if of_execution is None:
                of_execution = locations[key[0]] = {}
            of_execution[key] = (stream, entry_id)

    def remove(self, over: Sequence[TaskEvent | Stop]) -> None:
        for event in over:
            of_execution = self._locations.get(event.execution_id)
            if of_execution:
                of_execution.pop(key_of(event), None)

    def moved(self, execution_id: str) -> None:
        """Note that a paused execution was resumed.

        Its tasks that had been set aside are in the streams again, at unknown locations.
        """
        if execution_id not in self._locations:
            self._is_complete = False

    def drop(self, execution_id: str) -> None:
        self._locations.pop(execution_id, None)

    def has(self, task: Task) -> bool:
        of_execution = self._locations.get(task.execution_id)
        return of_execution is not None and key_of(task) in of_execution

    def location(self, stop: Stop) -> TaskLocation | None:
        return self._locations.get(stop.execution_id, {}).get(key_of(stop))

    async def find(self, stops: list[Stop]) -> None:
        """Learn the locations of stopped tasks, as far as they are in a stream."""
        if self._is_complete or all(self.location(stop) for stop in stops):
            return
        link = self._server.of(self._partition)
        prefix = keys.prefix(self._partition)
        for stream in await link.ask("SMEMBERS", prefix + "queues"):
            await self._read(prefix.encode() + b"tasks:" + stream, stream)
        self._is_complete = True

    async def _read(self, key: bytes, stream: bytes) -> None:
        link = self._server.of(self._partition)
        start = b"-"
        while entries := await link.ask("XRANGE", key, start, "+", "COUNT", PORTION):
            for entry_id, fields in entries:
                try:
                    task = task_key.decode(fields[1])
                except msgspec.DecodeError:
                    continue  # whoever fetches it reports that
                task_id = (task.execution_id, task.node_id, task.generation, task.attempt)
                of_execution = self._locations.setdefault(task.execution_id, {})
                of_execution[task_id] = (stream, entry_id)
            start = b"(" + entries[-1][0]
