"""Signals in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from penstock.engine.events import SignalReceived
from penstock.stores.base import KEY_SECONDS
from penstock.stores.phases import Phase
from penstock.stores.signals import (
    Judge,
    NewSignal,
    StoredSignal,
    check_receiving,
    check_room,
    check_same,
)
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.reader import UNKNOWABLE, Reader
from penstock.stores.sqlite.writer import Writer

SQL = statements_beside(__file__)


class SqliteSignals:
    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(
        self, signal: NewSignal, taken: int = 0, judge: Judge | None = None
    ) -> StoredSignal:
        stored: StoredSignal = await self._writer.submit(
            lambda connection: _put(connection, signal, taken, judge)
        )
        return stored

    async def of(self, execution_ids: Collection[str]) -> dict[str, list[SignalReceived]]:
        signals: dict[str, list[SignalReceived]] = {}
        for execution_id in execution_ids:
            rows = await self._reader.rows(SQL.select_signals, (execution_id,))
            if rows:
                signals[execution_id] = [SignalReceived(execution_id, *row) for row in rows]
        return signals

    async def undelivered(self, partition: int) -> list[SignalReceived]:  # noqa: ARG002
        """None: the inbox is in this process, and its successor has all of them sent again."""
        return []


def _put(
    connection: sqlite3.Connection, signal: NewSignal, taken: int, judge: Judge | None
) -> StoredSignal:
    execution_id = signal.execution_id
    try:
        row = connection.execute(SQL.select_receiver, (execution_id,)).fetchone()
    except UNKNOWABLE:
        row = None
    n, phase, state, count = row or (0, None, None, 0)
    check_receiving(execution_id, state, waits=phase == Phase.WAITING)
    if signal.idempotency_key is not None:
        values = (n, signal.idempotency_key, signal.at - KEY_SECONDS)
        known = connection.execute(SQL.select_known, values).fetchone()
        if known is not None:
            number, name, payload = known
            check_same(signal, name, payload)
            return StoredSignal(number, is_new=False)
    check_room(execution_id, count, taken)
    if judge is not None:
        rows = connection.execute(SQL.select_named, (n, signal.name)).fetchall()
        judge([SignalReceived(execution_id, *row) for row in rows])
    number = count + 1
    values_to_insert = (
        n,
        number,
        signal.at,
        signal.name,
        signal.correlation,
        signal.sender,
        signal.idempotency_key,
        signal.payload,
    )
    connection.execute(SQL.insert_signal, values_to_insert)
    return StoredSignal(number, is_new=True)
