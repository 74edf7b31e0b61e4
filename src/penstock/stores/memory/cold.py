"""The cold store in memory.

It reads what the hot store beside it was told: there is one copy of everything.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from penstock.engine.commands import Transition
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
from penstock.stores.cold import NO_LINES
from penstock.stores.matching import finds, finds_dead_letter
from penstock.stores.memory.api_keys import MemoryApiKeys
from penstock.stores.memory.audit_log import MemoryAuditLog
from penstock.stores.memory.counts import MemoryCounts
from penstock.stores.memory.definitions import MemoryDefinitions
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


class Facts(Protocol):
    """What the hot store has, encoded."""

    partitions: int
    records: dict[str, bytes]
    changes: dict[str, list[bytes]]
    dead_letters: list[bytes]
    commit_feed: list[tuple[str, bytes]]

    def stored(self, execution_id: str) -> Stored: ...


class MemoryExecutions:
    def __init__(self, hot: Facts) -> None:
        self._hot = hot
        self._intents: dict[str, bytes] = {}
        self._keys: dict[idempotency.Key, idempotency.KeyUse] = {}
        self._control_requests: dict[str, ControlRequest] = {}
        self._waiting: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._last_number = 0

    async def key_use(self, scope: str, key: str) -> idempotency.KeyUse | None:
        return self._keys.get((scope, key))

    def write(self, intents: Sequence[Intent]) -> list[str]:
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
        (self._waiting.add if intent.waits else self._waiting.discard)(execution_id)

    async def trigger(
        self, execution_id: str, given: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        check_triggerable(
            execution_id, self._state(execution_id), waits=execution_id in self._waiting
        )
        intent = codec.decode_intent(self._intents[execution_id])
        intent.waits = False
        intent.record.input = intent.record.input if given is None else given
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

    async def started(self, partition: int) -> list[str]:
        return [
            execution_id
            for execution_id in self._intents
            if partition_of(execution_id, self._hot.partitions) == partition
            and execution_id not in self._waiting
            and codec.decode_record(self._hot.records[execution_id]).state not in EXECUTION_ENDS
        ]

    async def execution(self, execution_id: str) -> Stored | None:
        return self._hot.stored(execution_id) if execution_id in self._hot.records else None

    async def intent(self, execution_id: str) -> Intent | None:
        data = self._intents.get(execution_id)
        return codec.decode_intent(data) if data is not None else None

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        found = {execution_id: await self.intent(execution_id) for execution_id in execution_ids}
        return {
            execution_id: intent for execution_id, intent in found.items() if intent is not None
        }

    async def search(self, search: Search) -> list[ExecutionRow]:
        rows = (
            self._execution_row(n, execution_id)
            for execution_id, n in reversed(self._numbers.items())
        )
        return list(islice((row for row in rows if finds(search, row)), search.limit))

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
        """The dead letters and the positions in the commit feed stay, without content: their numbers go on."""
        old = {execution_id for execution_id in self._intents if self._is_old(execution_id, before)}
        retries = {
            execution_id: codec.decode_intent(data).retry_of
            for execution_id, data in self._intents.items()
        }
        old -= {
            origin
            for execution_id, origin in retries.items()
            if origin is not None and execution_id not in old
        }
        for execution_id in old:
            del (
                self._intents[execution_id],
                self._numbers[execution_id],
                self._hot.records[execution_id],
            )
            self._hot.changes.pop(execution_id, None)
            self._control_requests.pop(execution_id, None)
            self._waiting.discard(execution_id)
        self._keys = {key: made for key, made in self._keys.items() if made.execution_id not in old}
        self._hot.commit_feed[:] = [
            (execution_id, b"" if execution_id in old else change)
            for execution_id, change in self._hot.commit_feed
        ]
        self._hot.dead_letters[:] = [
            data if self._has(data) else b"" for data in self._hot.dead_letters
        ]
        return len(old)

    def _has(self, dead_letter: bytes) -> bool:
        return (
            bool(dead_letter)
            and codec.decode_dead_letter(dead_letter).execution_id in self._intents
        )

    def _is_old(self, execution_id: str, before: float) -> bool:
        record = codec.decode_record(self._hot.records[execution_id])
        if execution_id in self._waiting:
            return record.created_at < before
        return record.state in EXECUTION_ENDS and (record.finished_at or record.created_at) < before

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        if execution_id not in self._intents:
            return None
        changes = self._hot.changes.get(execution_id, [])
        return [line for change in changes for line in history_of(change) if line.seq > after]

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        first = max(after[0], 0)
        changes = enumerate(self._hot.commit_feed[first:], start=first + 1)
        feed_entries = (
            FeedEntry(position, execution_id, history_of(change))
            for position, (execution_id, change) in changes
            if execution_id in self._intents
        )
        return list(islice((feed_entry for feed_entry in feed_entries if feed_entry.lines), limit))

    async def commits_end(self) -> FeedCursor:
        return (len(self._hot.commit_feed),)


class MemoryDeadLetters:
    def __init__(self, hot: Facts) -> None:
        self._hot = hot
        self._closed: dict[int, tuple[Closed, float, str | None]] = {}

    async def dead_letters(self, search: DeadLetterSearch) -> list[DeadLetterRow]:
        numbers = range(len(self._hot.dead_letters), 0, -1)
        rows = (
            self._dead_letter(number) for number in numbers if self._hot.dead_letters[number - 1]
        )
        return list(islice((row for row in rows if finds_dead_letter(search, row)), search.limit))

    async def dead_letter(self, dead_letter_id: int) -> DeadLetterRow | None:
        is_there = (
            0 < dead_letter_id <= len(self._hot.dead_letters)
            and self._hot.dead_letters[dead_letter_id - 1]
        )
        return self._dead_letter(dead_letter_id) if is_there else None

    def _dead_letter(self, number: int) -> DeadLetterRow:
        dead_letter = codec.decode_dead_letter(self._hot.dead_letters[number - 1])
        record = codec.decode_record(self._hot.records[dead_letter.execution_id])
        return DeadLetterRow(
            number,
            dead_letter,
            record.workflow,
            record.version,
            *self._closed.get(number, (None, None, None)),
        )

    async def close_dead_letters(
        self, ids: Collection[int], how: Closed, now: float, retried_as: str | None = None
    ) -> int:
        closing = {
            each
            for each in ids
            if 0 < each <= len(self._hot.dead_letters) and each not in self._closed
        }
        self._closed.update(dict.fromkeys(closing, (how, now, retried_as)))
        return len(closing)


class MemoryColdStore(
    MemoryDefinitions,
    MemoryExecutions,
    MemoryDeadLetters,
    MemoryCounts,
    MemoryApiKeys,
    MemoryAuditLog,
):
    def __init__(self, hot: Facts) -> None:
        MemoryDefinitions.__init__(self)
        MemoryExecutions.__init__(self, hot)
        MemoryDeadLetters.__init__(self, hot)
        MemoryApiKeys.__init__(self)
        MemoryAuditLog.__init__(self)

    async def record_intents(
        self, intents: Sequence[Intent], audit: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        ids = self.write(intents)
        recorded = [
            intent.record.execution_id
            for intent, execution_id in zip(intents, ids, strict=True)
            if intent.record.execution_id == execution_id
        ]
        await self.write_audit(
            [audit[execution_id] for execution_id in recorded if execution_id in audit]
        )
        return ids
