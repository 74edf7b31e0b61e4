"""Where tasks that were handed out are in their streams.

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
from penstock.stores.task_queue import Key, key_of

PORTION = 1000
Place = tuple[str | bytes, bytes]
"""Stream and entry id."""


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
        self._places: dict[str, dict[Key, Place]] = {}
        self._is_complete = False

    def forget(self) -> None:
        """Somebody else may have handed out tasks meanwhile."""
        self._places, self._is_complete = {}, False

    def added(self, tasks: list[tuple[Key, str]], ids: list[bytes]) -> None:
        places = self._places
        for (key, stream), entry_id in zip(tasks, ids, strict=True):
            if not entry_id:  # set aside: its place is known when it is released
                self._is_complete = False
                continue
            mine = places.get(key[0])
            if mine is None:
                mine = places[key[0]] = {}
            mine[key] = (stream, entry_id)

    def remove(self, over: Sequence[TaskEvent | Stop]) -> None:
        for event in over:
            mine = self._places.get(event.execution_id)
            if mine:
                mine.pop(key_of(event), None)

    def moved(self, execution_id: str) -> None:
        """Tasks of it that had been set aside are in the streams again, in places that nobody has been told."""
        if execution_id not in self._places:
            self._is_complete = False

    def drop(self, execution_id: str) -> None:
        self._places.pop(execution_id, None)

    def has(self, task: Task) -> bool:
        mine = self._places.get(task.execution_id)
        return mine is not None and key_of(task) in mine

    def place(self, stop: Stop) -> Place | None:
        return self._places.get(stop.execution_id, {}).get(key_of(stop))

    async def find(self, stops: list[Stop]) -> None:
        """Make sure that the places of these are known, if they have one."""
        if self._is_complete or all(self.place(stop) for stop in stops):
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
                where = self._places.setdefault(it.execution_id, {})
                where[it.execution_id, it.node_id, it.generation, it.attempt] = (stream, entry_id)
            start = b"(" + found[-1][0]
