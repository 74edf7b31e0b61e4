"""The hot store on Redis: active executions, inboxes, timers and leases of every partition."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import AnyEvent, TaskFailed, TaskLost, TaskReturned, TaskSucceeded
from penstock.engine.states import ExecutionState
from penstock.errors import SchemaMismatch
from penstock.stores import codec
from penstock.stores.base import Lease, Stored, partition_of
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.partial import record_of
from penstock.stores.redis import keys
from penstock.stores.redis.commits import FeedSize, arguments_of
from penstock.stores.redis.entries import Entries
from penstock.stores.redis.inbox import ENTRY_EVENTS_MAX, SCHEMA, end_of, events_of, read_after
from penstock.stores.redis.scripts import script
from penstock.stores.redis.server import Server
from penstock.stores.redis.wire import Link

BLOCK_MARGIN_SECONDS = 5.0
READ_EXECUTIONS, READ_BYTES = 1000, 1 << 20
"""In one call: Lua's stack is limited, and so is the time for which everybody else may wait."""
READ_ENTRIES = 128
"""At most so many at once; each may hold hundreds of events."""
TASK_ENDS = (TaskSucceeded, TaskFailed, TaskLost, TaskReturned)


class RedisHotStore:
    tasks_are_durable = True

    def __init__(self, server: Server, partitions: int) -> None:
        self._server = server
        self.partitions = server.partitions = partitions
        self.entries = {partition: Entries(server, partition) for partition in range(partitions)}
        self._feeds = {partition: FeedSize() for partition in range(partitions)}
        self._idle: dict[int, list[Link]] = {}
        """By partition, connections to wait on."""
        self._ahead: dict[int, tuple[int, list[tuple[int, AnyEvent]]]] = {}
        """By partition, what was read and not yet asked for, and the position that it follows."""
        self._next_due: dict[int, float | None] = {}
        """By partition, as its last commit here left it: there is no other writer."""
        self._handled: dict[int, int] = {}
        """By partition, the position of the last commit here: half of an entry may be done, and
        can't be trimmed.
        """

    def now(self) -> float:
        return self._server.now()

    def check_open(self) -> None:
        self._server.check_open()

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        token = secrets.token_hex(8)
        found = await self._run("acquire", partition, owner, token, _milliseconds(seconds))
        if found is None:
            return None
        self.entries[partition].forget()
        self._ahead.pop(partition, None)
        self._next_due.pop(partition, None)
        self._handled[partition] = position = int(found[1])
        return Lease(partition, owner, token, int(found[0]), position, cold_number=int(found[3]))

    async def renew(self, lease: Lease, seconds: float) -> bool:
        return bool(
            await self._run("lease", lease.partition, lease.token, "renew", _milliseconds(seconds))
        )

    async def release(self, lease: Lease) -> None:
        await self._run("lease", lease.partition, lease.token, "release")
        for link in self._idle.pop(lease.partition, ()):
            await self._server.drop(link)

    async def append(self, events: Sequence[AnyEvent], *, own: bool = False) -> None:
        groups: dict[int, list[bytes]] = {}
        for event in events:
            partition = partition_of(event.execution_id, self.partitions)
            groups.setdefault(partition, []).extend((SCHEMA, codec.encode(event)))
        for partition, fields in groups.items():
            for first in range(0, len(fields), 2 * ENTRY_EVENTS_MAX):
                some = fields[first : first + 2 * ENTRY_EVENTS_MAX]
                link = self._server.of(partition)
                if own:
                    await script("append").run(link, keys.inbox(partition), *some)
                else:
                    await link.call("XADD", keys.inbox(partition), "1-*", *some)

    async def receive(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        after = max(after, self._handled.get(partition, 0))
        follows, events = self._ahead.pop(partition, (after, []))
        if not events or follows != after:
            events = await self._read(partition, after, limit, timeout_seconds)
        if len(events) > limit:
            self._ahead[partition] = events[limit - 1][0], events[limit:]
        self.entries[partition].remove(
            [event for _, event in events[:limit] if isinstance(event, TASK_ENDS)]
        )
        return events[:limit]

    async def _read(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        while True:
            entries = await self._entries(partition, after, limit, timeout_seconds)
            events = list(events_of(entries, after))
            if events or not entries:
                return events
            after = self._handled[partition] = end_of(
                entries[-1][0]
            )  # nothing in them can be read: on, or for ever

    async def _entries(self, partition: int, after: int, limit: int, timeout_seconds: float) -> Any:
        count = ("XREAD", "COUNT", min(limit, READ_ENTRIES))
        streams = ("STREAMS", keys.inbox(partition), read_after(after))
        if timeout_seconds <= 0:
            found = await self._server.of(partition).ask(*count, *streams)
        else:
            block = ("BLOCK", max(1, _milliseconds(timeout_seconds)))
            found = await self._wait(
                partition, (*count, *block, *streams), timeout_seconds + BLOCK_MARGIN_SECONDS
            )
        return found[0][1] if found else []

    async def _wait(self, partition: int, call: tuple[Any, ...], seconds: float) -> Any:
        """Wait for events on a connection of its own.

        One on which a wait was given up isn't used again.
        """
        idle = self._idle.setdefault(partition, [])
        link = idle.pop() if idle else self._server.blocking(partition)
        try:
            found = await link.ask(*call, seconds=seconds)
        except BaseException:
            await self._server.drop(link)
            raise
        idle.append(link)
        return found

    async def inbox_length(self) -> int:
        """How many entries all inboxes have. What is committed is trimmed at once."""
        calls = [
            self._server.of(partition).ask("XLEN", keys.inbox(partition))
            for partition in range(self.partitions)
        ]
        return sum(await asyncio.gather(*calls))

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        found = await self.changes(execution_ids)
        return {
            execution_id: stored_of(execution_id, changes)
            for execution_id, changes in found.items()
        }

    async def changes(self, execution_ids: Collection[str]) -> dict[str, list[bytes]]:
        """All changes of each execution, encoded; unknown executions are missing."""
        found: dict[str, list[bytes]] = {}
        for partition, own_ids in self._by_partition(execution_ids):
            first = 0
            while some := own_ids[first : first + READ_EXECUTIONS]:
                lists = await self._ask("read", partition, "changes", READ_BYTES, *some)
                found.update(
                    (execution_id, changes)
                    for execution_id, changes in zip(some, lists, strict=False)
                    if changes
                )
                first += len(lists)
        return found

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        return {
            execution_id
            for execution_id, there in await self._each("known", execution_ids)
            if there
        }

    async def beginnings(self, execution_ids: Collection[str]) -> dict[str, ExecutionRecord]:
        """Executions as their first commit left them: with when they started."""
        found = [
            (execution_id, record_of(change))
            for execution_id, change in await self._each("first", execution_ids)
            if change
        ]
        return {execution_id: record for execution_id, record in found if record is not None}

    async def _each(self, what: str, execution_ids: Collection[str]) -> list[tuple[str, Any]]:
        async def of(partition: int, execution_ids: list[str]) -> list[tuple[str, Any]]:
            found: list[tuple[str, Any]] = []
            for first in range(0, len(execution_ids), READ_EXECUTIONS):
                some = execution_ids[first : first + READ_EXECUTIONS]
                found += zip(some, await self._ask("read", partition, what, *some), strict=True)
            return found

        groups = await asyncio.gather(*[of(*group) for group in self._by_partition(execution_ids)])
        return [pair for group in groups for pair in group]

    async def commit(self, plan: CommitPlan) -> None:
        partition = plan.partition
        entries = self.entries[partition]
        await entries.find(plan.stops)
        arguments, tasks = arguments_of(plan, entries, self._feeds[partition])
        answer = await self._run("commit", partition, *arguments)
        self._handled[partition] = plan.position
        entries.added(tasks, answer[1:])
        entries.remove(plan.stops)
        for execution_id in plan.resumed:
            entries.moved(execution_id)
        for ended in plan.ended:
            entries.drop(ended.execution_id)
        self._next_due[partition] = float(answer[0]) if answer[0] else None

    async def due(self, partition: int, now: float, limit: int) -> list[str]:
        call = (
            "ZRANGE",
            keys.prefix(partition) + "timers",
            "-inf",
            now,
            "BYSCORE",
            "LIMIT",
            0,
            limit,
        )
        return [
            execution_id.decode() for execution_id in await self._server.of(partition).ask(*call)
        ]

    async def next_due(self, partition: int) -> float | None:
        if partition not in self._next_due:
            call = ("ZRANGE", keys.prefix(partition) + "timers", 0, 0, "WITHSCORES")
            found = await self._server.of(partition).ask(*call)
            self._next_due[partition] = float(found[1]) if found else None
        return self._next_due[partition]

    async def active(self, partition: int) -> list[str]:
        execution_ids = await self._server.of(partition).ask(
            "SMEMBERS", keys.prefix(partition) + "active"
        )
        return sorted(execution_id.decode() for execution_id in execution_ids)

    async def announce(self, name: str, seconds: float, about: Mapping[str, Any]) -> list[str]:
        found = await self._members(name, _milliseconds(seconds), msgspec.json.encode(about))
        return sorted(found)

    async def orchestrator_details(self) -> list[dict[str, Any]]:
        found = await self._members("", 0, b"")
        return [
            {"name": name, **msgspec.json.decode(about)} for name, about in sorted(found.items())
        ]

    async def _members(self, *arguments: Any) -> dict[str, bytes]:
        found = await script("announce").run(self._server.fleet, keys.ORCHESTRATORS, *arguments)
        return {name.decode(): about for name, about in zip(found[::2], found[1::2], strict=True)}

    async def deregister(self, name: str) -> None:
        await self._server.fleet.call("HDEL", keys.ORCHESTRATORS, name)

    async def _run(self, name: str, partition: int, *arguments: Any) -> Any:
        return await script(name).run(self._server.of(partition), keys.lease(partition), *arguments)

    async def _ask(self, name: str, partition: int, *arguments: Any) -> Any:
        return await script(name).ask(self._server.of(partition), keys.lease(partition), *arguments)

    def _by_partition(self, execution_ids: Collection[str]) -> list[tuple[int, list[str]]]:
        groups: dict[int, list[str]] = {}
        for execution_id in filter(_can_be, execution_ids):
            groups.setdefault(partition_of(execution_id, self.partitions), []).append(execution_id)
        return list(groups.items())


def stored_of(execution_id: str, changes: list[bytes]) -> Stored:
    """An execution from its changes.

    Raises `SchemaMismatch` for changes that aren't ours, or without a beginning.
    """
    nothing = ExecutionRecord(execution_id, "", 0, ExecutionState.PENDING, b"{}", 0.0)
    stored = codec.fold(nothing, [codec.decode_change(data) for data in changes])
    if stored.record is nothing:
        raise SchemaMismatch(f"what Redis has of execution {execution_id} has no beginning")
    return stored


def _can_be(execution_id: str) -> bool:
    """Whether this can be an execution id: half a character isn't part of any."""
    try:
        execution_id.encode()
    except UnicodeEncodeError:
        return False
    return True


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
