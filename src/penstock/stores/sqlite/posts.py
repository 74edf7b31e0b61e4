"""Posts in the file, and how they meet open waits."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from penstock.engine.events import SignalReceived
from penstock.stores import codec
from penstock.stores.posts import (
    EXPIRED_AT_ONCE,
    Delivered,
    Post,
    delivery_key,
    is_satisfied,
    posts_in,
    signal_of,
    waits_in,
)
from penstock.stores.sql.statements import statements_beside
from penstock.stores.waits import OpenWait

if TYPE_CHECKING:
    from penstock.stores.sqlite.writer import Writer

SQL = statements_beside(__file__)


class SqlitePosts:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def put(self, post: Post) -> Delivered:
        delivered: Delivered = await self._writer.submit(lambda connection: _put(connection, post))
        return delivered


def _put(connection: sqlite3.Connection, post: Post) -> Delivered:
    signals: list[SignalReceived] = []
    rows = connection.execute(SQL.select_waits, (post.correlation,)).fetchall()
    cursor = connection.execute(SQL.insert_post, (post.correlation, post.expires_at, b""))
    post_id = cursor.lastrowid or 0
    for n, wait in waits_in(rows, post):
        signal = _deliver(connection, n, wait, post_id, post)
        if signal is not None:
            signals.append(signal)
            if not post.to_all:
                break
    is_kept = post.to_all or not signals
    if is_kept:
        connection.execute(SQL.set_post, (codec.encode(post), post_id))
    else:
        connection.execute(SQL.delete_post, (post_id,))
    connection.execute(SQL.delete_expired, (post.at, EXPIRED_AT_ONCE))
    return Delivered(signals, is_kept)


def meet(connection: sqlite3.Connection, n: int, wait: OpenWait) -> list[SignalReceived]:
    """Give a node that has begun to wait the posts that came before it."""
    if wait.correlation is None or wait.kind != "signal":
        return []
    rows = connection.execute(SQL.select_posts, (wait.correlation, wait.since)).fetchall()
    signals: list[SignalReceived] = []
    for post_id, post in posts_in(rows, wait):
        signal = _deliver(connection, n, wait, post_id, post)
        if signal is not None:
            signals.append(signal)
            if not post.to_all:
                connection.execute(SQL.delete_post, (post_id,))
    return signals


def _deliver(
    connection: sqlite3.Connection, n: int, wait: OpenWait, post_id: int, post: Post
) -> SignalReceived | None:
    """Store a post as a signal to an execution; None if the node has got its signal already."""
    key = delivery_key(wait, post_id)
    if connection.execute(SQL.select_delivered, (n, key)).fetchone():
        return None
    ((number,),) = connection.execute(SQL.next_number, (n,)).fetchall()
    values = (n, number, post.at, post.name, post.correlation, post.sender, key, post.payload)
    connection.execute(SQL.insert_signal, values)
    if is_satisfied(wait):
        connection.execute(SQL.delete_wait, (n, wait.node_id))
    return signal_of(post, wait.execution_id, number)
