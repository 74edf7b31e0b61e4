"""Open waits in the file. Commits write them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from penstock.engine.events import SignalReceived
from penstock.stores import codec
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite import posts
from penstock.stores.sqlite.reader import Reader
from penstock.stores.waits import OpenWait, WaitChange, WaitRow, WaitSearch

SQL = statements_beside(__file__)

_decoder = msgspec.msgpack.Decoder(OpenWait)
NumberedChange = tuple[int, str, OpenWait | None]
"""The number of the execution, the node, and what it waits for now."""


class SqliteWaits:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def find(self, search: WaitSearch) -> list[WaitRow]:
        values = (search.after, search.kind, search.kind, search.correlation, search.correlation)
        rows = await self._reader.rows(SQL.select_waits, (*values, search.limit))
        return [
            WaitRow(row_id, workflow, version, _decoder.decode(wait))
            for row_id, workflow, version, wait in rows
        ]


def numbered(changes: Sequence[WaitChange], numbers: Mapping[str, int]) -> list[NumberedChange]:
    return [(numbers[execution_id], node_id, wait) for execution_id, node_id, wait in changes]


def write(
    connection: sqlite3.Connection, changes: Sequence[NumberedChange]
) -> list[SignalReceived]:
    """Open and close waits. Answers the signals that nodes get at once, as posts came before."""
    signals: list[SignalReceived] = []
    for n, node_id, wait in changes:
        if wait is None:
            connection.execute(SQL.delete_wait, (n, node_id))
            continue
        is_known = connection.execute(SQL.select_wait, (n, node_id)).fetchone() is not None
        values = (n, node_id, wait.kind, wait.correlation, codec.encode(wait))
        connection.execute(SQL.put_wait, values)
        if not is_known:
            signals += posts.meet(connection, n, wait)
    return signals
