"""Entries of queued tasks: where each is in its stream.

The owner must know, to take back what nobody waits for.

A commit answers the entry ids of its tasks. A new owner begins without any; when it first has to
stop a task that it doesn't know, it reads the streams, once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.engine.commands import Stop, Task
from penstock.engine.events import TaskEvent
from penstock.stores.redis import keys
from penstock.stores.redis.server import Server
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
        self._server, self._partition = server, partition
        self._locations: dict[str, dict[Key, TaskLocation]] = {}
        self._is_complete = False

    def forget(self) -> None:
        """Forget all locations: another owner may have handed out tasks meanwhile."""
        self._locations, self._is_complete = {}, False

    def added(self, tasks: list[tuple[Key, str]], ids: list[bytes]) -> None:
        locations = self._locations
        for (key, stream), entry_id in zip(tasks, ids, strict=True):
            if not entry_id:  # set aside: its location is known when the execution is resumed
                self._is_complete = False
                continue
            mine = locations.get(key[0])
            if mine is None:
                mine = locations[key[0]] = {}
            mine[key] = (stream, entry_id)

    def remove(self, over: Sequence[TaskEvent | Stop]) -> None:
        for event in over:
            mine = self._locations.get(event.execution_id)
            if mine:
                mine.pop(key_of(event), None)

    def moved(self, execution_id: str) -> None:
        """Tasks of it that had been set aside are in the streams again, at locations that nobody has been told."""
        if execution_id not in self._locations:
            self._is_complete = False

    def drop(self, execution_id: str) -> None:
        self._locations.pop(execution_id, None)

    def has(self, task: Task) -> bool:
        mine = self._locations.get(task.execution_id)
        return mine is not None and key_of(task) in mine

    def location(self, stop: Stop) -> TaskLocation | None:
        return self._locations.get(stop.execution_id, {}).get(key_of(stop))

    async def find(self, stops: list[Stop]) -> None:
        """Make sure that the locations of these are known, if they have one."""
        if self._is_complete or all(self.location(stop) for stop in stops):
            return
        link, prefix = self._server.of(self._partition), keys.prefix(self._partition)
        for stream in await link.ask("SMEMBERS", prefix + "queues"):
            await self._read(prefix.encode() + b"tasks:" + stream, stream)
        self._is_complete = True

    async def _read(self, key: bytes, stream: bytes) -> None:
        link, start = self._server.of(self._partition), b"-"
        while found := await link.ask("XRANGE", key, start, "+", "COUNT", PORTION):
            for entry_id, fields in found:
                try:
                    it = task_key.decode(fields[1])
                except msgspec.DecodeError:
                    continue  # whoever fetches it will say so
                where = self._locations.setdefault(it.execution_id, {})
                where[it.execution_id, it.node_id, it.generation, it.attempt] = (stream, entry_id)
            start = b"(" + found[-1][0]
