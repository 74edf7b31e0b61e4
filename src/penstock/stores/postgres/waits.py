"""Open waits in PostgreSQL. The archiver writes them, from the outbox."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.engine.events import SignalReceived
from penstock.stores import codec
from penstock.stores.postgres.database import SLOW_SECONDS, Database
from penstock.stores.postgres.posts import lock, meet
from penstock.stores.postgres.texts import escaped
from penstock.stores.sql.statements import statements_beside
from penstock.stores.waits import OpenWait, WaitChange, WaitRow, WaitSearch

SQL = statements_beside(__file__)

_decoder = msgspec.msgpack.Decoder(OpenWait)


class PostgresWaits:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, search: WaitSearch) -> list[WaitRow]:
        values = {
            "after": search.after,
            "kind": search.kind,
            "correlation": None if search.correlation is None else escaped(search.correlation),
            "limit": search.limit,
        }
        rows = await self._database.rows(SQL.select_waits, values, seconds=SLOW_SECONDS)
        return [
            WaitRow(row_id, workflow, version, _decoder.decode(wait))
            for row_id, workflow, version, wait in rows
        ]

    async def put(self, changes: Sequence[WaitChange]) -> list[SignalReceived]:
        """Open and close waits; of each node there is one change.

        Answers the signals that nodes get at once, because posts came before them.
        """
        closed: list[tuple[str, str]] = []
        opened: list[tuple[str, str, str, str | None, bytes]] = []
        for execution_id, node_id, wait in changes:
            node = escaped(node_id)
            if wait is None:
                closed.append((execution_id, node))
            else:
                correlation = None if wait.correlation is None else escaped(wait.correlation)
                opened.append((execution_id, node, wait.kind, correlation, codec.encode(wait)))
        waits = [wait for _, _, wait in changes if wait is not None]
        correlations = {wait.correlation for wait in waits if wait.correlation is not None}
        async with self._database.transaction(SLOW_SECONDS) as connection:
            # first, and in one order, so that nobody waits for somebody who waits for this
            for correlation in sorted(correlations):
                await lock(connection, correlation)
            if closed:
                await connection.execute(SQL.delete_waits, _columns(closed))
            if not opened:
                return []
            ids = [wait.execution_id for wait in waits]
            nodes = [escaped(wait.node_id) for wait in waits]
            cursor = await connection.execute(SQL.select_known, (ids, nodes), binary=True)
            known = {(row[0], row[1]) for row in await cursor.fetchall()}
            cursor = await connection.execute(SQL.select_numbers, (ids,), binary=True)
            numbers = {row[0]: row[1] for row in await cursor.fetchall()}
            await connection.execute(SQL.put_waits, _columns(opened))
            signals: list[SignalReceived] = []
            for wait, node in zip(waits, nodes, strict=True):
                if wait.execution_id in numbers and (wait.execution_id, node) not in known:
                    signals += await meet(connection, numbers[wait.execution_id], wait)
        return signals


def _columns(rows: Sequence[tuple[object, ...]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]
