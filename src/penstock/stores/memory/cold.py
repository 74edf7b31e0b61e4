"""The cold store in memory.

It reads the records of the hot store beside it: there is one copy of everything.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Protocol

import msgspec

from penstock.engine.commands import ControlChild, Send, StartChild, Transition
from penstock.engine.events import AnyEvent
from penstock.engine.states import EXECUTION_ENDS
from penstock.stores import codec, idempotency
from penstock.stores.base import (
    ControlRequest,
    Intent,
    Stored,
    check_controllable,
    check_triggerable,
    partition_of,
)
from penstock.stores.children import can_be_controlled, event_of
from penstock.stores.cold import NO_LINES
from penstock.stores.matching import finds, finds_dead_letter
from penstock.stores.memory.api_keys import MemoryApiKeys
from penstock.stores.memory.audit_log import MemoryAuditLog
from penstock.stores.memory.counts import MemoryCounts
from penstock.stores.memory.definitions import MemoryDefinitions
from penstock.stores.memory.posts import MemoryPosts
from penstock.stores.memory.signals import MemorySignals
from penstock.stores.partial import history_of
from penstock.stores.records import (
    AuditLine,
    Closed,
    DeadLetterRow,
    DeadLetterSearch,
    ExecutionRow,
    FeedCursor,
    FeedEntry,
    Search,
)
from penstock.stores.waits import OpenWait, WaitRow, WaitSearch


class Facts(Protocol):
    """The hot store's records, encoded."""

    partitions: int
    records: dict[str, bytes]
    changes: dict[str, list[bytes]]
    dead_letters: list[bytes]
    commit_feed: list[tuple[str, bytes]]
    waits: dict[tuple[str, str], tuple[int, bytes]]

    def stored(self, execution_id: str) -> Stored: ...


class MemoryExecutions:
    def __init__(self, hot: Facts, audit_log: MemoryAuditLog) -> None:
        self._hot = hot
        self._audit_log = audit_log
        self._intents: dict[str, bytes] = {}
        self._keys: dict[idempotency.Key, idempotency.KeyUse] = {}
        self._control_requests: dict[str, ControlRequest] = {}
        self._waiting: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._last_number = 0
        self.signals = MemorySignals(self, hot.partitions)

    async def record_intents(
        self, intents: Sequence[Intent], audit: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        ids = self._resolve_and_write(intents)
        lines: list[AuditLine] = []
        for intent, execution_id in zip(intents, ids, strict=True):
            is_new = intent.record.execution_id == execution_id
            if is_new and execution_id in audit:
                lines.append(audit[execution_id])
        await self._audit_log.write_audit(lines)
        return ids

    async def key_use(self, scope: str, key: str) -> idempotency.KeyUse | None:
        return self._keys.get((scope, key))

    def _resolve_and_write(self, intents: Sequence[Intent]) -> list[str]:
        key_uses: dict[idempotency.Key, idempotency.KeyUse] = {}
        ids = idempotency.resolve_keys(intents, ChainMap(key_uses, self._keys))
        self._keys.update(key_uses)
        for execution_id, intent in zip(ids, intents, strict=True):
            if execution_id == intent.record.execution_id and execution_id not in self._intents:
                self._write(intent)
        return ids

    def _write(self, intent: Intent) -> None:
        execution_id = intent.record.execution_id
        if execution_id not in self._numbers:
            self._numbers[execution_id] = self._last_number = self._last_number + 1
        self._intents[execution_id] = codec.encode(intent)
        self._hot.records[execution_id] = codec.encode(intent.record)
        if intent.waits:
            self._waiting.add(execution_id)
        else:
            self._waiting.discard(execution_id)

    async def trigger(
        self, execution_id: str, input_: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        waits = execution_id in self._waiting
        check_triggerable(execution_id, self._state(execution_id), waits=waits)

        intent = codec.decode_intent(self._intents[execution_id])
        intent.waits = False
        if input_ is not None:
            intent.record.input = input_
        intent.record.overrides.update(overrides)
        self._write(intent)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        waits = execution_id in self._waiting
        last_request = self._control_requests.get(execution_id)
        check_controllable(
            execution_id, self._state(execution_id), request, waits=waits, last_request=last_request
        )
        self._control_requests[execution_id] = request
        if waits:
            await self.trigger(execution_id, None, {})

    def deliver(self, send: Send) -> list[AnyEvent]:
        """Write what a commit sends to another execution; answers the events that follow."""
        if isinstance(send, StartChild):
            if send.record.execution_id not in self._intents:
                self._write(Intent(send.record))
        elif isinstance(send, ControlChild):
            execution_id = send.execution_id
            last_request = self._control_requests.get(execution_id)
            state = self._state(execution_id)
            if not can_be_controlled(send, state, last_request):
                return []
            self._control_requests[execution_id] = send.request
        return [event_of(send)]

    async def control_requests(self, partition: int) -> dict[str, ControlRequest]:
        running = set(await self.started(partition))
        return {
            execution_id: request
            for execution_id, request in self._control_requests.items()
            if execution_id in running
        }

    def _state(self, execution_id: str) -> str | None:
        data = self._hot.records.get(execution_id)
        return None if data is None else str(codec.decode_record(data).state)

    def state_of(self, execution_id: str) -> str | None:
        """The state of an execution; None if there is none."""
        return self._state(execution_id)

    def copied_signals(self, execution_id: str) -> set[int]:
        """Numbers of the signals that are part of an execution's records."""
        return {signal.number for signal in self._hot.stored(execution_id).signals}

    def is_waiting(self, execution_id: str) -> bool:
        return execution_id in self._waiting

    async def started(self, partition: int) -> list[str]:
        execution_ids: list[str] = []
        for execution_id in self._intents:
            if partition_of(execution_id, self._hot.partitions) != partition:
                continue
            if execution_id in self._waiting:
                continue
            record = codec.decode_record(self._hot.records[execution_id])
            if record.state not in EXECUTION_ENDS:
                execution_ids.append(execution_id)
        return execution_ids

    async def execution(self, execution_id: str) -> Stored | None:
        return self._hot.stored(execution_id) if execution_id in self._hot.records else None

    async def intent(self, execution_id: str) -> Intent | None:
        data = self._intents.get(execution_id)
        return codec.decode_intent(data) if data is not None else None

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        intents: dict[str, Intent] = {}
        for execution_id in execution_ids:
            intent = await self.intent(execution_id)
            if intent is not None:
                intents[execution_id] = intent
        return intents

    async def search(self, search: Search) -> list[ExecutionRow]:
        newest_first = reversed(self._numbers.items())
        rows = (self._execution_row(n, execution_id) for execution_id, n in newest_first)
        matching = (row for row in rows if finds(search, row))
        return list(islice(matching, search.limit))

    def _execution_row(self, n: int, execution_id: str) -> ExecutionRow:
        record = codec.decode_record(self._hot.records[execution_id])
        retry_of = codec.decode_intent(self._intents[execution_id]).retry_of
        return ExecutionRow(
            n,
            execution_id,
            record.workflow,
            record.version,
            record.state,
            record.created_at,
            record.started_at,
            record.finished_at,
            record.labels,
            record.error,
            record.error_node_id,
            retry_of,
        )

    def forget(self, before: float) -> int:
        """Delete old executions.

        Dead letters and entries of the commit feed stay, without content, so that the numbers of
        later ones stay the same.
        """
        old = {execution_id for execution_id in self._intents if self._is_old(execution_id, before)}
        old -= self._retried_by_others(old)
        for execution_id in old:
            del self._intents[execution_id]
            del self._numbers[execution_id]
            del self._hot.records[execution_id]
            self._hot.changes.pop(execution_id, None)
            self._control_requests.pop(execution_id, None)
            self._waiting.discard(execution_id)
        self.signals.forget(old)

        self._keys = {key: use for key, use in self._keys.items() if use.execution_id not in old}
        self._hot.commit_feed[:] = [
            (execution_id, b"" if execution_id in old else change)
            for execution_id, change in self._hot.commit_feed
        ]
        self._hot.dead_letters[:] = [
            data if self._has(data) else b"" for data in self._hot.dead_letters
        ]
        return len(old)

    def _retried_by_others(self, old: set[str]) -> set[str]:
        """Executions with a retry that isn't among the old ones."""
        retried: set[str] = set()
        for execution_id, data in self._intents.items():
            retry_of = codec.decode_intent(data).retry_of
            if retry_of is not None and execution_id not in old:
                retried.add(retry_of)
        return retried

    def _has(self, dead_letter: bytes) -> bool:
        """Whether the execution of a dead letter still exists."""
        if not dead_letter:
            return False
        return codec.decode_dead_letter(dead_letter).execution_id in self._intents

    def _is_old(self, execution_id: str, before: float) -> bool:
        record = codec.decode_record(self._hot.records[execution_id])
        if execution_id in self._waiting:
            return record.created_at < before
        return record.state in EXECUTION_ENDS and (record.finished_at or record.created_at) < before

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        if execution_id not in self._intents:
            return None
        changes = self._hot.changes.get(execution_id, [])
        lines = chain.from_iterable(map(history_of, changes))
        return [line for line in lines if line.seq > after]

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        first = max(after[0], 0)
        changes = enumerate(self._hot.commit_feed[first:], start=first + 1)
        feed_entries = (
            FeedEntry(position, execution_id, history_of(change))
            for position, (execution_id, change) in changes
            if execution_id in self._intents
        )
        with_lines = (feed_entry for feed_entry in feed_entries if feed_entry.lines)
        return list(islice(with_lines, limit))

    async def commits_end(self) -> FeedCursor:
        return (len(self._hot.commit_feed),)


class MemoryDeadLetters:
    def __init__(self, hot: Facts) -> None:
        self._hot = hot
        self._closed: dict[int, tuple[Closed, float, str | None]] = {}

    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        newest_first = range(len(self._hot.dead_letters), 0, -1)
        existing = (id_ for id_ in newest_first if self._hot.dead_letters[id_ - 1])
        rows = (self._dead_letter_row(dead_letter_id) for dead_letter_id in existing)
        matching = (row for row in rows if finds_dead_letter(search, row))
        return list(islice(matching, search.limit))

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None:
        if not 0 < dead_letter_id <= len(self._hot.dead_letters):
            return None
        if not self._hot.dead_letters[dead_letter_id - 1]:
            return None
        return self._dead_letter_row(dead_letter_id)

    def _dead_letter_row(self, dead_letter_id: int) -> DeadLetterRow:
        dead_letter = codec.decode_dead_letter(self._hot.dead_letters[dead_letter_id - 1])
        record = codec.decode_record(self._hot.records[dead_letter.execution_id])
        closed = self._closed.get(dead_letter_id, (None, None, None))
        return DeadLetterRow(dead_letter_id, dead_letter, record.workflow, record.version, *closed)

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        existing = range(1, len(self._hot.dead_letters) + 1)
        closing = {id_ for id_ in ids if id_ in existing and id_ not in self._closed}
        self._closed.update(dict.fromkeys(closing, (how, now, retried_as)))
        return len(closing)


_waits = msgspec.msgpack.Decoder(OpenWait)


class MemoryWaits:
    def __init__(self, hot: Facts) -> None:
        self._hot = hot

    async def find(self, search: WaitSearch) -> list[WaitRow]:
        rows = (self._row(row_id, data) for row_id, data in self._hot.waits.values())
        matching = (
            row
            for row in sorted(rows)
            if row.id > search.after
            and search.kind in (None, row.wait.kind)
            and search.correlation in (None, row.wait.correlation)
        )
        return list(islice(matching, search.limit))

    def open(self) -> list[OpenWait]:
        """Open waits, the oldest first."""
        return [_waits.decode(data) for _, data in sorted(self._hot.waits.values())]

    def close(self, wait: OpenWait) -> None:
        self._hot.waits.pop((wait.execution_id, wait.node_id), None)

    def _row(self, row_id: int, data: bytes) -> WaitRow:
        wait = _waits.decode(data)
        record = codec.decode_record(self._hot.records[wait.execution_id])
        return WaitRow(row_id, record.workflow, record.version, wait)


class MemoryColdStore:
    def __init__(self, hot: Facts) -> None:
        self.definitions = MemoryDefinitions()
        self.audit_log = MemoryAuditLog()
        self.executions = MemoryExecutions(hot, self.audit_log)
        self.signals = self.executions.signals
        self.waits = MemoryWaits(hot)
        self.posts = MemoryPosts(self.signals, self.waits.open, self.waits.close)
        self.dead_letters = MemoryDeadLetters(hot)
        self.counts = MemoryCounts(self.executions, self.dead_letters)
        self.api_keys = MemoryApiKeys()
