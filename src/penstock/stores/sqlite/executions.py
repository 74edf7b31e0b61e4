"""Intents and executions in the file, which the hot store writes too."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from penstock.engine.commands import Transition
from penstock.stores import codec
from penstock.stores.base import (
    ControlRequest,
    Intent,
    Stored,
    check_controllable,
    check_triggerable,
)
from penstock.stores.cold import NO_LINES
from penstock.stores.idempotency import KeyUse
from penstock.stores.partial import history_of
from penstock.stores.records import AuditLine, ExecutionRow, FeedCursor, FeedEntry, Search
from penstock.stores.sql.conditions import NUMBER_MAX
from penstock.stores.sql.intents import decode_intent
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite import searching
from penstock.stores.sqlite.hot import IntentColumns, SqliteHotStore
from penstock.stores.sqlite.intents import record_intents
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.reader import UNKNOWABLE, Reader
from penstock.stores.sqlite.rows import STARTED, WAITING, intent_row
from penstock.stores.sqlite.writer import Writer

SQL = statements_beside(__file__)


class SqliteExecutions:
    def __init__(
        self,
        hot: SqliteHotStore,
        writer: Writer,
        reader: Reader,
        searcher: Reader,
        numbers: Numbers,
    ) -> None:
        self._hot = hot
        self._writer = writer
        self._reader = reader
        self._searcher = searcher
        self._numbers = numbers

    async def record_intents(
        self, intents: Sequence[Intent], audit: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        rows = [intent_row(intent, self._numbers) for intent in intents]
        lead = self._numbers.new_lead()
        ids: list[str] = await self._writer.submit(
            lambda connection: record_intents(connection, intents, rows, lead, audit)
        )
        if lead is not None:
            self._numbers.lead_written(lead)
        for execution_id, row, intent in zip(ids, rows, intents, strict=True):
            if execution_id == row[1] and not intent.waits:
                n, _, _, _, _, _, _, retry_of, _, record, rest = row
                self._hot.note_recorded(execution_id, n, (record, rest, retry_of))
        return ids

    async def key_use(self, scope: str, key: str) -> KeyUse | None:
        self._writer.check_open()  # the caller relies on the execution that it gets
        try:
            rows = await self._reader.rows(SQL.select_key_use, (scope, key))
        except UNKNOWABLE:
            return None
        return KeyUse(*rows[0]) if rows else None

    async def trigger(
        self, execution_id: str, input_: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        def write(connection: sqlite3.Connection) -> tuple[int, IntentColumns]:
            row = _select(connection, SQL.select_intent, execution_id)
            n, phase, state, submitted, rest, retry_of = row or (0, None, None, b"", None, None)
            check_triggerable(execution_id, state, waits=phase == WAITING)

            record = codec.decode_record(submitted)
            if input_ is not None:
                record.input = input_
            record.overrides.update(overrides)
            triggered = codec.encode(record)
            values = (STARTED, triggered, n)
            connection.execute(SQL.trigger, values)
            return n, (triggered, rest, retry_of)

        n, intent = await self._writer.submit(write)
        self._hot.note_recorded(execution_id, n, intent)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:

        def write(connection: sqlite3.Connection) -> None:
            row = _select(connection, SQL.select_control, execution_id)
            n, phase, state, last_request = row or (0, None, None, None)
            waits = phase == WAITING
            check_controllable(execution_id, state, request, waits=waits, last_request=last_request)
            values = (request, STARTED, n)
            connection.execute(SQL.request_control, values)

        await self._writer.submit(write)

    async def control_requests(self, partition: int) -> dict[str, ControlRequest]:  # noqa: ARG002
        rows = await self._reader.rows(SQL.select_control_requests)
        return dict(rows)

    async def started(self, partition: int) -> list[str]:  # noqa: ARG002
        return await self._reader.started()

    async def execution(self, execution_id: str) -> Stored | None:
        executions = await self._reader.executions([execution_id])
        return executions[execution_id][0] if executions else None

    async def intent(self, execution_id: str) -> Intent | None:
        unbegun = self._hot.unbegun_intent(execution_id)
        if unbegun is not None:
            return decode_intent(*unbegun, waits=False)
        rows = await self._reader.rows(SQL.select_intent, (execution_id,))
        if not rows:
            return None
        _, phase, _, *stored = rows[0]
        return decode_intent(*stored, waits=phase == WAITING)

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        intents: dict[str, Intent] = {}
        for execution_id in execution_ids:
            intent = await self.intent(execution_id)
            if intent is not None:
                intents[execution_id] = intent
        return intents

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
        rows = await self._reader.rows(SQL.select_feed_end)
        return (int(rows[0][0]),)


def _select(
    connection: sqlite3.Connection, statement: str, execution_id: str
) -> tuple[Any, ...] | None:
    """The row that a statement selects by an execution id."""
    try:
        row: tuple[Any, ...] | None = connection.execute(statement, (execution_id,)).fetchone()
    except UNKNOWABLE:
        return None
    return row


def _history(
    connection: sqlite3.Connection, execution_id: str, after: int
) -> list[Transition] | None:
    """History lines, read from the end and no further than needed.

    A caller that follows a long execution asks for its last lines.
    """
    row = _select(connection, SQL.select_number, execution_id)
    if row is None:
        return None
    parts: list[list[Transition]] = []
    changes = connection.execute(SQL.select_changes_backwards, row)
    for (change,) in changes:
        lines = history_of(change)
        parts.append([line for line in lines if line.seq > after])
        if lines and lines[0].seq <= after + 1:
            break
    return list(chain.from_iterable(reversed(parts)))


def _read_commits(connection: sqlite3.Connection, after: int, limit: int) -> list[FeedEntry]:
    feed_entries: list[FeedEntry] = []
    rows = connection.execute(SQL.select_feed, (min(after, NUMBER_MAX),))
    for position, execution_id, change in rows:
        lines = history_of(change)
        if lines:
            feed_entries.append(FeedEntry(position, execution_id, lines))
        if len(feed_entries) == limit:
            break
    return feed_entries
