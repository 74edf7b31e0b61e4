"""Signals in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from penstock.engine.events import SignalReceived
from penstock.stores import codec
from penstock.stores.base import KEY_SECONDS
from penstock.stores.phases import Phase
from penstock.stores.postgres.database import SLOW_SECONDS, Connection, Database, Row
from penstock.stores.postgres.executions import select_locked
from penstock.stores.postgres.texts import digest, escaped, unescaped
from penstock.stores.signals import (
    Judge,
    NewSignal,
    StoredSignal,
    check_receiving,
    check_room,
    check_same,
)
from penstock.stores.sql.statements import statements_beside

SQL = statements_beside(__file__)


class PostgresSignals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(
        self, signal: NewSignal, taken: int = 0, judge: Judge | None = None
    ) -> StoredSignal:
        execution_id = signal.execution_id
        async with self._database.transaction() as connection:
            # locked: two signals at once would get the same number
            row = await select_locked(connection, "n, phase, state", execution_id)
            n, phase, state = row or (0, None, None)
            check_receiving(execution_id, state, waits=phase == Phase.WAITING)
            key = None
            if signal.idempotency_key is not None:
                key = digest(signal.idempotency_key)
                values = (n, key, signal.at - KEY_SECONDS)
                cursor = await connection.execute(SQL.select_known, values, binary=True)
                known = await cursor.fetchone()
                if known is not None:
                    number, name, payload = known
                    check_same(signal, unescaped(name), payload)
                    return StoredSignal(number, is_new=False)
            cursor = await connection.execute(SQL.count_signals, (n,), binary=True)
            counted = await cursor.fetchone()
            count = counted[0] if counted else 0
            check_room(execution_id, count, taken)
            if judge is not None:
                about = (n, escaped(signal.name))
                cursor = await connection.execute(SQL.select_named, about, binary=True)
                judge([_signal((execution_id, *row)) for row in await cursor.fetchall()])
            number = count + 1
            correlation = None if signal.correlation is None else escaped(signal.correlation)
            row_to_insert = (
                n,
                number,
                signal.at,
                escaped(signal.name),
                correlation,
                escaped(signal.sender),
                key,
                signal.payload,
            )
            await connection.execute(SQL.insert_signal, row_to_insert)
        return StoredSignal(number, is_new=True)

    async def of(self, execution_ids: Collection[str]) -> dict[str, list[SignalReceived]]:
        rows = await self._database.rows(
            SQL.select_signals, (list(execution_ids),), seconds=SLOW_SECONDS
        )
        signals: dict[str, list[SignalReceived]] = {}
        for row in rows:
            signals.setdefault(row[0], []).append(_signal(row))
        return signals

    async def undelivered(self, partition: int) -> list[SignalReceived]:
        rows = await self._database.rows(SQL.select_undelivered, (partition,), seconds=SLOW_SECONDS)
        return [_signal(row) for row in rows]


async def mark_copied(connection: Connection, copies: Mapping[str, Sequence[bytes]]) -> None:
    """Note which signals the changes of executions have, by their ids."""
    cursor = await connection.execute(SQL.select_uncopied, (list(copies),), binary=True)
    numbers: dict[str, set[int]] = {}
    for execution_id, number in await cursor.fetchall():
        numbers.setdefault(execution_id, set()).add(number)
    copied: list[tuple[str, int]] = []
    for execution_id, uncopied in numbers.items():
        for change in copies[execution_id]:
            signals = codec.decode_change(change).signals
            copied += [(execution_id, one.number) for one in signals if one.number in uncopied]
    if copied:
        columns = [list(column) for column in zip(*copied, strict=True)]
        await connection.execute(SQL.mark_copied, columns)


def _signal(row: Row) -> SignalReceived:
    execution_id, number, name, payload, correlation, sender, at = row
    return SignalReceived(
        execution_id,
        number,
        unescaped(name),
        payload,
        None if correlation is None else unescaped(correlation),
        unescaped(sender),
        at,
    )
