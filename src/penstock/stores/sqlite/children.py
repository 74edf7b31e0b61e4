"""What commits send to other executions, in the transaction of the commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from penstock.engine.commands import ControlChild, Send, StartChild
from penstock.engine.events import AnyEvent
from penstock.stores.base import Intent
from penstock.stores.children import can_be_controlled, event_of
from penstock.stores.phases import Phase
from penstock.stores.sql.statements import statements_beside
from penstock.stores.sqlite.intents import Row, record_intents
from penstock.stores.sqlite.numbers import Numbers
from penstock.stores.sqlite.rows import intent_row

SQL = statements_beside(__file__)

STARTED = str(Phase.STARTED)


class PreparedSend(NamedTuple):
    send: Send
    row: Row | None
    """Of a child that is to start."""


class Delivered(NamedTuple):
    events: list[AnyEvent]
    """What goes into the inbox once it is written."""
    recorded: list[Row]
    """Children that are new."""


NOTHING = Delivered([], [])


def prepared(sends: Sequence[Send], numbers: Numbers) -> list[PreparedSend]:
    """Sends, each with the row that it may write."""
    return [
        PreparedSend(
            send,
            intent_row(Intent(send.record), numbers) if isinstance(send, StartChild) else None,
        )
        for send in sends
    ]


def write(
    connection: sqlite3.Connection, sends: Sequence[PreparedSend], lead: float | None
) -> Delivered:
    delivered = Delivered([], [])
    for send, row in sends:
        if isinstance(send, ControlChild):
            if not _request(connection, send):
                continue
        elif isinstance(send, StartChild) and row is not None:
            known = connection.execute(SQL.select_child, (row[1],)).fetchone()
            if known is None:
                record_intents(connection, [Intent(send.record)], [row], lead)
                delivered.recorded.append(row)
        delivered.events.append(event_of(send))
    return delivered


def _request(connection: sqlite3.Connection, send: ControlChild) -> bool:
    """Record a control request of a parent; False if it has no effect."""
    known = connection.execute(SQL.select_child, (send.execution_id,)).fetchone()
    n, state, last_request = known or (0, None, None)
    if not can_be_controlled(send, state, last_request):
        return False
    connection.execute(SQL.request_control, (send.request, n))
    return True
