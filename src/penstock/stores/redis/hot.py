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
from penstock.stores.partial import fold_since, record_of
from penstock.stores.redis import keys
from penstock.stores.redis.commits import FeedSize, arguments_of
from penstock.stores.redis.connection import Link, Server, script
from penstock.stores.redis.entries import Entries
from penstock.stores.redis.flat_lists import portions
from penstock.stores.redis.fleet import run_announce
from penstock.stores.redis.inbox import ENTRY_EVENTS_MAX, SCHEMA, end_of, events_of, read_after
from penstock.stores.redis.malformed import DroppedEntries
from penstock.stores.tiering import last_record

READ_EXECUTIONS = 1000
"""Executions in one call: Lua's stack is limited."""
READ_BYTES = 1 << 20
"""Bytes of changes in one call: Redis serves nobody else meanwhile."""
READ_ENTRIES = 128
"""Inbox entries in one call, at most; each may hold hundreds of events."""
TASK_ENDS = (TaskSucceeded, TaskFailed, TaskLost, TaskReturned)


class _PartitionState:
    """What this process remembers of a partition, most of it as its owner."""

    def __init__(self, server: Server, partition: int) -> None:
        self.entries = Entries(server, partition)
        self.feed_size = FeedSize()
        self.idle_links: list[Link] = []
        """Connections for blocking reads that nobody uses at the moment."""
        self.ahead: list[tuple[int, AnyEvent]] = []
        """Events that were read and didn't fit into an answer."""
        self.ahead_follows = 0
        """The position that the first event of `ahead` follows."""
        self.next_due: float | None = None
        """The next timer as the last commit here left it: nobody else writes it."""
        self.is_next_due_known = False
        self.handled = 0
        """The position of the last commit here.

        An entry of which only some events were handled can't be trimmed, so it is read again.
        """

    def begin_lease(self, position: int) -> None:
        """Forget what another owner may have changed meanwhile."""
        self.entries.forget()
        self.ahead = []
        self.is_next_due_known = False
        self.handled = position

    def set_next_due(self, wake_at: float | None) -> None:
        self.next_due = wake_at
        self.is_next_due_known = True


class RedisHotStore:
    def __init__(self, server: Server, partitions: int, read_bytes: int = READ_BYTES) -> None:
        """`read_bytes`: about how many bytes of changes are read in one call."""
        self._server = server
        self._read_bytes = read_bytes
        self.partitions = partitions
        server.partitions = partitions
        self._states = [_PartitionState(server, partition) for partition in range(partitions)]
        self._dropped = DroppedEntries(server.timing.dropped_line_seconds)

    def now(self) -> float:
        return self._server.now()

    def check_open(self) -> None:
        self._server.check_open()

    async def acquire(self, partition: int, owner: str, seconds: float) -> Lease | None:
        token = secrets.token_hex(8)
        milliseconds = _milliseconds(seconds)
        answer = await self._server.run_script(partition, "acquire", owner, token, milliseconds)
        if answer is None:
            return None
        commit_number, position, _, cold_number = answer

        self._states[partition].begin_lease(int(position))
        return Lease(
            partition,
            owner,
            token,
            commit_number=int(commit_number),
            position=int(position),
            cold_number=int(cold_number),
        )

    async def renew(self, lease: Lease, seconds: float) -> bool:
        milliseconds = _milliseconds(seconds)
        is_renewed = await self._server.run_script(
            lease.partition, "lease", lease.token, "renew", milliseconds
        )
        return bool(is_renewed)

    async def release(self, lease: Lease) -> None:
        await self._server.run_script(lease.partition, "lease", lease.token, "release")
        idle_links = self._states[lease.partition].idle_links
        while idle_links:
            await self._server.drop(idle_links.pop())

    async def append(self, events: Sequence[AnyEvent], *, own: bool = False) -> None:
        fields_by_partition: dict[int, list[bytes]] = {}
        for event in events:
            partition = partition_of(event.execution_id, self.partitions)
            fields = fields_by_partition.setdefault(partition, [])
            fields += (SCHEMA, codec.encode(event))

        for partition, fields in fields_by_partition.items():
            for entry in portions(fields, ENTRY_EVENTS_MAX, width=2):
                await self._append_entry(partition, entry, own=own)

    async def _append_entry(self, partition: int, fields: Sequence[bytes], *, own: bool) -> None:
        key = keys.inbox(partition)
        link = self._server.of(partition)
        if own:
            await script("append").run(link, key, *fields)
        else:
            await link.call("XADD", key, "1-*", *fields)

    async def receive(
        self, partition: int, after: int, limit: int, timeout_seconds: float
    ) -> list[tuple[int, AnyEvent]]:
        state = self._states[partition]
        after = max(after, state.handled)
        events = state.ahead
        state.ahead = []
        if not events or state.ahead_follows != after:
            events = await self._read_events(partition, after, limit, timeout_seconds)

        if len(events) > limit:
            last_position, _ = events[limit - 1]
            state.ahead_follows = last_position
            state.ahead = events[limit:]
            events = events[:limit]
        task_ends = [event for _, event in events if isinstance(event, TASK_ENDS)]
        state.entries.remove(task_ends)
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
            last_id, _ = entries[-1]
            after = end_of(last_id)
            self._states[partition].handled = after

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
        if not reply:
            return []
        ((_, entries),) = reply
        return entries

    async def _wait(self, partition: int, call: tuple[Any, ...], seconds: float) -> Any:
        """Make a blocking call on a connection that nobody else uses meanwhile.

        A connection on which a wait was given up isn't used again.
        """
        idle_links = self._states[partition].idle_links
        link = idle_links.pop() if idle_links else self._server.blocking(partition)
        try:
            reply = await link.ask(*call, seconds=seconds)
        except BaseException:
            await self._server.drop(link)
            raise
        idle_links.append(link)
        return reply

    async def load(self, execution_ids: Collection[str]) -> dict[str, Stored]:
        changes_by_execution = await self.changes(execution_ids)
        stored: dict[str, Stored] = {}
        for execution_id, changes in changes_by_execution.items():
            stored[execution_id] = stored_of(execution_id, changes)
        return stored

    async def changes(self, execution_ids: Collection[str]) -> dict[str, list[bytes]]:
        """All changes of each execution, encoded; unknown executions are missing."""
        lists = await self.read_lists("changes", execution_ids)
        return {execution_id: changes for execution_id, changes in lists if changes}

    async def read_lists(
        self, action: str, execution_ids: Collection[str]
    ) -> list[tuple[str, Any]]:
        """Executions, each with the answer of an action of `read.lua` that reads changes."""
        answers: list[tuple[str, Any]] = []
        for partition, partition_ids in self._by_partition(execution_ids):
            first = 0
            while portion := partition_ids[first : first + READ_EXECUTIONS]:
                lists = await self._server.ask_script(
                    partition, "read", action, self._read_bytes, *portion
                )
                # the script stops when it has read enough bytes: then there are fewer lists
                answers += zip(portion, lists, strict=False)
                first += len(lists)
        return answers

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
        calls = [
            self._ask_partition(question, partition, partition_ids)
            for partition, partition_ids in self._by_partition(execution_ids)
        ]
        answers = await asyncio.gather(*calls)
        return list(chain.from_iterable(answers))

    async def _ask_partition(
        self, question: str, partition: int, execution_ids: list[str]
    ) -> list[tuple[str, Any]]:
        answers: list[tuple[str, Any]] = []
        for portion in portions(execution_ids, READ_EXECUTIONS):
            reply = await self._server.ask_script(partition, "read", question, *portion)
            answers += zip(portion, reply, strict=True)
        return answers

    async def commit(self, plan: CommitPlan) -> None:
        state = self._states[plan.partition]
        entries = state.entries
        await entries.find(plan.stops)
        arguments, tasks = arguments_of(plan, entries, state.feed_size)

        answer = await self._server.run_script(plan.partition, "commit", *arguments)
        next_due, *entry_ids = answer

        state.handled = plan.position
        state.set_next_due(float(next_due) if next_due else None)
        entries.added(tasks, entry_ids)
        entries.remove(plan.stops)
        for execution_id in plan.resumed:
            entries.moved(execution_id)
        for ended in plan.ended:
            entries.drop(ended.execution_id)

    async def due(self, partition: int, now: float, limit: int) -> list[str]:
        key = keys.prefix(partition) + "timers"
        execution_ids = await self._server.of(partition).ask(
            "ZRANGE", key, "-inf", now, "BYSCORE", "LIMIT", 0, limit
        )
        return [execution_id.decode() for execution_id in execution_ids]

    async def next_due(self, partition: int) -> float | None:
        state = self._states[partition]
        if not state.is_next_due_known:
            key = keys.prefix(partition) + "timers"
            first = await self._server.of(partition).ask("ZRANGE", key, 0, 0, "WITHSCORES")
            wake_at: float | None = None
            if first:
                _, score = first
                wake_at = float(score)
            state.set_next_due(wake_at)
        return state.next_due

    async def active(self, partition: int) -> list[str]:
        key = keys.prefix(partition) + "active"
        execution_ids = await self._server.of(partition).ask("SMEMBERS", key)
        return sorted(execution_id.decode() for execution_id in execution_ids)

    async def announce(self, name: str, seconds: float, about: OrchestratorDetails) -> list[str]:
        data = msgspec.json.encode(about)
        members = await run_announce(self._server, name, _milliseconds(seconds), data)
        return sorted(members)

    async def deregister(self, name: str) -> None:
        await self._server.fleet.call("HDEL", keys.ORCHESTRATORS, name)

    def _by_partition(self, execution_ids: Collection[str]) -> list[tuple[int, list[str]]]:
        """Executions by the partition that they are in, without what can't be an id."""
        ids_by_partition: dict[int, list[str]] = {}
        for execution_id in execution_ids:
            if _is_encodable(execution_id):
                partition = partition_of(execution_id, self.partitions)
                ids_by_partition.setdefault(partition, []).append(execution_id)
        return list(ids_by_partition.items())


def stored_of(execution_id: str, changes: list[bytes]) -> Stored:
    """An execution from its changes.

    Raises `SchemaMismatch` for changes that aren't ours, or without a beginning.
    """
    nothing = ExecutionRecord(execution_id, "", 0, ExecutionState.PENDING, b"{}", 0.0)
    decoded = [codec.decode_change(data) for data in changes]
    stored = codec.fold(nothing, decoded)
    if stored.record is nothing:
        raise SchemaMismatch(f"what Redis has of execution {execution_id} has no beginning")
    return stored


def stored_since(execution_id: str, changes: list[bytes], after: int) -> Stored:
    """What changes tell of an execution behind a history line. Raises as `stored_of`."""
    record = last_record(changes)
    if record is None:
        raise SchemaMismatch(f"what Redis has of execution {execution_id} has no beginning")
    return fold_since(record, reversed(changes), after)


def _is_encodable(execution_id: str) -> bool:
    """Whether this can be an execution id: no id has half a surrogate pair."""
    try:
        execution_id.encode()
    except UnicodeEncodeError:
        return False
    return True


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
