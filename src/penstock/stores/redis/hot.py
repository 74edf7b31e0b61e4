"""The hot store on Redis: active executions, inboxes, timers and leases of every partition."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import msgspec

from penstock.engine.commands import ExecutionRecord
from penstock.engine.events import AnyEvent, TaskFailed, TaskLost, TaskReturned, TaskSucceeded
from penstock.engine.states import ExecutionState
from penstock.errors import SchemaMismatch
from penstock.stores import codec
from penstock.stores.base import Lease, Stored, partition_of
from penstock.stores.commit_plan import CommitPlan
from penstock.stores.fleet import OrchestratorDetails
from penstock.stores.partial import record_of
from penstock.stores.redis import keys
from penstock.stores.redis.commits import FeedSize, arguments_of
from penstock.stores.redis.connection import Link, Server, script
from penstock.stores.redis.entries import Entries
from penstock.stores.redis.fleet import run_announce
from penstock.stores.redis.inbox import ENTRY_EVENTS_MAX, SCHEMA, end_of, events_of, read_after
from penstock.stores.redis.malformed import DroppedEntries

READ_EXECUTIONS = 1000
"""Executions in one call: Lua's stack is limited."""
READ_BYTES = 1 << 20
"""Bytes of changes in one call: Redis serves nobody else meanwhile."""
READ_ENTRIES = 128
"""Inbox entries in one call, at most; each may hold hundreds of events."""
TASK_ENDS = (TaskSucceeded, TaskFailed, TaskLost, TaskReturned)


class RedisHotStore:
    def __init__(self, server: Server, partitions: int, read_bytes: int = READ_BYTES) -> None:
        """`read_bytes`: about how many bytes of changes are read in one call."""
        self._server = server
        self._read_bytes = read_bytes
        self.partitions = server.partitions = partitions
        self.entries = {partition: Entries(server, partition) for partition in range(partitions)}
        self._feeds = {partition: FeedSize() for partition in range(partitions)}
        self._idle: dict[int, list[Link]] = {}
        """Connections for blocking reads, by partition."""
        self._ahead: dict[int, tuple[int, list[tuple[int, AnyEvent]]]] = {}
        """Events that were read too early, and the position that they follow, by partition."""
        self._next_due: dict[int, float | None] = {}
        """The next timer as the last commit here left it, by partition: nobody else writes it."""
        self._handled: dict[int, int] = {}
        """The position of the last commit here, by partition.

        An entry of which only some events were handled can't be trimmed, so it is read again.
        """
        self._dropped = DroppedEntries(server.timing.dropped_line_seconds)

    def now(self) -> float:
        return self._server.now()

    def check_open(self) -> None:
        self._server.check_open()

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        token = secrets.token_hex(8)
        answer = await self._run("acquire", partition, owner, token, _milliseconds(seconds))
        if answer is None:
            return None
        commit_number, position, _, cold_number = answer

        self.entries[partition].forget()
        self._ahead.pop(partition, None)
        self._next_due.pop(partition, None)
        self._handled[partition] = int(position)
        return Lease(
            partition,
            owner,
            token,
            int(commit_number),
            int(position),
            cold_number=int(cold_number),
        )

    async def renew(self, lease: Lease, seconds: float) -> bool:
        milliseconds = _milliseconds(seconds)
        is_renewed = await self._run("lease", lease.partition, lease.token, "renew", milliseconds)
        return bool(is_renewed)

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
            key = keys.inbox(partition)
            for first in range(0, len(fields), 2 * ENTRY_EVENTS_MAX):
                entry = fields[first : first + 2 * ENTRY_EVENTS_MAX]
                link = self._server.of(partition)
                if own:
                    await script("append").run(link, key, *entry)
                else:
                    await link.call("XADD", key, "1-*", *entry)

    async def receive(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        after = max(after, self._handled.get(partition, 0))
        follows, events = self._ahead.pop(partition, (after, []))
        if not events or follows != after:
            events = await self._read_events(partition, after, limit, timeout_seconds)

        if len(events) > limit:
            self._ahead[partition] = events[limit - 1][0], events[limit:]
            events = events[:limit]
        task_ends = [event for _, event in events if isinstance(event, TASK_ENDS)]
        self.entries[partition].remove(task_ends)
        return events

    async def _read_events(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        while True:
            entries = await self._read_entries(partition, after, limit, timeout_seconds)
            events = list(events_of(entries, after, self._dropped))
            if events or not entries:
                return events
            # nothing in these entries can be read: without a step forward they would come for ever
            after = self._handled[partition] = end_of(entries[-1][0])

    async def _read_entries(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> Any:
        count = ("XREAD", "COUNT", min(limit, READ_ENTRIES))
        streams = ("STREAMS", keys.inbox(partition), read_after(after))
        if timeout_seconds <= 0:
            reply = await self._server.of(partition).ask(*count, *streams)
        else:
            block = ("BLOCK", max(1, _milliseconds(timeout_seconds)))
            call = (*count, *block, *streams)
            seconds_max = timeout_seconds + self._server.timing.block_margin_seconds
            reply = await self._wait(partition, call, seconds_max)
        return reply[0][1] if reply else []

    async def _wait(self, partition: int, call: tuple[Any, ...], seconds: float) -> Any:
        """Make a blocking call on a connection that nobody else uses meanwhile.

        A connection on which a wait was given up isn't used again.
        """
        idle = self._idle.setdefault(partition, [])
        link = idle.pop() if idle else self._server.blocking(partition)
        try:
            reply = await link.ask(*call, seconds=seconds)
        except BaseException:
            await self._server.drop(link)
            raise
        idle.append(link)
        return reply

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        stored: dict[str, Stored] = {}
        for execution_id, changes in (await self.changes(execution_ids)).items():
            stored[execution_id] = stored_of(execution_id, changes)
        return stored

    async def changes(self, execution_ids: Collection[str]) -> dict[str, list[bytes]]:
        """All changes of each execution, encoded; unknown executions are missing."""
        by_execution: dict[str, list[bytes]] = {}
        for partition, partition_ids in self._by_partition(execution_ids):
            first = 0
            while portion := partition_ids[first : first + READ_EXECUTIONS]:
                lists = await self._ask("read", partition, "changes", self._read_bytes, *portion)
                # the script stops when it has read enough bytes: then there are fewer lists
                answers = zip(portion, lists, strict=False)
                by_execution.update((id_, changes) for id_, changes in answers if changes)
                first += len(lists)
        return by_execution

    async def known(self, execution_ids: Collection[str]) -> set[str]:
        answers = await self._ask_about("known", execution_ids)
        return {execution_id for execution_id, is_known in answers if is_known}

    async def beginnings(self, execution_ids: Collection[str]) -> dict[str, ExecutionRecord]:
        """Executions as their first commit left them: with when they started."""
        records: dict[str, ExecutionRecord] = {}
        for execution_id, change in await self._ask_about("first", execution_ids):
            record = record_of(change) if change else None
            if record is not None:
                records[execution_id] = record
        return records

    async def _ask_about(
        self, question: str, execution_ids: Collection[str]
    ) -> list[tuple[str, Any]]:
        """Executions, each with the answer of `read.lua` to a question about it."""
        groups = self._by_partition(execution_ids)
        calls = [self._ask_partition(question, *group) for group in groups]
        return list(chain.from_iterable(await asyncio.gather(*calls)))

    async def _ask_partition(
        self, question: str, partition: int, execution_ids: list[str]
    ) -> list[tuple[str, Any]]:
        answers: list[tuple[str, Any]] = []
        for first in range(0, len(execution_ids), READ_EXECUTIONS):
            portion = execution_ids[first : first + READ_EXECUTIONS]
            reply = await self._ask("read", partition, question, *portion)
            answers += zip(portion, reply, strict=True)
        return answers

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
        key = keys.prefix(partition) + "timers"
        execution_ids = await self._server.of(partition).ask(
            "ZRANGE", key, "-inf", now, "BYSCORE", "LIMIT", 0, limit
        )
        return [execution_id.decode() for execution_id in execution_ids]

    async def next_due(self, partition: int) -> float | None:
        if partition not in self._next_due:
            key = keys.prefix(partition) + "timers"
            first = await self._server.of(partition).ask("ZRANGE", key, 0, 0, "WITHSCORES")
            self._next_due[partition] = float(first[1]) if first else None
        return self._next_due[partition]

    async def active(self, partition: int) -> list[str]:
        key = keys.prefix(partition) + "active"
        execution_ids = await self._server.of(partition).ask("SMEMBERS", key)
        return sorted(execution_id.decode() for execution_id in execution_ids)

    async def announce(self, name: str, seconds: float, about: OrchestratorDetails) -> list[str]:
        members = await run_announce(
            self._server, name, _milliseconds(seconds), msgspec.json.encode(about)
        )
        return sorted(members)

    async def deregister(self, name: str) -> None:
        await self._server.fleet.call("HDEL", keys.ORCHESTRATORS, name)

    async def _run(self, name: str, partition: int, *arguments: Any) -> Any:
        return await script(name).run(self._server.of(partition), keys.lease(partition), *arguments)

    async def _ask(self, name: str, partition: int, *arguments: Any) -> Any:
        return await script(name).ask(self._server.of(partition), keys.lease(partition), *arguments)

    def _by_partition(self, execution_ids: Collection[str]) -> list[tuple[int, list[str]]]:
        groups: dict[int, list[str]] = {}
        for execution_id in filter(_is_encodable, execution_ids):
            partition = partition_of(execution_id, self.partitions)
            groups.setdefault(partition, []).append(execution_id)
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


def _is_encodable(execution_id: str) -> bool:
    """Whether this can be an execution id: no id has half a surrogate pair."""
    try:
        execution_id.encode()
    except UnicodeEncodeError:
        return False
    return True


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
