"""Intents and what became of them, in the file that the hot store writes too."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from penstock.engine.commands import Transition
from penstock.engine.states import ExecutionState
from penstock.stores import codec
from penstock.stores.base import (
    ControlRequest,
    Intent,
    ReusedOutput,
    Stored,
    check_controllable,
    check_triggerable,
)
from penstock.stores.cold import NO_LINES
from penstock.stores.idempotency import KeyUse
from penstock.stores.partial import history_of
from penstock.stores.records import AuditLine, ExecutionRow, FeedCursor, FeedEntry, Search
from penstock.stores.sqlite import searching
from penstock.stores.sqlite.hot import SqliteHotStore
from penstock.stores.sqlite.intents import Row, record_intents
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.reader import NUMBER_MAX, SHOULD_RUN, UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer

WAITS, SHOULD_START = str(ExecutionState.PENDING), str(ExecutionState.RUNNING)
SELECT_INTENT = "SELECT n, state, intent, rest, retry_of FROM executions WHERE id = ?"

SELECT_FEED = """
    SELECT changes.id, executions.id, change FROM changes CROSS JOIN executions USING (n)
    WHERE changes.id > ? ORDER BY changes.id
"""


class Rest(msgspec.Struct, array_like=True):
    """What an `Intent` has beside its record, where that is anything."""

    idempotency_key: str | None
    request_hash: str
    key_scope: str
    reused: list[ReusedOutput]


_rest_decoder = msgspec.msgpack.Decoder(Rest)
decode_rest = _rest_decoder.decode


class SqliteExecutions:
    def __init__(
        self, hot: SqliteHotStore, writer: Writer, reader: Reader, searcher: Reader
    ) -> None:
        self._hot, self._writer, self._reader, self._searcher = hot, writer, reader, searcher
        self._fresh: dict[str, Intent] = {}
        """Stored here and about to begin: the owner needn't read them back."""
        self._numbers = Numbers(reader)

    async def record_intents(
        self, intents: Sequence[Intent], audit: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        rows = [self._row(intent) for intent in intents]
        lead = self._numbers.new_lead()
        ids: list[str] = await self._writer.submit(
            lambda connection: record_intents(connection, intents, rows, lead, audit)
        )
        if lead is not None:
            self._numbers.lead_written(lead)
        for execution_id, row, intent in zip(ids, rows, intents, strict=True):
            if execution_id == row[1] and not intent.waits:
                self._begin(execution_id, row[0], intent)
        return ids

    async def key_use(self, scope: str, key: str) -> KeyUse | None:
        self._writer.check_open()  # who is answered with an execution relies on it
        statement = "SELECT execution_id, request_hash, created_at FROM idempotency WHERE scope = ? AND key = ?"
        try:
            rows = await self._reader.rows(statement, (scope, key))
        except UNKNOWABLE:
            return None
        return KeyUse(*rows[0]) if rows else None

    def _row(self, intent: Intent) -> Row:
        record = intent.record
        state = WAITS if intent.waits else SHOULD_START
        labels = msgspec.json.encode(record.labels) if record.labels else None
        rest = None
        if (
            intent.idempotency_key is not None
            or intent.reused
            or intent.request_hash
            or intent.key_scope
        ):
            rest = codec.encode(
                Rest(intent.idempotency_key, intent.request_hash, intent.key_scope, intent.reused)
            )
        return (
            self._numbers.next(record.created_at),
            record.execution_id,
            record.workflow,
            record.version,
            state,
            record.created_at,
            intent.retry_of,
            labels,
            codec.encode(record),
            rest,
        )

    def _begin(self, execution_id: str, n: int, intent: Intent) -> None:
        self._hot.number(execution_id, n)
        self._fresh[execution_id] = intent

    async def trigger(
        self, execution_id: str, given: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        def write(connection: sqlite3.Connection) -> tuple[int, Intent]:
            n, state, *stored = _find(connection, SELECT_INTENT, execution_id) or (0, None)
            check_triggerable(execution_id, state, waits=state == WAITS)
            intent = _intent(*stored)
            intent.record.input = intent.record.input if given is None else given
            intent.record.overrides.update(overrides)
            values = (SHOULD_START, codec.encode(intent.record), n)
            connection.execute("UPDATE executions SET state = ?, intent = ? WHERE n = ?", values)
            return n, intent

        n, intent = await self._writer.submit(write)
        self._begin(execution_id, n, intent)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        """Record it in the column `wish`."""

        def write(connection: sqlite3.Connection) -> None:
            found = _find(
                connection, "SELECT n, state, wish FROM executions WHERE id = ?", execution_id
            )
            n, state, last_request = found or (0, None, None)
            check_controllable(
                execution_id, state, request, waits=state == WAITS, last_request=last_request
            )
            begun = SHOULD_START if state == WAITS else state
            connection.execute(
                "UPDATE executions SET wish = ?, state = ? WHERE n = ?", (request, begun, n)
            )

        await self._writer.submit(write)

    async def control_requests(self, partition: int) -> dict[str, ControlRequest]:  # noqa: ARG002
        rows = await self._reader.rows(
            f"SELECT id, wish FROM executions WHERE {SHOULD_RUN} AND wish IS NOT NULL"  # noqa: S608
        )
        return dict(rows)

    async def started(self, partition: int) -> list[str]:  # noqa: ARG002
        return await self._reader.started()

    async def execution(self, execution_id: str) -> Stored | None:
        found = await self._reader.executions([execution_id])
        return found[execution_id][0] if found else None

    async def intent(self, execution_id: str) -> Intent | None:
        if execution_id in self._fresh:
            return self._fresh.pop(execution_id)
        rows = await self._reader.rows(SELECT_INTENT, (execution_id,))
        if not rows:
            return None
        _, state, *stored = rows[0]
        return _intent(*stored, waits=state == WAITS)

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        found = {execution_id: await self.intent(execution_id) for execution_id in execution_ids}
        return {
            execution_id: intent for execution_id, intent in found.items() if intent is not None
        }

    async def search(self, search: Search) -> list[ExecutionRow]:
        between = self._numbers.between(search.since, search.until)
        try:
            return await self._searcher.run(
                lambda connection: searching.find(connection, search, between)
            )
        except UNKNOWABLE:
            return []

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        return await self._reader.run(lambda connection: _history(connection, execution_id, after))

    async def read_commits(self, after: FeedCursor, limit: int = 500) -> list[FeedEntry]:
        return await self._reader.run(lambda connection: _read_commits(connection, after[0], limit))

    async def commits_end(self) -> FeedCursor:
        rows = await self._reader.rows("SELECT coalesce(max(id), 0) FROM changes")
        return (int(rows[0][0]),)


def _find(
    connection: sqlite3.Connection, statement: str, execution_id: str
) -> tuple[Any, ...] | None:
    try:
        found: tuple[Any, ...] | None = connection.execute(statement, (execution_id,)).fetchone()
    except UNKNOWABLE:
        return None
    return found


def _intent(
    record: bytes, rest: bytes | None, retry_of: str | None, *, waits: bool = False
) -> Intent:
    intent = Intent(codec.decode_record(record), retry_of=retry_of, waits=waits)
    if rest is not None:
        more = _rest_decoder.decode(rest)
        intent.idempotency_key, intent.request_hash = more.idempotency_key, more.request_hash
        intent.key_scope, intent.reused = more.key_scope, more.reused
    return intent


def _history(
    connection: sqlite3.Connection, execution_id: str, after: int
) -> list[Transition] | None:
    """History lines, read from the end and no further than needed.

    Who follows a long execution asks for its last ones.
    """
    found = _find(connection, "SELECT n FROM executions WHERE id = ?", execution_id)
    if found is None:
        return None
    parts: list[list[Transition]] = []
    for (change,) in connection.execute(
        "SELECT change FROM changes WHERE n = ? ORDER BY id DESC", found
    ):
        lines = history_of(change)
        parts.append([line for line in lines if line.seq > after])
        if lines and lines[0].seq <= after + 1:
            break
    return [line for part in reversed(parts) for line in part]


def _read_commits(connection: sqlite3.Connection, after: int, limit: int) -> list[FeedEntry]:
    feed_entries: list[FeedEntry] = []
    for position, execution_id, change in connection.execute(
        SELECT_FEED, (min(after, NUMBER_MAX),)
    ):
        lines = history_of(change)
        if lines:
            feed_entries.append(FeedEntry(position, execution_id, lines))
        if len(feed_entries) == limit:
            break
    return feed_entries
