"""Intents and executions in PostgreSQL. Active executions are read from Redis first (`scaled`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from penstock.engine.commands import ExecutionRecord, Transition
from penstock.engine.events import TaskError
from penstock.engine.states import EXECUTION_ENDS, ExecutionState
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
from penstock.stores.partial import fold_since, history_of
from penstock.stores.phases import Phase
from penstock.stores.postgres import searching
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row
from penstock.stores.postgres.intents import key_digest, record_intents
from penstock.stores.postgres.texts import unescaped
from penstock.stores.records import AuditLine, ExecutionRow, Search
from penstock.stores.sql.intents import decode_intent
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)


_error_decoder = msgspec.msgpack.Decoder(TaskError)
_changes_decoder = msgspec.msgpack.Decoder(list[bytes])


class PostgresExecutions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.partitions = 0
        """Known once the store has been opened."""

    async def record_intents(
        self, intents: Sequence[Intent], audit: Mapping[str, AuditLine] = NO_LINES
    ) -> list[str]:
        return await record_intents(self._database, self.partitions, intents, audit)

    async def key_use(self, scope: str, key: str) -> KeyUse | None:
        try:
            rows = await self._database.rows(SQL.select_key_use, (key_digest(scope, key),))
        except UnicodeEncodeError:
            return None
        return KeyUse(*rows[0]) if rows else None

    async def trigger(
        self, execution_id: str, input_: bytes | None, overrides: Mapping[str, Any]
    ) -> None:
        async with self._database.transaction() as connection:
            columns = "n, phase, state, intent"
            row = await select_locked(connection, columns, execution_id)
            n, phase, state, intent = row or (0, None, None, b"")
            check_triggerable(execution_id, state, waits=phase == Phase.WAITING)

            record = codec.decode_record(intent)
            if input_ is not None:
                record.input = input_
            record.overrides.update(overrides)
            values = (str(Phase.STARTED), codec.encode(record), n)
            await connection.execute(SQL.trigger, values)

    async def request_control(self, execution_id: str, request: ControlRequest) -> None:
        async with self._database.transaction() as connection:
            columns = "n, phase, state, control_request"
            row = await select_locked(connection, columns, execution_id)
            n, phase, state, last_request = row or (0, None, None, None)
            waits = phase == Phase.WAITING
            check_controllable(execution_id, state, request, waits=waits, last_request=last_request)
            await connection.execute(SQL.request_control, (request, str(Phase.STARTED), n))

    async def control_requests(self, partition: int) -> dict[str, ControlRequest]:
        rows = await self._database.rows(
            SQL.select_control_requests, (partition,), seconds=SLOW_SECONDS
        )
        return dict(rows)

    async def started(self, partition: int) -> list[str]:
        """Executions that should run and have no copy.

        Those with a copy needn't be started again: a hot store that lost them is rebuilt.
        """
        rows = await self._database.rows(SQL.select_unbegun, (partition,), seconds=SLOW_SECONDS)
        return [execution_id for (execution_id,) in rows]

    async def execution(self, execution_id: str) -> Stored | None:
        rows = await self._database.rows(SQL.select_execution, (execution_id,))
        if not rows:
            return None
        intent, segments, *row = rows[0]
        record = codec.decode_record(intent)
        changes = [codec.decode_change(change) for change in decode_changes(segments)]
        stored = codec.fold(record, changes)
        _apply_end(stored.record, tuple(row))
        return stored

    async def since(self, execution_id: str, after: int) -> Stored | None:
        rows = await self._database.rows(SQL.select_execution, (execution_id,))
        if not rows:
            return None
        intent, segments, *row = rows[0]
        newest_first = reversed(decode_changes(segments))
        stored = fold_since(codec.decode_record(intent), newest_first, after)
        _apply_end(stored.record, tuple(row))
        return stored

    async def intent(self, execution_id: str) -> Intent | None:
        rows = await self._database.rows(SQL.select_intents, ([execution_id],))
        if not rows:
            return None
        _, phase, _, *stored = rows[0]
        return decode_intent(*stored, waits=phase == Phase.WAITING)

    async def intents(self, execution_ids: Collection[str]) -> dict[str, Intent]:
        storable_ids = list(filter(_is_storable, execution_ids))
        if not storable_ids:
            return {}
        intents: dict[str, Intent] = {}
        for execution_id, phase, state, *stored in await self._database.rows(
            SQL.select_intents, (storable_ids,)
        ):
            intent = decode_intent(*stored, waits=phase == Phase.WAITING)
            intents[execution_id] = intent
            if state in EXECUTION_ENDS:  # else it might begin again
                intent.record.state = ExecutionState(state)
        return intents

    async def search(self, search: Search) -> list[ExecutionRow]:
        try:
            query = searching.statement_of(search)
        except UnicodeEncodeError:  # in a label
            return []
        if query is None:
            return []
        rows = await self._database.rows(*query, prepare=False, seconds=SLOW_SECONDS)
        return [searching.row_of(row) for row in rows]

    async def history(self, execution_id: str, after: int = 0) -> list[Transition] | None:
        rows = await self._database.rows(SQL.select_changes, (execution_id,))
        if not rows:
            return None
        lines = chain.from_iterable(map(history_of, decode_changes(rows[0][0])))
        return [line for line in lines if line.seq > after]


def decode_changes(segments: Sequence[bytes] | None) -> list[bytes]:
    """The changes in an execution's segments, in order; None: there are none."""
    return list(chain.from_iterable(map(_changes_decoder.decode, segments or ())))


async def select_locked(connection: Connection, columns: str, execution_id: str) -> Row | None:
    """Columns of an execution's row, which is locked until the transaction ends."""
    if not _is_storable(execution_id):
        return None
    statement = f"SELECT {columns} FROM executions WHERE id = %s FOR UPDATE"  # noqa: S608
    cursor = await connection.execute(statement, (execution_id,), binary=True)
    return await cursor.fetchone()


def _is_storable(execution_id: str) -> bool:
    """Whether PostgreSQL can hold this as a text."""
    try:
        return b"\x00" not in execution_id.encode()
    except UnicodeEncodeError:
        return False


def _apply_end(record: ExecutionRecord, row: Row) -> None:
    """Take the execution's end from its row, if the stored changes don't contain it yet."""
    state, started_at, ended_at, error, error_node = row
    if state not in EXECUTION_ENDS or record.state == state:
        return
    record.state = ExecutionState(state)
    record.started_at = started_at
    record.finished_at = ended_at
    record.error = None if error is None else _error_decoder.decode(error)
    record.error_node_id = None if error_node is None else unescaped(error_node)
